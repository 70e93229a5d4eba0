#include "layout/simulator.h"

#include <algorithm>

#include "base/rng.h"

namespace grebe::layout {
namespace {

struct SimulatedFile {
  std::vector<int64_t> keys;    // sorted
  int level = 0;                // of kTiered and kLevelled
  int64_t run = 0;              // files of one rewrite are one run
};

class Table {
 public:
  explicit Table(const SimulateOptions& options) : options_(options), rng_(options.seed) {}

  Simulation Run() {
    Simulation out;
    for (int64_t append = 1; append <= options_.appends; ++append) {
      Append(append - 1);
      switch (options_.upkeep) {
        case UpkeepPolicy::kPlanner: KeepByPlan(&out); break;
        case UpkeepPolicy::kTiered: KeepTiered(); break;
        case UpkeepPolicy::kLevelled: KeepLevelled(); break;
        case UpkeepPolicy::kNone: break;
      }
      if (append % options_.measure_every == 0 || append == options_.appends) {
        out.steps.push_back(Measure(append));
      }
    }
    for (const SimulatedStep& step : out.steps) {
      out.average_depth += step.average_depth / static_cast<double>(out.steps.size());
      out.max_average_depth = std::max(out.max_average_depth, step.average_depth);
    }
    out.write_amplification = Amplification();
    out.rewrites = rewrites_;
    return out;
  }

 private:
  static constexpr int64_t kKeysPerAppend = 1 << 20;

  int64_t DrawKey(int64_t append) {
    const auto below = [&](int64_t bound) {
      return static_cast<int64_t>(rng_.Below(static_cast<uint64_t>(bound)));
    };
    switch (options_.arrival) {
      case Arrival::kSpread: return below(options_.appends * kKeysPerAppend);
      case Arrival::kLate:
        if (rng_.Chance(0.1)) return below((append + 1) * kKeysPerAppend);
        [[fallthrough]];
      case Arrival::kTime: return append * kKeysPerAppend + below(kKeysPerAppend * 11 / 10);
    }
    return 0;
  }

  void Append(int64_t append) {
    SimulatedFile file;
    for (int64_t i = 0; i < options_.rows_per_append; ++i) file.keys.push_back(DrawKey(append));
    std::sort(file.keys.begin(), file.keys.end());
    file.run = ++runs_;
    appended_ += options_.rows_per_append;
    written_ += options_.rows_per_append;
    files_.push_back(std::move(file));
  }

  // Sorts the rows of the files of `in` and writes them as one run.
  template <class In>
  void Rewrite(const In& in, int level) {
    std::vector<int64_t> keys;
    std::vector<SimulatedFile> kept;
    for (size_t f = 0; f < files_.size(); ++f) {
      if (in(f)) {
        keys.insert(keys.end(), files_[f].keys.begin(), files_[f].keys.end());
      } else {
        kept.push_back(std::move(files_[f]));
      }
    }
    std::sort(keys.begin(), keys.end());
    files_ = std::move(kept);
    const auto rows = static_cast<int64_t>(keys.size());
    const int64_t count = std::max<int64_t>(1, (rows + options_.rows_per_file / 2) /
                                                   options_.rows_per_file);
    ++runs_;
    for (int64_t i = 0; i < count; ++i) {
      SimulatedFile file;
      file.keys.assign(keys.begin() + rows * i / count, keys.begin() + rows * (i + 1) / count);
      file.level = level;
      file.run = runs_;
      files_.push_back(std::move(file));
    }
    written_ += rows;
    ++rewrites_;
  }

  UpkeepPlan MakePlan() const {
    std::vector<UpkeepFile> files;
    for (const SimulatedFile& file : files_) {
      const auto rows = static_cast<int64_t>(file.keys.size());
      files.push_back({{{file.keys.front(), file.keys.back()}}, rows, rows, 0});
    }
    UpkeepOptions options;
    options.weight_min = options_.weight_min;
    return PlanUpkeep(files, options);
  }

  void KeepByPlan(Simulation* out) {
    const UpkeepPlan plan = MakePlan();
    if (plan.groups.empty()) return;
    // A rewrite moves the files that stay, so each is known by its place in the present list.
    std::vector<int> group_of(files_.size(), -1);
    for (size_t g = 0; g < plan.groups.size(); ++g) {
      for (uint32_t f : plan.groups[g].files) group_of[f] = static_cast<int>(g);
    }
    for (size_t g = 0; g < plan.groups.size(); ++g) {
      std::vector<int> rest;
      for (int group : group_of) {
        if (group != static_cast<int>(g)) rest.push_back(group);
      }
      Rewrite([&](size_t f) { return f < group_of.size() && group_of[f] == static_cast<int>(g); },
              0);
      group_of = std::move(rest);
    }
    out->second_plan_bytes += MakePlan().bytes;
  }

  int64_t RunsOf(int level) const {
    std::vector<int64_t> runs;
    for (const SimulatedFile& file : files_) {
      if (file.level == level) runs.push_back(file.run);
    }
    std::sort(runs.begin(), runs.end());
    return std::unique(runs.begin(), runs.end()) - runs.begin();
  }

  int64_t RowsOf(int level) const {
    int64_t rows = 0;
    for (const SimulatedFile& file : files_) {
      rows += file.level == level ? static_cast<int64_t>(file.keys.size()) : 0;
    }
    return rows;
  }

  void KeepTiered() {
    for (int level = 0; RunsOf(level) >= options_.runs; ++level) {
      Rewrite([&](size_t f) { return files_[f].level == level; }, level + 1);
    }
  }

  // Level 0 is the append; level n holds one run of up to runs^n appends.
  void KeepLevelled() {
    int64_t room = options_.rows_per_append;
    for (int level = 0; level == 0 || RowsOf(level) > room; ++level) {
      Rewrite([&](size_t f) { return files_[f].level == level || files_[f].level == level + 1; },
              level + 1);
      room *= options_.runs;
    }
  }

  double Amplification() const {
    return static_cast<double>(written_) / static_cast<double>(appended_);
  }

  SimulatedStep Measure(int64_t appends) const {
    std::vector<Interval> ranges;
    for (const SimulatedFile& file : files_) {
      ranges.push_back({file.keys.front(), file.keys.back()});
    }
    return {appends, static_cast<int64_t>(files_.size()), MeasureDepth(ranges).average_depth,
            Amplification()};
  }

  const SimulateOptions& options_;
  Rng rng_;
  std::vector<SimulatedFile> files_;
  int64_t runs_ = 0, appended_ = 0, written_ = 0, rewrites_ = 0;
};

}  // namespace

Simulation Simulate(const SimulateOptions& options) { return Table(options).Run(); }

}  // namespace grebe::layout
