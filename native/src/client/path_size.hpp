// The size of the largest datagram that the path to the server carries. datagrams.md, 8.1.
// internal/transport/session/session_path.go is the Go counterpart. Times are microseconds.
#pragma once

#include "src/client/datagram.hpp"

namespace uplink::detail::client {

// PathSize determines the size by probes. If the client sends large datagrams and the server
// reports none, it uses min_datagram until a probe confirms the size. The state at the start is
// also the state after a change of address.
class PathSize {
public:
  // size returns the size of the largest datagram that has arrived, or 0.
  uint16_t size() const { return size_; }
  // limit returns the current maximum size of a datagram with a body of the given kind.
  size_t limit(uint64_t now, uint8_t kind) const;
  // searching reports whether a search is running: probes are sent.
  bool searching() const { return running_; }
  // whole records that a datagram with a complete body, or with a part of a body, was sent.
  void whole(uint64_t now, uint8_t kind, size_t size);
  // split records that a body was sent in parts, and reports whether to send a probe.
  bool split(uint64_t now);
  // probe returns the size of the probe to send now, or 0. received is the time of the last
  // received datagram.
  uint16_t probe(uint64_t now, uint64_t rtt, uint64_t received);
  // answered records the answer to a probe of the given size.
  void answered(uint64_t now, uint64_t size);
  // reported records the excess of the largest datagram that the server received between its last
  // two heartbeats. It reports whether the path has shrunk.
  bool reported(uint64_t now, uint64_t rtt, uint8_t received);

private:
  static constexpr uint64_t none = UINT64_MAX;
  static constexpr uint16_t sizes[] = {872, max_sent, 1232, 1372, 1452, max_datagram};
  static constexpr uint8_t base = 1, steps = 6;
  bool stale(uint64_t now) const;
  void restart(uint8_t step);
  // give_up ends the search at the probed size, and reports whether to probe a smaller size.
  bool give_up(uint64_t now);

  uint64_t probed_ = none;  // time of the last probe of the current search
  uint64_t refuted_ = none; // last time that probes of max_sent bytes failed
  uint64_t split_ = none;   // last time that a body was sent in parts
  uint64_t large_ = none; // time of the last large data body in one datagram or of the last answer to a probe
  uint64_t lastly_ = 0;   // time of the last increase of largest_
  uint16_t size_ = 0;
  bool doubted_ = false, running_ = true;
  uint8_t step_ = base, failed_ = 0;
  uint8_t unproven_ = 0; // consecutive reports that did not confirm large datagrams
  // In units of excess (datagram.hpp): the largest datagram sent since the last report, the largest
  // sent between the last two reports, and the size in the last report.
  uint8_t whole_ = 0, whole_before_ = 0, reported_ = 0;
  uint8_t largest_ = 0; // number of datagrams sent with size whole_
};

} // namespace uplink::detail::client
