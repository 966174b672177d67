// Clocks that follow a server by the arrival of what it sends. Times are ns since any start: of the
// client's clock, and of the server's. docs/prediction.md, "One clock".
#pragma once

#include <cstdint>

namespace uplink {

namespace detail {

// Base is the minimum difference between a packet's arrival and its server time over the last one to
// two periods: the sum of the offset between the clocks and of the shortest delay of the path. It
// follows clock drift. A slower path is recognized after that time.
class Base {
public:
  // restart begins with an offset.
  void restart(int64_t now, int64_t offset);
  // follow adds the offset of a packet, with periods of a length.
  void follow(int64_t now, int64_t offset, int64_t length);
  // lower adds an offset that shows only how short the delay can be.
  void lower(int64_t offset);
  int64_t fastest() const { return base_ < before_ ? base_ : before_; }

private:
  int64_t base_ = 0, before_ = 0; // minimum of this period and the one before
  int64_t since_ = 0;             // start of this period
};

// max_slew is the difference from which on a Playback jumps or stops.
constexpr int64_t max_slew = 250000000;

// Playback is a clock that follows a target smoothly: it runs up to 5 % faster or slower, and never
// backward. If it is more than max_slew behind, it jumps, if so much ahead, it stops.
class Playback {
public:
  // step returns the time that the clock shows at now. Its target is want.
  int64_t step(int64_t now, int64_t want);
  // limit sets the clock back to a time, if it is later.
  void limit(int64_t at);

private:
  int64_t at_ = 0, now_ = 0;
  bool playing_ = false;
};

} // namespace detail

// ServerClock is a client's estimate of the server's time.
class ServerClock {
public:
  // observe adds a packet of a server time, which arrived at now.
  void observe(uint64_t now, uint64_t server);
  // server sets the server's time at now, if the shortest one-way delay from the server is known. Over
  // the calls it does not decrease. It reports false before the first packet.
  bool server(uint64_t now, uint64_t one_way, uint64_t *time);

private:
  detail::Base base_;
  detail::Playback play_;
  int64_t newest_ = 0, arrived_ = 0;
  bool started_ = false;
};

// Pace is the state of an RPC's jitter buffer at the server, from its reports, and the rate at which the
// program should call the RPC for it. Without a jitter buffer, all but rate are 0.
struct Pace {
  // The speed at which the program's clock should run so that calls arrive when the server needs them: 1
  // is the usual speed, 1.01 is 1 % faster. 0.98 to 1.02, and 1 if nothing was reported for two seconds.
  double rate = 1;
  int64_t slack = 0;   // ns, mean time between the arrival of a call and its use; negative: calls are late
  uint64_t target = 0; // ns, the slack at which the buffer aims
  // Ticks of the server without a call, and calls that arrived after their tick, over all sessions.
  uint64_t missing = 0;
  uint64_t late = 0;

  // interval returns the time from one call to the next at this pace, where ns is the usual one.
  uint64_t interval(uint64_t ns) const { return static_cast<uint64_t>(static_cast<double>(ns) / rate); }
};

// Ticks is a client's clock in ticks of a world's server: for prediction and interpolation alike.
struct Ticks {
  double server = 0;    // the tick that the server is simulating, with the part of it that has passed
  double hz = 0;        // ticks per second
  uint64_t one_way = 0; // ns, half of the lowest round-trip time
  uint64_t rtt = 0;     // ns

  // input returns the tick in which the server will use a call that is sent now, after the path and the
  // RPC's jitter buffer (Client::pace).
  double input(const Pace &p) const {
    return server + (static_cast<double>(rtt) / 2 + static_cast<double>(p.target)) / 1e9 * hz;
  }
  // shown returns the tick that interpolation with a delay in ns shows now.
  double shown(uint64_t delay) const {
    return server - (static_cast<double>(one_way) + static_cast<double>(delay)) / 1e9 * hz;
  }
};

} // namespace uplink
