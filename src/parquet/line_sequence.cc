#include "parquet/line_sequence.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace grebe::pq {
namespace {

constexpr int64_t kLineBytes = 20;
constexpr size_t kLinesMax = 255;
constexpr uint8_t kSeveralLines = 0x80;

struct Line {
  size_t start = 0;
  size_t end = 0;
  int64_t base = 0;
  int64_t slope = 0;
};

uint64_t Wrap(int64_t value) { return static_cast<uint64_t>(value); }

int64_t Predict(const Line& line, size_t i) {
  return static_cast<int64_t>(static_cast<__int128>(i - line.start) * line.slope >>
                              LineSequence::kSlopeShift);
}

// The slope in fixed point. Beyond what it can hold the line is merely a bad one.
int64_t FixedSlope(double slope) {
  const double scaled = std::round(slope * (1 << LineSequence::kSlopeShift));
  if (!(std::abs(scaled) < 9e18)) return 0;
  return static_cast<int64_t>(scaled);
}

// Moves the line under its values, and gives the bits that the rest needs.
int SettleBase(std::span<const int64_t> values, Line* line) {
  int64_t low = std::numeric_limits<int64_t>::max();
  int64_t high = std::numeric_limits<int64_t>::min();
  for (size_t i = line->start; i < line->end; ++i) {
    const auto miss = static_cast<int64_t>(Wrap(values[i]) - Wrap(Predict(*line, i)));
    low = std::min(low, miss);
    high = std::max(high, miss);
  }
  line->base = low;
  const uint64_t spread = Wrap(high) - Wrap(low);
  return spread == 0 ? 0 : 64 - __builtin_clzll(spread);
}

double Difference(int64_t a, int64_t b) { return static_cast<double>(a) - static_cast<double>(b); }

// Lines from left to right, each as long as a slope exists that stays within `error` of every
// value of it, seen from its first. Empty when more than `lines_max` would be needed.
std::vector<Line> CutLines(std::span<const int64_t> values, double error, size_t lines_max) {
  std::vector<Line> lines;
  size_t start = 0;
  while (start < values.size()) {
    if (lines.size() == lines_max) return {};
    double low = -std::numeric_limits<double>::infinity();
    double high = std::numeric_limits<double>::infinity();
    size_t i = start + 1;
    for (; i < values.size(); ++i) {
      const double run = static_cast<double>(i - start);
      const double rise = Difference(values[i], values[start]);
      const double next_low = std::max(low, (rise - error) / run);
      const double next_high = std::min(high, (rise + error) / run);
      if (next_low > next_high) break;
      low = next_low;
      high = next_high;
    }
    Line line{start, i, 0, 0};
    if (i - start > 1) line.slope = FixedSlope(low + (high - low) / 2);
    lines.push_back(line);
    start = i;
  }
  return lines;
}

struct Fit {
  std::vector<Line> lines;
  int width = 64;
  int64_t bytes = std::numeric_limits<int64_t>::max();
};

int64_t VarintBytes(uint64_t value) { return value == 0 ? 1 : (70 - __builtin_clzll(value)) / 7; }

void Consider(std::span<const int64_t> values, std::vector<Line> lines, Fit* best) {
  if (lines.empty()) return;
  int width = 0;
  for (Line& line : lines) width = std::max(width, SettleBase(values, &line));
  int64_t bytes = 1 + (static_cast<int64_t>(values.size()) * width + 7) / 8;
  if (lines.size() == 1) {
    bytes += VarintBytes(ZigZag(lines[0].base)) + VarintBytes(ZigZag(lines[0].slope));
  } else {
    bytes += 1 + static_cast<int64_t>(lines.size()) * kLineBytes;
  }
  if (bytes < best->bytes) *best = {std::move(lines), width, bytes};
}

Fit FitLines(std::span<const int64_t> values) {
  Fit best;
  const size_t n = values.size();
  Consider(values, {Line{0, n, 0, 0}}, &best);
  if (n > 1) {
    const double slope = Difference(values[n - 1], values[0]) / static_cast<double>(n - 1);
    Consider(values, {Line{0, n, 0, FixedSlope(slope)}}, &best);
  }
  if (n < 3) return best;
  // More lines are only worth a try while their heads cost less than the best fit so far.
  for (int width = best.width - 1; width >= 0; --width) {
    const double error = width == 0 ? 0 : std::ldexp(1.0, width - 1) - 0.5;
    const int64_t left = best.bytes - (static_cast<int64_t>(n) * width + 7) / 8;
    const auto lines_max = std::min<size_t>(static_cast<size_t>(std::max<int64_t>(
                                                left / kLineBytes, 1)), kLinesMax);
    auto lines = CutLines(values, error, lines_max);
    if (lines.empty()) break;
    Consider(values, std::move(lines), &best);
  }
  return best;
}

void PutResiduals(std::span<const int64_t> values, const Fit& fit, std::string* out) {
  const size_t at = out->size();
  out->resize(at + (values.size() * static_cast<size_t>(fit.width) + 7) / 8, '\0');
  size_t bit = 0;
  for (const Line& line : fit.lines) {
    for (size_t i = line.start; i < line.end; ++i) {
      uint64_t rest = Wrap(values[i]) - Wrap(line.base) - Wrap(Predict(line, i));
      for (int left = fit.width; left > 0;) {
        const int shift = static_cast<int>(bit & 7);
        const int take = std::min(left, 8 - shift);
        auto& byte = reinterpret_cast<uint8_t&>((*out)[at + (bit >> 3)]);
        byte = static_cast<uint8_t>(byte | (rest & ((1u << take) - 1)) << shift);
        rest = take == 64 ? 0 : rest >> take;
        bit += static_cast<size_t>(take);
        left -= take;
      }
    }
  }
}

}  // namespace

