#include "layout/planner.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "base/rng.h"

namespace grebe::layout {
namespace {

constexpr size_t kPlacesMax = 65536;
constexpr size_t kPlacesPerFileMax = 32;
constexpr size_t kPlacesPerFileMin = 2;

struct Place {
  double share = 0;               // of all rows
  std::vector<uint32_t> files;    // that cover it, densest first
};

bool IsEmpty(const Box& box) {
  return std::any_of(box.begin(), box.end(), [](const Interval& range) { return range.empty(); });
}

// As many numbers again, evenly between the first and the last.
void AddSteps(std::vector<int64_t>* sorted) {
  const size_t count = sorted->size();
  if (count < 2) return;
  const int64_t first = sorted->front();
  const double width = static_cast<double>(sorted->back()) - static_cast<double>(first);
  for (size_t i = 1; i < count; ++i) {
    sorted->push_back(first + static_cast<int64_t>(width * static_cast<double>(i) /
                                                   static_cast<double>(count)));
  }
  std::sort(sorted->begin(), sorted->end());
  sorted->erase(std::unique(sorted->begin(), sorted->end()), sorted->end());
}

// Rows are told by nothing but the files' bounds, so places are drawn evenly between bounds, among
// which as many steps of equal width are put: where files are narrow, there are many rows; where
// all are wide, rows are taken to lie evenly. Bounds and steps become 0, 2, 4, ..: each of them is
// a place, and so is the room between two neighbours.
std::vector<Box> SpreadBounds(const std::vector<UpkeepFile>& files) {
  std::vector<Box> out;
  for (const UpkeepFile& file : files) out.push_back(file.box);
  for (size_t c = 0; !files.empty() && c < files[0].box.size(); ++c) {
    std::vector<int64_t> bounds;
    for (const UpkeepFile& file : files) {
      if (file.box[c].empty() || file.box[c] == kEverything) continue;
      bounds.push_back(file.box[c].low);
      bounds.push_back(file.box[c].high);
    }
    std::sort(bounds.begin(), bounds.end());
    bounds.erase(std::unique(bounds.begin(), bounds.end()), bounds.end());
    AddSteps(&bounds);
    const auto last = 2 * std::max<int64_t>(1, static_cast<int64_t>(bounds.size())) - 2;
    const auto rank = [&](int64_t bound) {
      return 2 * (std::lower_bound(bounds.begin(), bounds.end(), bound) - bounds.begin());
    };
    for (size_t f = 0; f < files.size(); ++f) {
      Interval& range = out[f][c];
      if (range.empty()) continue;
      range = range == kEverything ? Interval{0, last} : Interval{rank(range.low),
                                                                  rank(range.high)};
    }
  }
  return out;
}

// Finds the boxes that cover a place: in the order of where they begin in the first column, from
// the last that can on, back to where every box before ends too early.
class Cover {
 public:
  explicit Cover(const std::vector<Box>& boxes) : boxes_(boxes) {
    for (uint32_t i = 0; i < boxes.size(); ++i) {
      if (!IsEmpty(boxes[i])) order_.push_back(i);
    }
    std::stable_sort(order_.begin(), order_.end(), [&](uint32_t a, uint32_t b) {
      return boxes[a][0].low < boxes[b][0].low;
    });
    for (uint32_t i : order_) {
      const int64_t high = boxes[i][0].high;
      ends_.push_back(ends_.empty() ? high : std::max(ends_.back(), high));
    }
  }

  std::vector<uint32_t> Of(const std::vector<int64_t>& place) const {
    std::vector<uint32_t> covering;
    auto at = std::upper_bound(order_.begin(), order_.end(), place[0], [&](int64_t p, uint32_t i) {
                return p < boxes_[i][0].low;
              }) - order_.begin();
    for (; at > 0 && ends_[at - 1] >= place[0]; --at) {
      const Box& box = boxes_[order_[at - 1]];
      bool covers = true;
      for (size_t c = 0; c < box.size() && covers; ++c) covers = box[c].Contains(place[c]);
      if (covers) covering.push_back(order_[at - 1]);
    }
    std::sort(covering.begin(), covering.end());
    return covering;
  }

