// What a client measures of the path to its server; internal/transport/path is the same in Go.
// Times are microseconds.
#pragma once

#include "src/client/bytes.hpp"

namespace uplink::detail::client {

// PathEstimator estimates the round-trip time from asks: random numbers that the client sends and that
// the server echoes. Each counts once, and the time of an ask is remembered here.
class PathEstimator {
public:
  static constexpr uint64_t interval = 900000, max_age = 5000000;
  // ask notes that an ask with a random number other than 0 is sent. It measures the round-trip time if
  // the last one that does was sent interval ago or earlier.
  void ask(uint64_t now, uint32_t number);
  // echoed measures the round-trip time if number is that of an outstanding ask of the last max_age,
  // which the server has held for a time not longer than its age.
  void echoed(uint64_t now, uint32_t number, uint64_t hold);
  // measured adds a measurement, such as that of a handshake.
  void measured(uint64_t now, uint64_t rtt);
  // rtt returns the mean of the middle third of the last 9 measurements, 0 before the first.
  uint64_t rtt() const { return rtt_; }
  // min_rtt returns the lowest measurement of the 30 to 40 s before the last one, 0 before the first.
  uint64_t min_rtt() const;

private:
  void measured_by(uint64_t now, uint32_t sent, uint64_t rtt);

  static constexpr size_t max_asks = max_age / interval + 1, recent = 9, periods = 4;
  static constexpr uint64_t period = 10000000, max_rtt = 60000000;
  struct Ask {
    uint32_t sent = 0;   // low bits: a session lasts no 71 minutes without an ask
    uint32_t number = 0; // 0: answered
  };
  Ask asks_[max_asks];
  uint32_t asked_ = 0, samples_ = 0;
  uint32_t rtt_ = 0, last_ = 0;
  uint32_t echoed_at_ = 0; // when the last echo that measured arrived, if echoed_
  bool echoed_ = false;
  uint32_t recent_[recent] = {};
  uint32_t lowest_[periods] = {}; // of the current period, then of earlier ones; 0: none
  uint64_t period_at_ = 0;        // when the current period began
};

} // namespace uplink::detail::client
