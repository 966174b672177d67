#include "src/downlink/timeline.hpp"

#include <cstring>

namespace uplink::detail::downlink {
namespace {

constexpr size_t min_samples = 32;
// Lowest speed to which playback slows down before the newest snapshot, in percent.
constexpr int64_t brake_percent = 25;

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
    line_.restart({now, time});
  } else if (time <= newest_) { // late or duplicate: it shows only how short the delay can be
    line_.raise({now, time});
    return false;
  } else {
    const int64_t was = line_.at(now);
    line_.follow({now, time});
    // A larger drop of the line means that the path changed or the server stalled.
    restarted = was - line_.at(now) > max_slew;
  }
  if (restarted)
    restart();
  else if (config_.adaptive)
    needed.add(now, line_.at(now) - newest_);
  started_ = true;
  newest_ = time;
  arrived_ = now;
  offset_ = offset;
  return restarted;
}

void Timeline::restart() {
  // If the clock is past the newest snapshot, it moves back to it.
  if (started_) playback_.limit(newest_ + static_cast<int64_t>(config_.extrapolate));
  needed.clear();
}

int64_t Timeline::delay() const {
  if (!config_.adaptive || needed.count() < min_samples) return static_cast<int64_t>(config_.delay);
  return std::max<int64_t>(0,
                           std::min(needed.quantile(config_.late), static_cast<int64_t>(config_.max_delay)));
}

// play returns the server time to show. Before it reaches the newest snapshot, it slows down: after
// a server has become slower, motion is slower until the line follows.
int64_t Timeline::play(int64_t now) {
  const bool started = playback_.playing();
  const int64_t wait = delay(), extrapolate = static_cast<int64_t>(config_.extrapolate),
                from = playback_.at(), passed = std::max<int64_t>(0, now - playback_.now());
  int64_t at = playback_.step(now, line_.at(now) - wait, line_);
  const int64_t end = newest_ + extrapolate,
                zone = (wait + extrapolate - static_cast<int64_t>(config_.interval)) * 2 / 5;
  if (started && zone > 0 && at > end - zone) {
    const int64_t percent = std::max(brake_percent, 100 * std::clamp<int64_t>(end - from, 0, zone) / zone);
    at = std::min(at, std::max(end - zone, from + passed / 100 * percent + passed % 100 * percent / 100));
    playback_.limit(at);
  }
  return at;
}

void Timeline::reset() {
  started_ = false;
  newest_ = arrived_ = offset_ = 0;
  line_ = Line(static_cast<int64_t>(config_.interval));
  playback_ = {};
  needed.clear();
}

} // namespace uplink::detail::downlink
