#include "engine/layout_picture.h"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <sstream>

#include "engine/html_text.h"
#include "engine/layout_table.h"
#include "parquet/leaf_bounds.h"

namespace grebe::engine {
namespace {

using ScalarPtr = std::shared_ptr<arrow::Scalar>;
using Ends = std::pair<ScalarPtr, ScalarPtr>;   // of one box in one column

constexpr size_t kBoxesMax = 1500;
constexpr double kSide = 420, kLeft = 12, kTop = 12;

// Positions of bounds on one axis.
class Scale {
 public:
  explicit Scale(const std::vector<std::vector<Ends>>& ends) {
    for (const auto& report : ends) {
      for (const auto& [low, high] : report) {
        if (low == nullptr || high == nullptr) continue;
        if (!values_.empty() && !low->type->Equals(*values_[0]->type)) continue;
        values_.push_back(low);
        values_.push_back(high);
      }
    }
    std::sort(values_.begin(), values_.end(), Before);
    values_.erase(std::unique(values_.begin(), values_.end(),
                              [](const auto& a, const auto& b) {
                                return pq::CompareScalars(*a, *b) == 0;
                              }),
                  values_.end());
    by_rank_ = !FitsByValue(ends);
  }

  bool by_rank() const { return by_rank_; }
  std::string low() const { return values_.empty() ? "" : ValueText(values_.front()); }
  std::string high() const { return values_.empty() ? "" : ValueText(values_.back()); }

  // Where the box lies; false: a bound is missing, or of another type.
  bool Place(const Ends& ends, double* begin, double* end) const {
    if (ends.first == nullptr || ends.second == nullptr || values_.empty() ||
        !ends.first->type->Equals(*values_[0]->type)) {
      return false;
    }
    *begin = At(ends.first);
    *end = At(ends.second);
    return true;
  }

 private:
  static bool Before(const ScalarPtr& a, const ScalarPtr& b) {
    return pq::CompareScalars(*a, *b) < 0;
  }

  bool FitsByValue(const std::vector<std::vector<Ends>>& ends) {
    if (values_.empty()) return false;
    const auto low = NumberOf(*values_.front()), high = NumberOf(*values_.back());
    if (!low || !high || *high <= *low) return false;
    first_ = *low;
    width_ = *high - *low;
    double middle = 0;
    int64_t count = 0;
    by_rank_ = false;
    for (const auto& report : ends) {
      for (const Ends& box : report) {
        double begin = 0, end = 0;
        if (!Place(box, &begin, &end)) continue;
        middle += (begin + end) / 2;
        ++count;
      }
    }
    middle /= static_cast<double>(std::max<int64_t>(1, count));
    return middle > 0.15 && middle < 0.85;
  }

  double At(const ScalarPtr& value) const {
    if (values_.size() < 2) return 0.5;
    if (!by_rank_) return (NumberOf(*value).value_or(first_) - first_) / width_;
    const auto rank = std::lower_bound(values_.begin(), values_.end(), value, Before) -
                      values_.begin();
    return static_cast<double>(rank) / static_cast<double>(values_.size() - 1);
  }

  std::vector<ScalarPtr> values_;
  bool by_rank_ = false;
  double first_ = 0, width_ = 1;
};

std::string Number(double value) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(1) << value;
  return out.str();
}

std::string Whole(int64_t value) { return CountText(static_cast<double>(value)); }

// Depths 1, 2, 3-4, 5-8, ..: the index of a depth's bin, and its name.
int BinOf(int64_t depth) { return depth <= 1 ? 0 : 64 - __builtin_clzll(depth - 1); }
std::string BinName(int bin) {
  if (bin < 2) return std::to_string(bin + 1);
  return Whole((int64_t{1} << (bin - 1)) + 1) + "\xe2\x80\x93" + Whole(int64_t{1} << bin);
}

}  // namespace

PlacedBoxes PlaceBoxes(const std::vector<const LayoutReport*>& reports) {
  std::vector<std::vector<Ends>> x, y;
  for (const LayoutReport* report : reports) {
    x.emplace_back();
    y.emplace_back();
    for (const LayoutBox& box : report->boxes) {
      x.back().emplace_back(box.x_min, box.x_max);
      y.back().emplace_back(box.y_min, box.y_max);
    }
  }
  const Scale x_scale(x), y_scale(y);
  PlacedBoxes placed;
  const bool one = reports[0]->y_column.empty();
  placed.x = {reports[0]->x_column, x_scale.low(), x_scale.high(), x_scale.by_rank()};
  placed.y = one ? Axis{"order of the files", "first", "last", false}
                 : Axis{reports[0]->y_column, y_scale.low(), y_scale.high(), y_scale.by_rank()};
  for (size_t r = 0; r < reports.size(); ++r) {
    placed.boxes.emplace_back();
    const auto count = static_cast<double>(x[r].size());
    for (size_t i = 0; i < x[r].size(); ++i) {
      PlacedBox box;
      box.known = x_scale.Place(x[r][i], &box.x0, &box.x1);
      if (one) {
        box.y0 = static_cast<double>(i) / count;
        box.y1 = static_cast<double>(i + 1) / count;
      } else {
        box.known = y_scale.Place(y[r][i], &box.y0, &box.y1) && box.known;
      }
      placed.boxes[r].push_back(box);
    }
  }
  return placed;
}

