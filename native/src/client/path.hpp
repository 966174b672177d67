// The client's measurements of the path to its server. internal/transport/path is the Go
// counterpart. Times are microseconds.
#pragma once

#include "src/client/datagram.hpp"

namespace uplink::detail::client {

// PathEstimator estimates the round-trip time from asks: random numbers that the client sends and
// that the server echoes. Each ask counts once. The estimator stores the time of each ask.
class PathEstimator {
public:
  static constexpr uint64_t interval = 900000, max_age = 5000000;
  // ask records that an ask with the given random number, which is not 0, is sent now. The ask
  // measures the round-trip time if the last measuring ask was sent at least interval ago.
  void ask(uint64_t now, uint32_t number);
  // echoed measures the round-trip time if number belongs to an outstanding measuring ask that is
  // at most max_age old. hold is the time for which the server held the ask; it must not exceed the
  // age of the ask. echoed reports whether the measurement counts.
  bool echoed(uint64_t now, uint32_t number, uint64_t hold);
  // measured adds a measurement from another source, such as a handshake.
  void measured(uint64_t now, uint64_t rtt);
  // rtt returns the mean of the middle third of the last 9 measurements, 0 before the first.
  uint64_t rtt() const { return rtt_; }
  // min_rtt returns the lowest measurement of the 30 to 40 s before the last measurement, 0 before
  // the first.
  uint64_t min_rtt() const;
  // excess returns by how much the last measurement is above min_rtt.
  uint64_t excess() const { return last_ - min_rtt(); }

private:
  bool measured_by(uint64_t now, uint32_t sent, uint64_t rtt);

  static constexpr size_t max_asks = max_age / interval + 1, recent = 9, periods = 4;
  static constexpr uint64_t period = 10000000, max_rtt = 60000000;
  struct Ask {
    uint32_t sent = 0;   // low bits are unambiguous, because asks are never 71 minutes apart
    uint32_t number = 0; // number of the ask; 0: answered
  };
  Ask asks_[max_asks];
  uint32_t asked_ = 0, samples_ = 0;
  uint32_t rtt_ = 0, last_ = 0;
  uint32_t echoed_at_ = 0; // arrival of the last echo that measured, if echoed_ is set
  bool echoed_ = false;
  uint32_t recent_[recent] = {};
  uint32_t lowest_[periods] = {}; // minimum of the current period, then of earlier periods; 0: none
  uint64_t period_at_ = 0;        // start of the current period
};

// Arrivals counts arriving datagrams, and decides when to report them.
class Arrivals {
public:
  // After patience a report is sent without a message, if enough_alone bytes have arrived.
  static constexpr uint64_t patience = 40000;
  static constexpr size_t enough_alone = 2000;
  // arrived counts a datagram. newest reports whether its packet number is above that of all earlier
  // ones. size is its size with all headers, or 0 if it does not bring a report nearer.
  void arrived(uint64_t now, uint64_t number, bool newest, size_t size);
  // due returns the time from which on a report should be added to a message, or UINT64_MAX.
  uint64_t due() const { return due_; }
  // deadline returns the time at which a report is sent without a message, or UINT64_MAX.
  uint64_t deadline() const { return bytes_ < enough_alone ? none : due_ + patience; }
  // take returns the next report, which is sent at now.
  Report take(uint64_t now);

private:
  static constexpr uint64_t none = UINT64_MAX;
  static constexpr uint64_t interval = 30000; // minimum time between two reports
  static constexpr size_t enough = 1000;      // bytes that have arrived since the last report

  Report report_;
  size_t bytes_ = 0;               // arrived since the last report
  uint64_t due_ = none, next_ = 0; // next_: earliest time of the next report
};

} // namespace uplink::detail::client
