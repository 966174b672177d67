#include "src/client/path.hpp"

#include <algorithm>

namespace uplink::detail::client {
namespace {

// lower returns the lower of two times. 0 means no time.
uint32_t lower(uint32_t a, uint32_t b) {
  if (a == 0) return b;
  return b == 0 ? a : std::min(a, b);
}

} // namespace

void PathEstimator::ask(uint64_t now, uint32_t number) {
  const uint32_t at = static_cast<uint32_t>(now);
  if (asked_ != 0 && at - asks_[(asked_ - 1) % max_asks].sent < interval) return;
  asks_[asked_ % max_asks] = {at, number};
  asked_++;
}

bool PathEstimator::echoed(uint64_t now, uint32_t number, uint64_t hold) {
  if (number == 0) return false;
  for (Ask &a : asks_) {
    if (a.number != number) continue;
    a.number = 0;
    const uint32_t age = static_cast<uint32_t>(now) - a.sent;
    return hold <= age && age <= max_age && measured_by(now, a.sent, age - hold);
  }
  return false;
}

// measured_by adds the measurement of an ask. If one end stalled, all asks in flight are answered
// late and at the same time. Together they count as one measurement, the lowest.
bool PathEstimator::measured_by(uint64_t now, uint32_t sent, uint64_t rtt) {
  const uint32_t at = static_cast<uint32_t>(now);
  if (echoed_ && static_cast<int32_t>(sent - echoed_at_) < 0 && at - echoed_at_ < interval / 2) {
    if (rtt >= last_) return false;
    samples_--;
  }
  echoed_ = true;
  echoed_at_ = at;
  measured(now, rtt);
  return true;
}

void PathEstimator::measured(uint64_t now, uint64_t rtt) {
  const uint32_t d = static_cast<uint32_t>(std::clamp<uint64_t>(rtt, 1, max_rtt));
  last_ = d;
  recent_[samples_ % recent] = d;
  samples_++;
  uint32_t sorted[recent];
  const size_t n = static_cast<size_t>(std::min<uint64_t>(samples_, recent));
  std::copy(recent_, recent_ + n, sorted);
  std::sort(sorted, sorted + n);
  uint64_t sum = 0, middle = 0;
  for (size_t i = n / 3; i < n - n / 3; i++, middle++) sum += sorted[i];
  rtt_ = static_cast<uint32_t>(sum / std::max<uint64_t>(middle, 1));

  if (samples_ == 1) period_at_ = now;
  for (size_t i = 0; i < periods && now - period_at_ >= period; i++) {
    std::copy_backward(lowest_, lowest_ + periods - 1, lowest_ + periods);
    lowest_[0] = 0;
    period_at_ += period;
  }
  if (now - period_at_ >= period) period_at_ = now;
  lowest_[0] = lower(lowest_[0], d);
}

uint64_t PathEstimator::min_rtt() const {
  uint32_t d = 0;
  for (const uint32_t p : lowest_) d = lower(d, p);
  return d;
}

void Arrivals::arrived(uint64_t now, uint64_t number, bool newest, size_t size) {
  report_.count++;
  if (newest) {
    report_.newest = static_cast<uint16_t>(number);
    report_.arrived = static_cast<uint16_t>(now / report_unit);
  }
  bytes_ += size;
  if (bytes_ >= enough && due_ == none) due_ = std::max(now, next_);
}

Report Arrivals::take(uint64_t now) {
  bytes_ = 0;
  due_ = none;
  next_ = now + interval;
  return report_;
}

} // namespace uplink::detail::client
