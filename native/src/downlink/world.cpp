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

void ClientWorld::restart(double ticks, double rate) {
  ticks_ = ticks;
  rate_ = rate;
  clock_ = ServerClock(static_cast<uint64_t>(std::min(1e9 / rate, 1e12)));
  calls_n_ = 0;
}

uint64_t ClientWorld::observe(const WorldMessage &m, uint64_t tick) {
  constexpr double longest = 4611686018427387904.0; // 2^62 ns, about 146 years
  const double ns = static_cast<double>(tick) / ticks_ * 1e9;
  const uint64_t time = static_cast<uint64_t>(ns < longest ? ns : longest);
  clock_.observe(m.now, time);
  return time;
}

void ClientWorld::keep(const WorldMessage &m) {
  calls_n_ = m.processed_n;
  std::copy(m.processed, m.processed + m.processed_n, calls_);
}

} // namespace uplink
