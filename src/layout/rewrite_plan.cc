#include "layout/rewrite_plan.h"

#include <algorithm>
#include <cmath>

#include "layout/cuts.h"

namespace grebe::layout {
namespace {

class Planner {
 public:
  Planner(const RowSample& sample, const PlanOptions& options)
      : sample_(sample), options_(options),
        level_min_(options.unparted_columns == 0
                       ? 0
                       : static_cast<int>(sample.order().tie_columns().size()) -
                             options.unparted_columns + 1) {}

  RewritePlan Run() {
    int64_t at = 0;
    for (uint32_t section = 0; section < options_.section_count; ++section) {
      int64_t end = at;
      while (end < sample_.count() && sample_.section(end) == section) ++end;
      CutSection(section, at, end);
      at = end;
    }
    CloseGroup();
    return std::move(plan_);
  }

 private:
  // The first place from `at` on where rows may part.
  int64_t Allowed(int64_t at, int64_t end) const {
    while (at < end && sample_.Level(at) < level_min_) ++at;
    return at;
  }

  void CutSection(uint32_t section, int64_t begin, int64_t end) {
    const auto target = std::max<int64_t>(
        1, std::llround(static_cast<double>(options_.target_file_rows) / sample_.weight()));
    const auto level = [&](int64_t i) { return sample_.Level(i); };
    int64_t at = begin;
    do {
      const int64_t cut = Allowed(NextCut(at, end, target, level), end);
      PlannedFile file;
      file.section = section;
      file.begin = at == begin ? Border{section} : sample_.BorderBefore(at);
      AddFile(file, at, cut);
      at = cut;
    } while (at < end);
  }

  void AddFile(const PlannedFile& file, int64_t begin, int64_t end) {
    const double bytes =
        static_cast<double>(end - begin) * sample_.weight() * options_.row_bytes;
    const auto limit = static_cast<double>(options_.partition_bytes_max);
    // Only here does the order of the source decide between files: a partition must begin.
    const bool joins = bytes <= limit && group_files_ > 0 && group_bytes_ + bytes <= limit &&
                       !file.begin.by_source;
    if (!joins) CloseGroup();
    const auto ordinal = static_cast<int>(plan_.files.size());
    plan_.files.push_back(file);
    if (joins) {
      plan_.partitions.back().file_count += 1;
      group_files_ += 1;
      group_bytes_ += bytes;
      return;
    }
    plan_.tasks.push_back({static_cast<int>(plan_.partitions.size()), 1});
    plan_.partitions.push_back({file.begin, ordinal, 1});
    if (bytes <= limit) {
      group_files_ = 1;
      group_bytes_ = bytes;
      return;
    }
    const auto parts = static_cast<int64_t>(std::ceil(bytes / limit));
    int64_t last = begin;
    for (int64_t part = 1; part < parts; ++part) {
      const int64_t at = Allowed(begin + (end - begin) * part / parts, end);
      if (at <= last || at >= end) continue;
      plan_.partitions.push_back({sample_.BorderBefore(at), ordinal, 1});
      plan_.tasks.back().partition_count += 1;
      last = at;
    }
  }

  void CloseGroup() {
    group_files_ = 0;
    group_bytes_ = 0;
  }

  const RowSample& sample_;
  const PlanOptions& options_;
  const int level_min_;
  RewritePlan plan_;
  int group_files_ = 0;      // whole files in the last partition, which may take more
  double group_bytes_ = 0;
};

}  // namespace

RewritePlan PlanRewrite(const RowSample& sample, const PlanOptions& options) {
  return Planner(sample, options).Run();
}

PartitionFinder::PartitionFinder(const RewritePlan& plan, const RowSample& sample)
    : sample_(sample) {
  for (size_t i = 1; i < plan.partitions.size(); ++i) begins_.push_back(plan.partitions[i].begin);
}

size_t PartitionFinder::Find(const RowPlace& row) const {
  // The borders whose word alone does not put the row before them; among equals ties decide.
  const auto after = std::upper_bound(
      begins_.begin(), begins_.end(), row, [](const RowPlace& place, const Border& border) {
        return place.section != border.section ? place.section < border.section
                                               : place.word < border.word;
      });
  auto at = static_cast<size_t>(after - begins_.begin());
  while (at > 0 && begins_[at - 1].sample >= 0 && sample_.IsBefore(row, begins_[at - 1])) --at;
  return at;
}

}  // namespace grebe::layout
