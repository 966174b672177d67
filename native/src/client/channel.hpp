// One reliable channel: a conversation of KCP. reliable.md specifies it.
#pragma once

#include "src/base/memory.hpp"
#include "src/client/bytes.hpp"

namespace uplink::detail::client {

constexpr size_t max_fragment = 1149;
constexpr size_t max_fragments = 15;
constexpr size_t max_reliable = 16384;

// Channel is one end. Times are milliseconds of any clock.
class Channel {
public:
  // create allocates memory for so many segments to send and to receive, powers of two. A channel
  // whose messages have several segments receives 16 or more.
  bool create(const Allocator &a, size_t send, size_t receive);
  // start begins a session. overhead is the size in bytes of all around a body.
  void start(uint32_t conversation, uint64_t timeout, size_t overhead, uint64_t now);

  // send queues a message of 1 to max_reliable bytes, head and then body. It reports whether there was
  // room.
  bool send(Bytes head, Bytes body = {});
  // has_room reports whether send accepts a message of so many bytes.
  bool has_room(size_t size) const { return (size + max_fragment - 1) / max_fragment <= room(); }
  // room returns the number of segments that can be queued.
  size_t room() const { return out_.size() - (end_ - una_); }
  // waiting returns the number of segments that are not acknowledged, or not sent.
  size_t waiting() const { return end_ - una_; }
  // round_trip returns the smoothed round-trip time in ms, or 0.
  uint64_t round_trip() const { return srtt_; }
  // RoundTrips are measurements, in ms.
  struct RoundTrips {
    uint64_t lowest = 0; // at least 1; 0: none
    uint32_t samples = 0;
  };
  // round_trips returns those since restart_round_trips.
  const RoundTrips &round_trips() const { return trips_; }
  void restart_round_trips() { trips_ = {}; }
  // input handles a body. It reports whether it is well-formed.
  bool input(Bytes body, uint64_t now);
  // next_size returns the size of the next message if it is complete, or 0.
  size_t next_size();
  // receive copies the next complete message to to, which has room for next_size bytes, and returns
  // its size, or 0.
  size_t receive(uint8_t *to);
  // broken reports whether the session must end: fragments form no message (K-6).
  bool broken() const { return broken_; }
  // dead reports whether a segment was transmitted too often (K-13).
  bool dead() const { return dead_; }
  // idle reports whether everything sent is acknowledged.
  bool idle() const { return una_ == end_; }

  // output writes the next body to send, at most 1,173 bytes, and returns its size, or 0.
  size_t output(uint8_t *to, uint64_t now);
  // next returns when output is to be called, or UINT64_MAX.
  uint64_t next() const;

private:
  struct Out {
    bool acked;
    uint8_t fragment;
    uint8_t transmissions;
    uint8_t later; // acks of later segments, until its next timeout
    bool fast;     // it was transmitted for them
    uint16_t size;
    uint64_t first, last, due;
    uint64_t timeout;
    uint8_t data[max_fragment];
  };
  struct In {
    bool present;
    uint8_t fragment;
    uint16_t size;
    uint8_t data[max_fragment];
  };
  struct Ack {
    uint32_t sn, ts;
  };

  Out &out(uint32_t sn) { return out_[sn & (static_cast<uint32_t>(out_.size()) - 1)]; }
  In &in(uint32_t sn) { return in_[sn & (static_cast<uint32_t>(in_.size()) - 1)]; }
  bool pending() const;
  void acknowledge(uint32_t sn, uint64_t now);
  void advance();
  void measure(uint64_t rtt);
  void begin_flush(uint64_t now);
  bool wanted(uint32_t sn, uint64_t now);
  void segment(Writer *w, uint8_t cmd, uint8_t frg, uint32_t ts, uint32_t sn, Bytes data) const;
  uint16_t window() const { return static_cast<uint16_t>(in_.size() - (rcv_nxt_ - deliver_)); }
  bool pay(size_t n, uint64_t now);

  Array<Out> out_;
  Array<In> in_;
  uint32_t conversation_ = 0;
  uint64_t timeout_ = 15000;
  size_t overhead_ = 0;

  uint32_t una_ = 0, nxt_ = 0, end_ = 0; // acknowledged, sent, queued
  uint32_t remote_window_ = 64;
  uint64_t progress_ = 0; // the last new acknowledgment
  uint64_t rto_ = 200, srtt_ = 0, variance_ = 0;
  RoundTrips trips_;
  uint64_t probe_at_ = 0, probe_wait_ = 0;
  uint64_t budget_at_ = 0;
  uint64_t budget_ = 32768;

  uint32_t rcv_nxt_ = 0, deliver_ = 0;
  Ack acks_[128] = {};
  size_t acks_n_ = 0, acks_at_ = 0;
  bool tell_window_ = false, ask_window_ = false;

  bool flushing_ = false;
  uint32_t cursor_ = 0;
  uint64_t flush_at_ = 0;
  bool dead_ = false, broken_ = false;
};

} // namespace uplink::detail::client