 private:
  const std::vector<Box>& boxes_;
  std::vector<uint32_t> order_;
  std::vector<int64_t> ends_;     // the greatest end up to here
};

// The files of one group, and which of them cover which place.
class Field {
 public:
  Field(const std::vector<UpkeepFile>& files, std::vector<uint32_t> members, uint64_t seed)
      : members_(std::move(members)) {
    for (uint32_t member : members_) files_.push_back(files[member]);
    boxes_ = SpreadBounds(files_);
    DrawPlaces(seed);
    SetDensities();
  }

  const std::vector<uint32_t>& members() const { return members_; }
  const std::vector<UpkeepFile>& files() const { return files_; }
  const std::vector<Place>& places() const { return places_; }

  // The largest part of `in` in which every file has weight_min on it from files of the part.
  std::vector<bool> Core(std::vector<bool> in, double weight_min) const {
    for (bool again = true; again;) {
      again = false;
      const std::vector<double> weights = Weights(in);
      for (size_t f = 0; f < in.size(); ++f) {
        if (in[f] && weights[f] < weight_min) {
          in[f] = false;
          again = true;
        }
      }
    }
    return in;
  }

  // The weight on each file of `in`: over its places, the others there, thinner ones in proportion.
  std::vector<double> Weights(const std::vector<bool>& in) const {
    std::vector<double> weights(files_.size(), 0);
    for (const Place& place : places_) {
      double thinner = 0;         // the densities after the one looked at
      for (uint32_t f : place.files) thinner += in[f] ? densities_[f] : 0;
      double denser = 0;          // how many come before it
      for (uint32_t f : place.files) {
        if (!in[f]) continue;
        thinner -= densities_[f];
        if (densities_[f] > 0) weights[f] += place.share * (denser + thinner / densities_[f]);
        denser += 1;
      }
    }
    for (size_t f = 0; f < files_.size(); ++f) weights[f] /= widths_[f] > 0 ? widths_[f] : 1;
    return weights;
  }

  // How many of the files of `in` cover the place.
  static int64_t Count(const Place& place, const std::vector<bool>& in) {
    return std::count_if(place.files.begin(), place.files.end(), [&](uint32_t f) { return in[f]; });
  }

 private:
  void DrawPlaces(uint64_t seed) {
    Rng rng(seed);
    const size_t each = std::clamp(kPlacesMax / std::max<size_t>(1, files_.size()),
                                   kPlacesPerFileMin, kPlacesPerFileMax);
    double rows = 0;
    for (const UpkeepFile& file : files_) rows += static_cast<double>(file.rows);
    const Cover cover(boxes_);
    std::vector<int64_t> at;
    for (size_t f = 0; f < files_.size(); ++f) {
      if (IsEmpty(boxes_[f]) || files_[f].rows <= 0) continue;
      for (size_t i = 0; i < each; ++i) {
        at.clear();
        for (const Interval& range : boxes_[f]) {
          const auto width = static_cast<double>(range.high - range.low + 1);
          // The first column is gone through in equal steps, the others at random.
          const double part = at.empty() ? (static_cast<double>(i) + rng.Fraction()) /
                                               static_cast<double>(each)
                                         : rng.Fraction();
          at.push_back(range.low + static_cast<int64_t>(part * width));
        }
        Place place;
        place.share = static_cast<double>(files_[f].rows) / rows / static_cast<double>(each);
        place.files = cover.Of(at);
        places_.push_back(std::move(place));
      }
    }
  }

  void SetDensities() {
    widths_.assign(files_.size(), 0);
    for (const Place& place : places_) {
      for (uint32_t f : place.files) widths_[f] += place.share;
    }
    densities_.assign(files_.size(), 0);
    for (size_t f = 0; f < files_.size(); ++f) {
      if (widths_[f] > 0) densities_[f] = static_cast<double>(files_[f].bytes) / widths_[f];
    }
    for (Place& place : places_) {
      std::stable_sort(place.files.begin(), place.files.end(), [&](uint32_t a, uint32_t b) {
        return densities_[a] > densities_[b];
      });
    }
  }

