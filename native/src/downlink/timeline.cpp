#include "src/downlink/timeline.hpp"

#include <cstring>

namespace uplink::detail::downlink {
namespace {

constexpr int64_t second = 1000000000;
constexpr int64_t max_slew = second / 4; // difference from which on the clock jumps or stops
constexpr int64_t slew_divisor = 20;     // it runs up to 5 % faster or slower
constexpr size_t min_samples = 32;

} // namespace

void Window::add(int64_t at, int64_t value) {
  while (n_ == size || (n_ > 0 && at - recent_[first_].at > length)) {
    int64_t *old = std::lower_bound(sorted_.begin(), sorted_.begin() + n_, recent_[first_].value);
    std::memmove(old, old + 1, static_cast<size_t>(sorted_.begin() + n_ - (old + 1)) * sizeof(int64_t));
    first_ = (first_ + 1) % size;
    n_--;
  }
  recent_[(first_ + n_) % size] = {at, value};
  int64_t *place = std::lower_bound(sorted_.begin(), sorted_.begin() + n_, value);
  std::memmove(place + 1, place, static_cast<size_t>(sorted_.begin() + n_ - place) * sizeof(int64_t));
  *place = value;
  n_++;
}

bool Timeline::arrive(int64_t now, int64_t time) {
  if (started_) now = std::max(now, arrived_);
  const int64_t offset = now - time, gap = static_cast<int64_t>(config_.gap);
  const int64_t jump = offset > offset_ ? offset - offset_ : offset_ - offset;
  bool restarted = false;
  if (!started_ || (time > newest_ && (now - arrived_ > gap || jump > gap))) {
    restarted = true;
  } else if (time <= newest_) { // late or duplicate: it shows only how short the delay can be
    base_ = std::min(base_, offset);
    return false;
  } else {
    const int64_t was = fastest();
    if (now - since_ > std::max(second, 10 * static_cast<int64_t>(config_.interval))) {
      before_ = base_;
      base_ = offset;
      since_ = now;
    }
    base_ = std::min(base_, offset);
    // If the base increases so much, the path changed, or the server stalled.
    restarted = fastest() - was > max_slew;
  }
  if (restarted)
    restart(now, offset);
  else if (config_.adaptive)
    needed.add(now, now - newest_ - fastest());
  started_ = true;
  newest_ = time;
  arrived_ = now;
  offset_ = offset;
  return restarted;
}

void Timeline::restart(int64_t now, int64_t offset) {
  // A clock that had run past the newest snapshot returns there.
  if (started_) shown_ = std::min(shown_, newest_ + static_cast<int64_t>(config_.extrapolate));
  base_ = before_ = offset;
  since_ = now;
  needed.clear();
}

int64_t Timeline::delay() const {
  if (!config_.adaptive || needed.count() < min_samples) return static_cast<int64_t>(config_.delay);
  return std::max<int64_t>(0,
                           std::min(needed.quantile(config_.late), static_cast<int64_t>(config_.max_delay)));
}

int64_t Timeline::play(int64_t now) {
  const int64_t want = now - fastest() - delay();
  if (!playing_) {
    playing_ = true;
    shown_now_ = now;
    shown_ = want;
    return want;
  }
  const int64_t step = std::max<int64_t>(0, now - shown_now_), limit = step / slew_divisor;
  shown_now_ += step;
  shown_ += step;
  const int64_t behind = want - shown_;
  if (behind > max_slew)
    shown_ = want;
  else if (behind < -max_slew)
    shown_ -= std::min(step, -behind);
  else
    shown_ += std::max(-limit, std::min(behind, limit));
  return shown_;
}

void Timeline::reset() {
  started_ = playing_ = false;
  newest_ = arrived_ = offset_ = base_ = before_ = since_ = shown_ = shown_now_ = 0;
  needed.clear();
}

} // namespace uplink::detail::downlink
