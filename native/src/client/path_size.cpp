#include "src/client/path_size.hpp"

#include <algorithm>

namespace uplink::detail::client {
namespace {

constexpr uint8_t probe_tries = 3;
// Number of datagrams of the largest size, or of reports, that show that the path has shrunk.
constexpr uint8_t lost_largest = 4, max_unproven = 3;
constexpr uint64_t size_probe_interval = 500000;
constexpr uint64_t stale_time = 1500000;
constexpr uint64_t grow_interval = 60000000;
constexpr uint64_t report_delay = 50000;

} // namespace

void PathSize::restart(uint8_t step) {
  running_ = true;
  step_ = step;
  failed_ = 0;
  probed_ = none;
}

bool PathSize::stale(uint64_t now) const {
  return large_ != none && now - large_ >= stale_time;
}

size_t PathSize::limit(uint64_t now, uint8_t kind) const {
  if (doubted_ || (kind == data && stale(now))) return min_datagram;
  return size_ == 0 ? max_sent : size_;
}

void PathSize::whole(uint64_t now, uint8_t kind, size_t size) {
  const uint8_t e = excess(size);
  if (e == 0) return;
  if (kind == data) large_ = now;
  if (e > whole_) {
    whole_ = e;
    largest_ = 0;
  }
  if (e == whole_ && largest_ < lost_largest) {
    largest_++;
    lastly_ = now;
  }
}

bool PathSize::split(uint64_t now) {
  const bool repeated = split_ != none && now - split_ < stale_time;
  split_ = now;
  if (!repeated) return false; // a single large body does not justify a probe
  if (running_) return true;
  const bool usual = size_ == 0 || size_ >= max_sent;
  if (usual && std::max(whole_, whole_before_) > excess(max_sent)) size_ = 0;
  if (usual || (size_ < max_sent && (refuted_ == none || now - refuted_ >= grow_interval)))
    restart(base);
  else if (size_ > min_datagram && (doubted_ || stale(now)))
    restart(0);
  return running_;
}

uint16_t PathSize::probe(uint64_t now, uint64_t rtt, uint64_t received) {
  if (!running_ || (probed_ != none && now - probed_ < size_probe_interval + rtt)) return 0;
  if (probed_ != none && received > probed_) failed_++;
  if (failed_ == probe_tries && !give_up(now)) return 0;
  probed_ = now;
  return sizes[step_];
}

bool PathSize::give_up(uint64_t now) {
  if (size_ == 0 || size_ >= sizes[step_]) { // no smaller size is known to arrive
    size_ = min_datagram;
    doubted_ = false;
  }
  if (step_ == base) refuted_ = now;
  if (size_ == min_datagram && step_ > 0) {
    restart(static_cast<uint8_t>(step_ - 1));
    return true;
  }
  running_ = false;
  return false;
}

void PathSize::answered(uint64_t now, uint64_t size) {
  if (!running_ || probed_ == none || size != sizes[step_]) return;
  const bool grown = size > size_;
  size_ = std::max(size_, sizes[step_]);
  large_ = now;
  doubted_ = false;
  unproven_ = whole_ = whole_before_ = largest_ = 0;
  if (grown && step_ >= base && step_ + 1 < steps)
    restart(static_cast<uint8_t>(step_ + 1));
  else
    running_ = false;
}

bool PathSize::reported(uint64_t now, uint64_t rtt, uint8_t received) {
  const uint8_t all = std::max(whole_, whole_before_);
  if (all > 0 && received >= all)
    unproven_ = whole_ = 0;
  else if (whole_before_ > 0 && std::max(received, reported_) >= whole_before_)
    unproven_ = 0;
  else if (all > 0)
    unproven_++;
  const bool overdue = now - lastly_ >= rtt + report_delay;
  const bool shrunk = (received < whole_ && largest_ == lost_largest && overdue) || unproven_ == max_unproven;
  if (shrunk) {
    doubted_ = size_ != min_datagram;
    unproven_ = 0;
  }
  whole_before_ = whole_;
  whole_ = largest_ = 0;
  reported_ = received;
  return shrunk;
}

} // namespace uplink::detail::client