  std::vector<uint32_t> members_;   // of all files
  std::vector<UpkeepFile> files_;
  std::vector<Box> boxes_;
  std::vector<Place> places_;
  std::vector<double> widths_, densities_;
};

int64_t BytesOf(const std::vector<UpkeepFile>& files, const std::vector<bool>& in) {
  int64_t bytes = 0;
  for (size_t f = 0; f < files.size(); ++f) bytes += in[f] ? files[f].bytes : 0;
  return bytes;
}

uint32_t Find(std::vector<uint32_t>* parents, uint32_t f) {
  while ((*parents)[f] != f) f = (*parents)[f] = (*parents)[(*parents)[f]];
  return f;
}

// Files of the set that meet at some place, directly or by others, are parts of one: for each file
// of the set a number of its part.
std::vector<uint32_t> Parts(const Field& field, const std::vector<bool>& in) {
  std::vector<uint32_t> parents(in.size());
  std::iota(parents.begin(), parents.end(), 0);
  for (const Place& place : field.places()) {
    uint32_t first = UINT32_MAX;
    for (uint32_t f : place.files) {
      if (!in[f]) continue;
      if (first == UINT32_MAX) first = f;
      parents[Find(&parents, f)] = Find(&parents, first);
    }
  }
  for (uint32_t f = 0; f < in.size(); ++f) parents[f] = Find(&parents, f);
  return parents;
}

// The files to rewrite: sets that meet in which every file has weight_min / 2 on it, and all
// together weight_min on average. A set below the average gives up its lightest files until it is
// not, or nothing is left of it.
std::vector<bool> Choose(const Field& field, double weight_min) {
  const size_t count = field.files().size();
  std::vector<bool> chosen(count, false);
  std::vector<bool> open = field.Core(std::vector<bool>(count, true), weight_min / 2);
  while (std::find(open.begin(), open.end(), true) != open.end()) {
    const std::vector<uint32_t> parts = Parts(field, open);
    const std::vector<double> weights = field.Weights(open);
    std::vector<double> weight(count, 0), bytes(count, 0), least(count, weight_min * 1e9);
    for (size_t f = 0; f < count; ++f) {
      if (!open[f]) continue;
      const auto own = static_cast<double>(field.files()[f].bytes);
      weight[parts[f]] += weights[f] * own;
      bytes[parts[f]] += own;
      least[parts[f]] = std::min(least[parts[f]], weights[f]);
    }
    for (size_t f = 0; f < count; ++f) {
      if (!open[f]) continue;
      const uint32_t part = parts[f];
      chosen[f] = weight[part] >= weight_min * bytes[part];
      open[f] = !chosen[f] && weights[f] > least[part] * 1.01;
    }
    open = field.Core(std::move(open), weight_min / 2);
  }
  return chosen;
}

// The same, but only the sets that would be begun at a weight a little above. What a rewrite leaves
// is below weight_min; without the step in between, the places of another table, drawn anew, could
// put it just above.
std::vector<bool> ChooseAndBegin(const Field& field, double weight_min) {
  constexpr double kBeginAbove = 1.3;
  const std::vector<bool> begun = Choose(field, weight_min * kBeginAbove);
  if (std::find(begun.begin(), begun.end(), true) == begun.end()) return begun;
  std::vector<bool> chosen = Choose(field, weight_min);
  const std::vector<uint32_t> parts = Parts(field, chosen);
  std::vector<bool> part_begun(chosen.size(), false);
  for (size_t f = 0; f < chosen.size(); ++f) {
    if (chosen[f] && begun[f]) part_begun[parts[f]] = true;
  }
  for (size_t f = 0; f < chosen.size(); ++f) chosen[f] = chosen[f] && part_begun[parts[f]];
  return chosen;
}

struct Choice {
  double weight_min = 0;
  std::vector<std::vector<bool>> in;    // per field, per file
};

// The set shrinks as weight_min grows, so the least one that fits the budget is found by halving.
Choice ChooseFiles(const std::vector<Field>& fields, const UpkeepOptions& options) {
  const auto choose = [&](double weight_min) {
    Choice choice{weight_min, {}};
    for (const Field& field : fields) choice.in.push_back(ChooseAndBegin(field, weight_min));
    return choice;
  };
  const auto fits = [&](const Choice& choice) {
    int64_t bytes = 0;
    for (size_t i = 0; i < fields.size(); ++i) bytes += BytesOf(fields[i].files(), choice.in[i]);
    return bytes <= options.budget_bytes;
  };
  Choice best = choose(options.weight_min);
  if (fits(best)) return best;
  double low = options.weight_min, high = low;
  for (const Field& field : fields) {
    high = std::max(high, static_cast<double>(field.files().size()) + 1);
  }
  best = choose(high);      // no file has so many others on it: the empty plan
  for (int step = 0; step < 24; ++step) {
    const double middle = (low + high) / 2;
    Choice choice = choose(middle);
    const bool fit = fits(choice);
    (fit ? high : low) = middle;
    if (fit) best = std::move(choice);
  }
  return best;
}

void AddGroups(const Field& field, const std::vector<bool>& in, UpkeepPlan* plan) {
  const std::vector<uint32_t> parts = Parts(field, in);
  std::map<uint32_t, UpkeepGroup> groups;
  std::map<uint32_t, double> shares;
  for (uint32_t f = 0; f < in.size(); ++f) {
    if (!in[f]) continue;
    UpkeepGroup& group = groups[parts[f]];
    group.files.push_back(field.members()[f]);
    group.bytes += field.files()[f].bytes;
    group.rows += field.files()[f].rows;
  }
  for (const Place& place : field.places()) {
    const int64_t count = Field::Count(place, in);
    if (count == 0) continue;
    const uint32_t root = parts[*std::find_if(place.files.begin(), place.files.end(),
                                              [&](uint32_t f) { return in[f]; })];
    groups[root].depth_before += place.share * static_cast<double>(count);
    shares[root] += place.share;
  }
  for (auto& [root, group] : groups) {
    if (shares[root] > 0) group.depth_before /= shares[root];
    plan->files += static_cast<int64_t>(group.files.size());
    plan->bytes += group.bytes;
    plan->rows += group.rows;
    plan->groups.push_back(std::move(group));
  }
}

void AddDepths(const Field& field, const std::vector<bool>& in, double share, UpkeepPlan* plan) {
  for (const Place& place : field.places()) {
    const auto before = static_cast<double>(place.files.size());
    const auto chosen = static_cast<double>(Field::Count(place, in));
    const double after = before - chosen + (chosen > 0 ? 1 : 0);
    plan->depth_before += share * place.share * before;
    plan->depth_after += share * place.share * after;
    plan->depth_max_before = std::max(plan->depth_max_before, before);
    plan->depth_max_after = std::max(plan->depth_max_after, after);
  }
}

}  // namespace

UpkeepPlan PlanUpkeep(const std::vector<UpkeepFile>& files, const UpkeepOptions& options) {
  std::map<int, std::vector<uint32_t>> members;
  double all_rows = 0;
  for (size_t f = 0; f < files.size(); ++f) {
    members[files[f].group].push_back(static_cast<uint32_t>(f));
    all_rows += static_cast<double>(files[f].rows);
  }
  std::vector<Field> fields;
  for (auto& [group, some] : members) fields.emplace_back(files, some, options.seed);
  const Choice choice = ChooseFiles(fields, options);
  UpkeepPlan plan;
  plan.weight_min = choice.weight_min;
  for (size_t i = 0; i < fields.size(); ++i) {
    double rows = 0;
    for (const UpkeepFile& file : fields[i].files()) rows += static_cast<double>(file.rows);
    AddGroups(fields[i], choice.in[i], &plan);
    AddDepths(fields[i], choice.in[i], all_rows > 0 ? rows / all_rows : 0, &plan);
  }
  std::stable_sort(plan.groups.begin(), plan.groups.end(),
                   [](const UpkeepGroup& a, const UpkeepGroup& b) {
                     return a.depth_before > b.depth_before;
                   });
  return plan;
}

}  // namespace grebe::layout
