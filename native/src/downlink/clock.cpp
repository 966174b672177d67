#include "uplink/clock.hpp"

#include <algorithm>

namespace uplink {
namespace detail {

void Base::restart(int64_t now, int64_t offset) {
  base_ = before_ = offset;
  since_ = now;
}

void Base::follow(int64_t now, int64_t offset, int64_t length) {
  if (now - since_ > length) {
    before_ = base_;
    base_ = offset;
    since_ = now;
  }
  lower(offset);
}

void Base::lower(int64_t offset) {
  base_ = std::min(base_, offset);
}

int64_t Playback::step(int64_t now, int64_t want) {
  if (!playing_) {
    playing_ = true;
    now_ = now;
    at_ = want;
    return want;
  }
  const int64_t step = std::max<int64_t>(0, now - now_), limit = step / 20;
  now_ += step;
  at_ += step;
  const int64_t behind = want - at_;
  if (behind > max_slew)
    at_ = want;
  else if (behind < -max_slew)
    at_ -= std::min(step, -behind);
  else
    at_ += std::max(-limit, std::min(behind, limit));
  return at_;
}

void Playback::limit(int64_t at) {
  at_ = std::min(at_, at);
}

} // namespace detail

void ServerClock::observe(uint64_t now, uint64_t server) {
  constexpr int64_t period = 1000000000, max_gap = 1000000000;
  constexpr uint64_t limit = uint64_t{1} << 61; // no difference overflows below it
  if (server > limit || now > limit) return;
  const int64_t at = static_cast<int64_t>(now), time = static_cast<int64_t>(server), offset = at - time,
                last = arrived_ - newest_, jump = offset > last ? offset - last : last - offset;
  if (!started_ || (time > newest_ && (at - arrived_ > max_gap || jump > max_gap))) {
    base_.restart(at, offset);
  } else if (time <= newest_) {
    base_.lower(offset);
    return;
  } else {
    base_.follow(at, offset, period);
  }
  started_ = true;
  newest_ = time;
  arrived_ = at;
}

bool ServerClock::server(uint64_t now, uint64_t one_way, uint64_t *time) {
  if (!started_) return false;
  const int64_t at = static_cast<int64_t>(now);
  const int64_t t = play_.step(at, at - base_.fastest() + static_cast<int64_t>(one_way));
  *time = static_cast<uint64_t>(std::max<int64_t>(t, 0));
  return true;
}

} // namespace uplink