bool LineSequence::Parse(ByteReader* in, int64_t count) {
  *this = LineSequence();
  if (count < 0 || count > std::numeric_limits<uint32_t>::max()) return false;
  count_ = count;
  if (count == 0) return true;
  uint8_t head = 0;
  if (!in->ReadFixed(&head)) return false;
  width_ = head & 0x7f;
  if (width_ > 64) return false;
  if ((head & kSeveralLines) == 0) {
    uint64_t base = 0, slope = 0;
    if (!in->ReadVarint(&base) || !in->ReadVarint(&slope)) return false;
    base_ = UnZigZag(base);
    slope_ = UnZigZag(slope);
  } else {
    uint8_t lines = 0;
    if (!in->ReadFixed(&lines) || lines < 2) return false;
    line_count_ = lines;
    lines_ = in->cursor();
    if (!in->Skip(static_cast<size_t>(line_count_ * kLineBytes))) return false;
    // The first line holds whatever no other does, so any starts are safe.
  }
  residuals_ = in->cursor();
  const auto bits = static_cast<uint64_t>(count) * static_cast<uint64_t>(width_);
  return in->Skip(static_cast<size_t>((bits + 7) / 8));
}

void LineSequence::FindLine(int64_t i, int64_t* start, int64_t* base, int64_t* slope) const {
  int low = 0;
  int high = line_count_;
  while (high - low > 1) {
    const int middle = low + (high - low) / 2;
    if (LoadLe<uint32_t>(lines_ + middle * kLineBytes) <= i) {
      low = middle;
    } else {
      high = middle;
    }
  }
  const uint8_t* line = lines_ + low * kLineBytes;
  *start = LoadLe<uint32_t>(line);
  *base = LoadLe<int64_t>(line + 4);
  *slope = LoadLe<int64_t>(line + 12);
}

void PutLineSequence(std::span<const int64_t> values, std::string* out) {
  if (values.empty()) return;
  const Fit fit = FitLines(values);
  const bool several = fit.lines.size() > 1;
  PutFixed<uint8_t>(out, static_cast<uint8_t>(fit.width | (several ? kSeveralLines : 0)));
  if (several) {
    PutFixed<uint8_t>(out, static_cast<uint8_t>(fit.lines.size()));
    for (const Line& line : fit.lines) {
      PutFixed<uint32_t>(out, static_cast<uint32_t>(line.start));
      PutFixed<int64_t>(out, line.base);
      PutFixed<int64_t>(out, line.slope);
    }
  } else {
    PutVarint(out, ZigZag(fit.lines[0].base));
    PutVarint(out, ZigZag(fit.lines[0].slope));
  }
  PutResiduals(values, fit, out);
}

}  // namespace grebe::pq
