#include "uplink/clock.hpp"

#include <algorithm>

namespace uplink {
namespace detail {
namespace {

constexpr int64_t second = 1000000000, ms = 1000000;
constexpr int64_t min_rate = Line::one / 4, max_rate = 2 * Line::one;
constexpr int64_t exact_rate = Line::one / 100;  // a rate closer to one than this counts as one
constexpr int64_t changed_rate = Line::one / 25; // difference above which the quick rate is used
constexpr int period_bins = 5;
constexpr int64_t silence = 3; // a slope across more than this many times the shortest span is ignored
constexpr int64_t most_apart = int64_t{1} << 61;

} // namespace

Line::Line(int64_t interval) : bin_(std::max(100 * ms, std::min(interval, 10 * second) * 5 / 4)) {}

void Line::restart(Point p) {
  best_ = before_ = current_ = p;
  since_ = begun_ = p.at;
  complete_ = 0;
}

void Line::follow(Point p) {
  if (p.at - since_ > period_bins * bin_) {
    before_ = best_;
    best_ = p;
    since_ = p.at;
  }
  raise(p);
  put(p);
}

void Line::raise(Point p) {
  if (through(p, best_.at) > best_.server) best_ = p;
}

void Line::put(Point p) {
  if (p.at - begun_ >= bin_) {
    ring_[complete_ % bins] = current_;
    complete_++;
    current_ = p;
    begun_ = p.at;
    measure();
  } else if (through(p, current_.at) > current_.server) {
    current_ = p;
  }
}

// measure measures the rate from the complete bins. It uses the quick rate only if it is far from
// the precise one.
void Line::measure() {
  int64_t quick = 0, precise = 0;
  if (!slope(quick_lag, quick_pairs, &quick)) return;
  int64_t rate = quick;
  if (slope(precise_lag, precise_pairs, &precise) &&
      std::max(quick - precise, precise - quick) <= changed_rate)
    rate = precise;
  if (std::max(rate - one, one - rate) <= exact_rate) rate = one;
  rate_ = std::clamp(rate, min_rate, max_rate);
}

// slope sets the median slope between the newest bins and the bins that are lag older. It reports
// whether more than half of the pairs exist.
bool Line::slope(int lag, int pairs, int64_t *rate) const {
  int64_t slopes[precise_pairs];
  int n = 0;
  for (int64_t i = complete_ - 1; i >= std::max<int64_t>(lag, complete_ - pairs); i--) {
    const Point &to = ring_[i % bins], &from = ring_[(i - lag) % bins];
    const int64_t span = to.at - from.at;
    if (span <= 0 || span > silence * lag * bin_) continue;
    const int64_t rise =
        std::min(to.server - from.server, 2 * max_rate / one * span); // limited, because more would overflow
    slopes[n++] = rise * one / span;
  }
  if (n <= pairs / 2) return false;
  std::sort(slopes, slopes + n);
  *rate = slopes[n / 2];
  return true;
}

int64_t Line::at(int64_t now) const {
  return std::max(through(best_, now), through(before_, now));
}

int64_t Line::scale(int64_t d) const {
  d = std::clamp(d, -most_apart / 2, most_apart / 2);
  return d / one * rate_ + d % one * rate_ / one;
}

int64_t Playback::step(int64_t now, int64_t want, const Line &l) {
  if (!playing_) {
    playing_ = true;
    now_ = now;
    at_ = want;
    return want;
  }
  const int64_t step = std::max<int64_t>(0, now - now_), advance = l.scale(step);
  now_ += step;
  at_ += advance;
  const int64_t behind = want - at_, off = std::max(behind, -behind);
  int64_t most =
      std::max(step / 20, std::min(std::min(off, second) * std::min(step, second) / max_slew, step / 2));
  if (behind < 0) most = std::min(most, advance / 2);
  at_ = behind > max_slew ? want : at_ + std::clamp(behind, -most, most);
  return at_;
}

void Playback::limit(int64_t at) {
  at_ = std::min(at_, at);
}

} // namespace detail

void ServerClock::observe(uint64_t now, uint64_t server) {
  constexpr int64_t max_jump = 1000000000;
  constexpr uint64_t latest = uint64_t{1} << 61; // differences of times below it cannot overflow
  if (server > latest || now > latest) return;
  const detail::Point p = {static_cast<int64_t>(now), static_cast<int64_t>(server)};
  if (!started_ || (p.server > newest_ && (p.at - p.server) - (arrived_ - newest_) < -max_jump)) {
    line_.restart(p);
    probing_ = false;
  } else if (p.server <= newest_) {
    line_.raise(p);
    return;
  } else {
    if (!probing_ && p.at - arrived_ > 2 * line_.bin()) {
      probing_ = true;
      probe_ = p;
      since_ = p.at;
      lag_ = line_.at(p.at) - p.server;
    }
    if (probing_) { // the line stays unchanged until the probe ends
      line_.raise(p);
      line_.put(p);
      compare(p);
    } else {
      line_.follow(p);
    }
  }
  started_ = true;
  newest_ = p.server;
  arrived_ = p.at;
}

// compare adds a packet to the probe. If the server stood still during the probe, the line restarts
// at its end.
void ServerClock::compare(detail::Point p) {
  if (line_.through(p, probe_.at) > probe_.server) probe_ = p;
  if (p.at - since_ < line_.bin()) return;
  const int64_t lag = line_.at(p.at) - line_.through(probe_, p.at), little = line_.bin() / 8;
  if (lag > little && lag < lag_ - line_.bin() / 2) { // the server catches up
    since_ = p.at;
    lag_ = lag;
    return;
  }
  probing_ = false;
  if (lag <= little) return;
  line_.restart(probe_);
  if (lag > detail::max_slew) play_ = {};
}

bool ServerClock::server(uint64_t now, uint64_t one_way, uint64_t *time) {
  constexpr uint64_t latest = uint64_t{1} << 61;
  if (!started_ || now > latest) return false;
  const int64_t at = static_cast<int64_t>(now), way = static_cast<int64_t>(std::min(one_way, latest));
  const int64_t t = play_.step(at, line_.at(at) + line_.scale(way), line_);
  *time = static_cast<uint64_t>(std::max<int64_t>(t, 0));
  return true;
}

} // namespace uplink
