// Clocks that follow a server by the arrival of its packets. Times of the client and of the server
// are ns since an arbitrary start of each. docs/prediction.md, "One clock".
#pragma once

#include <cstdint>

namespace uplink {

namespace detail {

// Point is a packet: the local time of its arrival, and the server time that it carries.
struct Point {
  int64_t at, server;
};

// Line is the server's time as a linear function of the local time. Its slope is the measured rate
// of the server's clock, and it goes through the packet with the shortest delay of the last one to
// two periods. It is therefore behind the server by the shortest one-way delay. It follows clock
// drift and servers that run slower or faster than nominal, and adapts to a longer delay within two
// periods.
class Line {
public:
  // one is the rate of a clock that runs as fast as the local clock.
  static constexpr int64_t one = 1000000;

  Line() = default;
  // interval is the time between two packets of the server.
  explicit Line(int64_t interval);
  // restart starts again from a packet, with the current rate.
  void restart(Point p);
  // follow adds a packet that is newer than all earlier ones.
  void follow(Point p);
  // raise adds a packet that is used only as evidence for a shorter delay.
  void raise(Point p);
  // put adds a packet to the measurement of the rate.
  void put(Point p);
  // at returns the server's time at now.
  int64_t at(int64_t now) const;
  // through returns the server's time at now on a line through p.
  int64_t through(Point p, int64_t now) const { return p.server + scale(now - p.at); }
  // scale converts a duration of the local clock to the server's clock.
  int64_t scale(int64_t d) const;
  int64_t rate() const { return rate_; }
  int64_t bin() const { return bin_; }

private:
  static constexpr int quick_lag = 4, quick_pairs = 9, precise_lag = 8, precise_pairs = 17;
  static constexpr int bins = precise_lag + precise_pairs;

  void measure();
  bool slope(int lag, int pairs, int64_t *rate) const;

  int64_t bin_ = 100000000, rate_ = one;
  Point best_{}, before_{}; // packets with the shortest delay of this period and of the one before
  int64_t since_ = 0;       // start of this period
  Point ring_[bins]{};      // packet with the shortest delay of each complete bin
  int64_t complete_ = 0;    // number of bins since the start
  Point current_{};         // packet with the shortest delay of the current bin
  int64_t begun_ = 0;       // start of the current bin
};

// max_slew is the difference in ns above which a Playback jumps ahead.
constexpr int64_t max_slew = 250000000;

// Playback is a clock that follows a target smoothly and never goes backward. It runs up to 5 %
// faster or slower than the target, or up to 50 % if it is more than 12.5 ms off. If it is more
// than max_slew behind, it jumps to the target.
class Playback {
public:
  // step advances the clock to now and returns its time. want is the target at now, which advances
  // like l.
  int64_t step(int64_t now, int64_t want, const Line &l);
  // limit sets the clock back to at if it is later than that.
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

// ServerClock is a client's estimate of the server's time. After a silence it keeps its line until
// several packets contradict it, because the first packets may have waited in the socket while this
// program was not running.
class ServerClock {
public:
  ServerClock() = default;
  // interval is the time between two packets of the server in ns.
  explicit ServerClock(uint64_t interval) : line_(static_cast<int64_t>(interval)) {}
  // observe adds a packet with a server time that arrived at now.
  void observe(uint64_t now, uint64_t server);
  // server sets *time to the server's time at now. one_way is the shortest one-way delay from the
  // server in ns. *time does not decrease from call to call, unless the server stood still for more
  // than 250 ms. server reports false before the first packet.
  bool server(uint64_t now, uint64_t one_way, uint64_t *time);
  // millionths and rate return the measured rate of the server's clock relative to the local one.
  // Equal rates are 1,000,000 and 1.
  int64_t millionths() const { return line_.rate(); }
  double rate() const { return static_cast<double>(line_.rate()) / static_cast<double>(detail::Line::one); }

private:
  void compare(detail::Point p);

  detail::Line line_;
  detail::Playback play_;
  int64_t newest_ = 0, arrived_ = 0;
  bool started_ = false;
  bool probing_ = false;  // the clock checks its line after a silence
  detail::Point probe_{}; // packet with the shortest delay since the silence
  int64_t since_ = 0;     // start of the probe
  int64_t lag_ = 0;       // time by which the probe was behind the line at its start
};

// Pace is the state of an RPC's jitter buffer at the server, from its reports, and the rate at which the
// program should call the RPC for it. Without a jitter buffer, all but rate are 0.
struct Pace {
  // The speed at which the program's clock should run so that calls arrive when the server needs
  // them: 1 is the nominal speed, 1.01 is 1 % faster. It differs by at most 25 % from the rate of
  // the server's ticks, which is 0.25 to 2. It is 1 if no report was received for two seconds.
  double rate = 1;
  int64_t slack = 0;   // ns, mean time between the arrival of a call and its use; negative: calls are late
  uint64_t target = 0; // ns, the slack that the buffer aims for
  // Number of the server's ticks without a call, and of calls that arrived after their tick, over
  // all sessions.
  uint64_t missing = 0;
  uint64_t late = 0;

  // interval returns the time from one call to the next at this pace in ns. ns is the nominal
  // interval.
  uint64_t interval(uint64_t ns) const { return static_cast<uint64_t>(static_cast<double>(ns) / rate); }
};

// Ticks is a client's estimate of the ticks of a world's server, for prediction and interpolation.
struct Ticks {
  double server = 0;    // the tick that the server is simulating; the fraction is the elapsed part of it
  double hz = 0;        // nominal ticks per second
  double rate = 1;      // rate of the ticks, measured over the last seconds, relative to hz
  uint64_t one_way = 0; // ns, half of the lowest round-trip time
  uint64_t rtt = 0;     // ns

  // input returns the tick in which the server will use a call that is sent now. p is the pace of
  // the RPC, see Client::pace.
  double input(const Pace &p) const {
    return server + (static_cast<double>(rtt) / 2 + static_cast<double>(p.target)) / 1e9 * hz * rate;
  }
  // shown returns the tick that interpolation with the given delay in ns shows now.
  double shown(uint64_t delay) const {
    return server - (static_cast<double>(one_way) * rate + static_cast<double>(delay)) / 1e9 * hz;
  }
};

} // namespace uplink
