// One reliable channel: a conversation of KCP. reliable.md specifies it.
#pragma once

#include <limits>

#include "src/base/memory.hpp"
#include "src/client/ring.hpp"

namespace uplink::detail::client {

constexpr size_t max_segment = 1149;
constexpr size_t max_reliable = 16384;
constexpr uint32_t window_segments = 64;

// Allowance is how much a channel may send for the first time, in bytes with all headers.
struct Allowance {
  double room = std::numeric_limits<double>::infinity();   // now
  double flight = std::numeric_limits<double>::infinity(); // in flight
};

// Channel is one end of the channel. Times are milliseconds of any clock. It allocates memory for
// queued messages, and for received segments that were not delivered, at most 64 of max_segment
// bytes.
class Channel {
public:
  Channel() = default;
  Channel(const Channel &) = delete;
  Channel &operator=(const Channel &) = delete;
  ~Channel();
  // create sets the limit in bytes of messages that wait to be sent or acknowledged, including
  // their size prefixes of 1 or 2 bytes. If share is false, messages do not share segments, and a
  // message with its size prefix has at most max_segment bytes.
  bool create(const Allocator &a, size_t limit, bool share = true);
  // start begins a session. overhead is the size in bytes of all headers around a body.
  void start(uint32_t conversation, uint64_t timeout, size_t overhead, uint64_t now);

  // send queues a message of 1 to max_reliable bytes: head followed by body. It reports whether the
  // limit and the memory permitted it.
  bool send(Bytes head, Bytes body = {});
  // has_room reports whether the limit leaves room for a message of this size in bytes.
  bool has_room(size_t size) const { return size <= room(); }
  // room returns the size of the largest message for which the limit leaves room, or 0.
  size_t room() const;
  // waiting returns the number of messages that are not acknowledged.
  size_t waiting() const { return waiting_; }
  // unsent returns the number of bytes of messages that were not sent, without headers.
  size_t unsent() const { return tail() - cut_; }
  // input handles a body. It reports whether it is well-formed.
  bool input(Bytes body, uint64_t now);
  // next_size returns the size of the next message if it is complete, or 0.
  size_t next_size();
  // receive copies the next complete message to to, which has room for next_size bytes, and returns
  // its size, or 0.
  size_t receive(uint8_t *to);
  // broken reports whether the session must end: segments form no messages (K-6).
  bool broken() const { return broken_; }
  // dead reports whether a segment was transmitted too often (K-13).
  bool dead() const { return dead_; }
  // idle reports whether all sent bytes are acknowledged.
  bool idle() const { return stream_.size() == 0; }

  // output writes the next body to send, at most 1,173 bytes, and returns its size, or 0.
  // Segments that were sent before are sent again whatever is allowed.
  size_t output(uint8_t *to, uint64_t now, Allowance allowance = {});
  // next returns when output is to be called next, or UINT64_MAX.
  uint64_t next() const;

private:
  struct Out {
    bool acked;
    uint8_t transmissions;
    uint8_t later; // number of acks of later segments, until its next timeout
    bool fast;     // it was retransmitted because of these acks
    uint16_t size;
    uint16_t ends; // number of messages that end in it
    uint32_t at;   // position in the stream
    uint64_t first, last, due;
    uint64_t timeout;
  };
  struct In {
    uint8_t *data; // null: not received
    uint16_t size;
  };
  struct Ack {
    uint32_t sn, ts;
  };

  Out &out(uint32_t sn) { return out_[sn % window_segments]; }
  In &in(uint32_t sn) { return in_[sn % window_segments]; }
  bool pending() const;
  void acknowledge(uint32_t sn, uint64_t now);
  void advance();
  uint32_t after(uint32_t message) const;
  // cut makes the next segment of the stream.
  void cut();
  // tail returns the position in the stream after its last byte.
  uint32_t tail() const { return first_ + static_cast<uint32_t>(stream_.size()); }
  // keep stores a received segment. It reports whether there was memory.
  bool keep(In *s, Bytes data);
  void drop(In *s);
  // received returns a byte that is in order and not delivered yet.
  uint8_t received(size_t at);
  void take(uint8_t *to, size_t n);
  void measure(uint64_t rtt);
  void begin_flush(uint64_t now, Allowance allowance);
  bool wanted(uint32_t sn, uint64_t now);
  void segment(ByteWriter *w, uint8_t cmd, uint32_t ts, uint32_t sn, size_t size = 0) const;
  uint16_t window() const { return static_cast<uint16_t>(window_segments - (rcv_nxt_ - deliver_)); }
  bool pay(size_t n, uint64_t now);

  Allocator allocator_;
  Array<Out> out_;
  Array<In> in_;
  Ring stream_; // messages with size prefixes, from the first unacknowledged segment on
  size_t limit_ = 0;
  bool share_ = true;
  size_t waiting_ = 0;
  uint32_t conversation_ = 0;
  uint64_t timeout_ = 15000;
  size_t overhead_ = 0;

  uint32_t una_ = 0, nxt_ = 0; // first unacknowledged segment, next segment to cut
  // Positions in the stream: of its first byte, of the next segment, and of the first message that
  // does not begin in a segment.
  uint32_t first_ = 0, cut_ = 0, message_ = 0;
  uint32_t remote_window_ = 64;
  uint64_t progress_ = 0; // time of the last new acknowledgment
  uint64_t rto_ = 200, srtt_ = 0, variance_ = 0;
  uint64_t probe_at_ = 0, probe_wait_ = 0;
  uint64_t budget_at_ = 0;
  uint64_t budget_ = 32768;

  uint32_t rcv_nxt_ = 0, deliver_ = 0;
  size_t ready_ = 0;     // bytes that are in order and not delivered
  size_t delivered_ = 0; // bytes of the first segment that were delivered
  uint8_t *spare_[4] = {};
  size_t spare_n_ = 0;
  Ack acks_[128] = {};
  size_t acks_n_ = 0, acks_at_ = 0;
  bool tell_window_ = false, ask_window_ = false;

  bool flushing_ = false;
  uint32_t cursor_ = 0;
  uint64_t flush_at_ = 0;
  bool dead_ = false, broken_ = false;
};

} // namespace uplink::detail::client
