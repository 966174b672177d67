// Clocks that follow a server by the arrival of what it sends. Times are ns since any start: of the
// client's clock, and of the server's. docs/prediction.md, "One clock".
#pragma once

#include <cstdint>

namespace uplink {

namespace detail {

// Point is a packet of a server time, which arrived at a time of the own clock.
struct Point {
  int64_t at, server;
};

// Line is the server's time as a function of the own time: it has the rate of the server's clock, and goes
// through the packet with the shortest delay of the last one to two periods. So it is late by the shortest
// delay of the path. It follows clock drift and servers that run slower or faster than they should. A slower
// path is recognized after two periods at most.
class Line {
public:
  // one is the rate of a clock that runs as fast as the own one.
  static constexpr int64_t one = 1000000;

  Line() = default;
  // The packets are sent at an interval.
  explicit Line(int64_t interval);
  // restart begins with a packet. The rate stays.
  void restart(Point p);
  // follow adds a packet that is newer than all before.
  void follow(Point p);
  // raise adds a packet that shows only how short the delay can be.
  void raise(Point p);
  // put adds a packet to those by which the rate is measured.
  void put(Point p);
  // at returns the server's time at now.
  int64_t at(int64_t now) const;
  // through returns the server's time at now on a line through p.
  int64_t through(Point p, int64_t now) const { return p.server + scale(now - p.at); }
  // scale returns the time of the server in a duration of the own clock.
  int64_t scale(int64_t d) const;
  int64_t rate() const { return rate_; }
  int64_t bin() const { return bin_; }

private:
  static constexpr int quick_lag = 4, quick_pairs = 9, precise_lag = 8, precise_pairs = 17;
  static constexpr int bins = precise_lag + precise_pairs;

  void measure();
  bool slope(int lag, int pairs, int64_t *rate) const;

  int64_t bin_ = 100000000, rate_ = one;
  Point best_{}, before_{}; // of this period and the one before
  int64_t since_ = 0;       // start of this period
  Point ring_[bins]{};      // the packets of complete bins with the shortest delay
  int64_t complete_ = 0;    // number of bins since the start
  Point current_{};         // that of the bin which began last
  int64_t begun_ = 0;       // when that began
};

// max_slew is the difference from which on a Playback jumps ahead.
constexpr int64_t max_slew = 250000000;

// Playback is a clock that follows a target smoothly and never backward: it runs up to 5 % faster or slower,
// and if it is more than 12.5 ms off, up to half faster or slower. If it is more than max_slew behind, it
// jumps.
class Playback {
public:
  // step returns the time that the clock shows at now. Its target is want, which runs as l does.
  int64_t step(int64_t now, int64_t want, const Line &l);
  // limit sets the clock back to a time, if it is later.
  void limit(int64_t at);
  bool playing() const { return playing_; }
  int64_t at() const { return at_; }
  // now returns the time of the last step.
  int64_t now() const { return now_; }

private:
  int64_t at_ = 0, now_ = 0;
  bool playing_ = false;
};

} // namespace detail

// ServerClock is a client's estimate of the server's time. After a silence it keeps its line until later
// packets show another one: those that arrive first may have waited for this program.
class ServerClock {
public:
  ServerClock() = default;
  // The packets are sent at an interval in ns.
  explicit ServerClock(uint64_t interval) : line_(static_cast<int64_t>(interval)) {}
  // observe adds a packet of a server time, which arrived at now.
  void observe(uint64_t now, uint64_t server);
  // server sets the server's time at now, if the shortest one-way delay from the server is known. Over
  // the calls it does not decrease, unless the server stood still for more than 250 ms. It reports false
  // before the first packet.
  bool server(uint64_t now, uint64_t one_way, uint64_t *time);
  // rate returns the rate of the server's clock: the time that passes there in a second.
  int64_t millionths() const { return line_.rate(); }
  double rate() const { return static_cast<double>(line_.rate()) / static_cast<double>(detail::Line::one); }

private:
  void compare(detail::Point p);

  detail::Line line_;
  detail::Playback play_;
  int64_t newest_ = 0, arrived_ = 0;
  bool started_ = false;
  bool probing_ = false;  // after a silence
  detail::Point probe_{}; // with the shortest delay since then
  int64_t since_ = 0;     // start of the probe
  int64_t lag_ = 0;       // by which the probe was behind the line then
};

// Pace is the state of an RPC's jitter buffer at the server, from its reports, and the rate at which the
// program should call the RPC for it. Without a jitter buffer, all but rate are 0.
struct Pace {
  // The speed at which the program's clock should run so that calls arrive when the server needs them: 1
  // is the usual speed, 1.01 is 1 % faster. It is the rate of the server's ticks, 0.25 to 2, within 25 %, and
  // 1 if nothing was reported for two seconds.
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
  double hz = 0;        // nominal ticks per second
  double rate = 1;      // of the ticks as measured over the last seconds: 1 if there are hz in a second
  uint64_t one_way = 0; // ns, half of the lowest round-trip time
  uint64_t rtt = 0;     // ns

  // input returns the tick in which the server will use a call that is sent now, after the path and the
  // RPC's jitter buffer (Client::pace).
  double input(const Pace &p) const {
    return server + (static_cast<double>(rtt) / 2 + static_cast<double>(p.target)) / 1e9 * hz * rate;
  }
  // shown returns the tick that interpolation with a delay in ns shows now.
  double shown(uint64_t delay) const {
    return server - (static_cast<double>(one_way) * rate + static_cast<double>(delay)) / 1e9 * hz;
  }
};

} // namespace uplink
