#include "src/downlink/timeline.hpp"

#include <cstring>

namespace uplink::detail::downlink {
namespace {

constexpr int64_t second = 1000000000;
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
    base_.lower(offset);
    return false;
  } else {
    const int64_t was = base_.fastest();
    base_.follow(now, offset, std::max(second, 10 * static_cast<int64_t>(config_.interval)));
    // If the base increases so much, the path changed, or the server stalled.
    restarted = base_.fastest() - was > max_slew;
  }
  if (restarted)
    restart(now, offset);
  else if (config_.adaptive)
    needed.add(now, now - newest_ - base_.fastest());
  started_ = true;
  newest_ = time;
  arrived_ = now;
  offset_ = offset;
  return restarted;
}

void Timeline::restart(int64_t now, int64_t offset) {
  // A clock that had run past the newest snapshot returns there.
  if (started_) playback_.limit(newest_ + static_cast<int64_t>(config_.extrapolate));
  base_.restart(now, offset);
  needed.clear();
}

int64_t Timeline::delay() const {
  if (!config_.adaptive || needed.count() < min_samples) return static_cast<int64_t>(config_.delay);
  return std::max<int64_t>(0,
                           std::min(needed.quantile(config_.late), static_cast<int64_t>(config_.max_delay)));
}

int64_t Timeline::play(int64_t now) {
  return playback_.step(now, now - base_.fastest() - delay());
}

void Timeline::reset() {
  started_ = false;
  newest_ = arrived_ = offset_ = 0;
  base_ = {};
  playback_ = {};
  needed.clear();
}

} // namespace uplink::detail::downlink
