#include "uplink/world.hpp"

#include <algorithm>

namespace uplink {

bool ClientWorld::clock(uint64_t now, uint64_t min_rtt, uint64_t rtt, Ticks *t) {
  uint64_t time = 0;
  t->hz = ticks_;
  t->rate = clock_.rate();
  t->one_way = min_rtt / 2;
  t->rtt = rtt;
  if (!clock_.server(now, t->one_way, &time)) return false;
  t->server = static_cast<double>(time) / 1e9 * ticks_;
  return true;
}

bool ClientWorld::processed(uint8_t rpc, uint64_t *next) const {
  for (size_t i = 0; i < calls_n_; i++) {
    if (calls_[i].rpc != rpc) continue;
    *next = calls_[i].next;
    return true;
  }
  return false;
}

bool ClientWorld::compare_rate(uint64_t *rate, bool *off) {
  constexpr int64_t nominal = detail::Line::one, leaves = nominal / 20, returns = nominal / 25;
  const int64_t r = clock_.millionths(), difference = r > nominal ? r - nominal : nominal - r;
  if (off_ ? difference >= returns : difference <= leaves) return false;
  *off = off_ = !off_;
  *rate = static_cast<uint64_t>(r);
  return true;
}

void ClientWorld::restart(double ticks, double rate) {
  ticks_ = ticks;
  rate_ = rate;
  clock_ = ServerClock(static_cast<uint64_t>(std::min(1e9 / rate, 1e12)));
  calls_n_ = 0;
}

bool ClientWorld::valid(uint64_t tick) const {
  constexpr double longest = 2305843009213693952.0; // 2^61 ns, about 73 years
  return tick < uint64_t{1} << 53 && static_cast<double>(tick) / ticks_ * 1e9 <= longest;
}

uint64_t ClientWorld::observe(const WorldMessage &m, uint64_t tick) {
  const auto time = static_cast<uint64_t>(static_cast<double>(tick) / ticks_ * 1e9);
  clock_.observe(m.now, time);
  return time;
}

void ClientWorld::keep(const WorldMessage &m) {
  calls_n_ = m.processed_n;
  std::copy(m.processed, m.processed + m.processed_n, calls_);
}

} // namespace uplink
