// The size of the largest datagram that the path to the server carries. datagrams.md, 8.1;
// internal/transport/session/session_path.go is the same in Go. Times are microseconds.
#pragma once

#include "src/client/datagram.hpp"

namespace uplink::detail::client {

// PathSize finds the size by probes, and doubts it if the server reports no large datagrams while the
// client sends some. Its state at the start is also that after a change of an address.
class PathSize {
public:
  // size returns the size of the largest datagram that has arrived, 0 before one has.
  uint16_t size() const { return size_; }
  // limit returns the maximum size of a datagram with a body of a kind that is sent now.
  size_t limit(uint64_t now, uint8_t kind) const;
  // searching reports whether probes are to be sent.
  bool searching() const { return running_; }
  // whole notes that a datagram with a whole body of a kind, or with a part of one, was sent.
  void whole(uint64_t now, uint8_t kind, size_t size);
  // split notes that a body was sent in parts, and reports whether a probe is to be sent.
  bool split(uint64_t now);
  // probe returns the size of the probe to send now, or 0. received is when the last datagram was.
  uint16_t probe(uint64_t now, uint64_t rtt, uint64_t received);
  // answered notes the answer to a probe of a size.
  void answered(uint64_t now, uint64_t size);
  // reported notes the excess of the largest datagram that the server has received between its last two
  // heartbeats.
  void reported(uint64_t now, uint64_t rtt, uint8_t received);

private:
  static constexpr uint64_t none = UINT64_MAX;
  static constexpr uint16_t sizes[] = {872, max_sent, 1232, 1372, 1452, max_datagram};
  static constexpr uint8_t base = 1, steps = 6;
  bool stale(uint64_t now) const;
  void restart(uint8_t step);
  // give_up ends the search at the probed size, and reports whether a smaller one is to be probed.
  bool give_up(uint64_t now);

  uint64_t probed_ = none;  // the last probe of the size that is searched
  uint64_t refuted_ = none; // when probes of the usual size failed
  uint64_t split_ = none;   // when the last body was sent in parts
  uint64_t large_ = none;   // when the last large body of kind data was sent whole, or a probe answered
  uint64_t lastly_ = 0;     // when largest_ became lost_largest
  uint16_t size_ = 0;
  bool doubted_ = false, running_ = true;
  uint8_t step_ = base, failed_ = 0;
  uint8_t unproven_ = 0; // reports in a row that did not confirm large datagrams
  // As excess of datagram.hpp: the largest datagram sent since the last report, between the last two,
  // and in that report.
  uint8_t whole_ = 0, whole_before_ = 0, reported_ = 0;
  uint8_t largest_ = 0; // datagrams as large as whole_
};

} // namespace uplink::detail::client