std::string BoxesSvg(const PlacedBoxes& placed, size_t report, const std::string& title) {
  const std::vector<PlacedBox>& boxes = placed.boxes[report];
  const size_t step = (boxes.size() + kBoxesMax - 1) / kBoxesMax;
  const std::string id = "boxes" + std::to_string(report);
  std::ostringstream out;
  out << std::fixed << std::setprecision(1);
  out << "<svg viewBox=\"0 0 " << kSide + 2 * kLeft << " " << kSide + kTop + 44
      << "\" role=\"img\" aria-labelledby=\"" << id << "t " << id << "d\"><title id=\"" << id
      << "t\">" << HtmlText(title) << "</title><desc id=\"" << id << "d\">"
      << Whole(static_cast<int64_t>(boxes.size())) << " files as boxes: across, the range of "
      << HtmlText(placed.x.column) << "; upwards, " << HtmlText(placed.y.column)
      << ". The stronger the colour, the more files cover a place.</desc>\n";
  out << "<rect class=\"frame\" x=\"" << kLeft << "\" y=\"" << kTop << "\" width=\"" << kSide
      << "\" height=\"" << kSide << "\"/>\n";
  const double opacity = std::clamp(6.0 / std::sqrt(static_cast<double>(boxes.size()) + 1), 0.06,
                                    0.35);
  out << "<g class=\"box s" << report << "\" fill-opacity=\"" << std::setprecision(3) << opacity
      << std::setprecision(1) << "\">\n";
  std::string path;
  for (size_t i = 0; i < boxes.size(); i += std::max<size_t>(1, step)) {
    const PlacedBox& box = boxes[i];
    // A range of one value is still drawn.
    const double width = std::max(1.5, (box.x1 - box.x0) * kSide);
    const double height = std::max(1.5, (box.y1 - box.y0) * kSide);
    const double x = std::min(kLeft + box.x0 * kSide, kLeft + kSide - width);
    const double y = std::max(kTop + (1 - box.y1) * kSide, kTop);
    out << "<rect" << (box.known ? "" : " class=\"unknown\"") << " x=\"" << x << "\" y=\"" << y
        << "\" width=\"" << width << "\" height=\"" << height << "\"/>\n";
    path += (path.empty() ? "M" : "L") + Number(x + width / 2) + " " + Number(y + height / 2);
  }
  out << "</g>\n<path class=\"curve\" d=\"" << path << "\"/>\n";
  const auto print_axis = [&](const char* arrow, const Axis& axis, double y) {
    out << "<text x=\"" << kLeft << "\" y=\"" << y << "\"><tspan class=\"name\">" << arrow << " "
        << HtmlText(axis.column) << "</tspan> from " << HtmlText(axis.low) << " to "
        << HtmlText(axis.high) << (axis.by_rank ? ", by rank" : "") << "</text>\n";
  };
  print_axis("&#8594;", placed.x, kTop + kSide + 18);
  print_axis("&#8593;", placed.y, kTop + kSide + 36);
  out << "</svg>\n";
  if (step > 1) {
    out << "<p class=\"note\">Every " << Whole(static_cast<int64_t>(step)) << "th of "
        << Whole(static_cast<int64_t>(boxes.size())) << " files is drawn.</p>\n";
  }
  return out.str();
}

std::string HistogramSvg(const std::vector<NamedHistogram>& histograms, const std::string& title) {
  std::vector<std::vector<int64_t>> bins(histograms.size());
  int last = 0;
  for (const NamedHistogram& histogram : histograms) {
    for (const auto& [depth, count] : histogram.histogram) last = std::max(last, BinOf(depth));
  }
  for (size_t h = 0; h < histograms.size(); ++h) {
    bins[h].assign(static_cast<size_t>(last) + 1, 0);
    for (const auto& [depth, count] : histograms[h].histogram) bins[h][BinOf(depth)] += count;
  }
  constexpr double kBar = 15, kGap = 9, kName = 84, kWidth = 560, kNumber = 76;
  const double row = kBar * static_cast<double>(histograms.size()) + kGap;
  std::ostringstream out;
  out << std::fixed << std::setprecision(1);
  out << "<svg viewBox=\"0 0 " << kWidth << " " << row * (last + 1)
      << "\" role=\"img\" aria-labelledby=\"histt histd\"><title id=\"histt\">" << HtmlText(title)
      << "</title><desc id=\"histd\">Bars: how many files have each depth.";
  for (size_t h = 0; h < histograms.size(); ++h) {
    out << " " << HtmlText(histograms[h].name) << ":";
    for (int bin = 0; bin <= last; ++bin) {
      out << " depth " << BinName(bin) << ": " << Whole(bins[h][bin]) << ";";
    }
  }
  out << "</desc>\n";
  for (int bin = 0; bin <= last; ++bin) {
    const double top = row * bin;
    out << "<text class=\"end\" x=\"" << kName - 8 << "\" y=\""
        << top + kBar * static_cast<double>(histograms.size()) / 2 + 4 << "\">depth "
        << BinName(bin) << "</text>\n";
    for (size_t h = 0; h < histograms.size(); ++h) {
      // Of its own table's files: the two may have different numbers of them.
      int64_t all = 0;
      for (int64_t count : bins[h]) all += count;
      const int64_t count = bins[h][bin];
      const double width = all == 0 ? 0 : (kWidth - kName - kNumber) * static_cast<double>(count) /
                                              static_cast<double>(all);
      const double y = top + kBar * static_cast<double>(h);
      out << "<rect class=\"bar s" << h << "\" x=\"" << kName << "\" y=\"" << y << "\" width=\""
          << (count > 0 ? std::max(1.0, width) : 0.0) << "\" height=\"" << kBar - 2 << "\"/>";
      if (count > 0) {
        out << "<text x=\"" << kName + width + 6 << "\" y=\"" << y + kBar - 4 << "\">"
            << Whole(count) << "</text>";
      }
      out << "\n";
    }
  }
  out << "</svg>\n";
  return out.str();
}

}  // namespace grebe::engine
