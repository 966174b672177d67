// Byte streams over the bulk channel, both ends of them. messages.md, 7.
#pragma once

#include "src/client/channel.hpp"
#include "src/client/events.hpp"
#include "src/client/session.hpp"

namespace uplink::detail::client {

// Streams keeps no data: what the writers send waits in the channel, and what arrives in the queue of
// events or, without room there, in the channel. Times are microseconds.
class Streams {
public:
  static constexpr size_t max_message = 1149;

  Streams(Channel &c, Events &e) : channel_(c), events_(e) {}
  // configure sets whether the program reads streams, and the bytes that it may send in a second.
  void configure(bool reads, uint32_t rate) {
    reads_ = reads;
    max_rate_ = rate_ = rate;
  }
  // start begins a session: streams of an earlier one are over.
  void start(uint64_t now);

  // receive handles a message of the other end. It reports whether that is well-formed.
  bool receive(Bytes message, uint64_t now);
  // polled tells that the program got an event of a stream.
  void polled(const Event &e);
  // send passes messages that are due to the channel.
  void send(uint64_t now);
  // due reports whether there are any, and room for one.
  bool due() const;

  Error open(Bytes name, uint64_t now, uint32_t *stream);
  Error write(uint32_t stream, Bytes data, uint64_t now, size_t *written);
  Error end(uint32_t stream);
  Error abort(uint32_t stream, Bytes reason);
  // stop ends the reading of a stream before its end.
  Error stop(uint32_t stream);

private:
  static constexpr uint32_t window = 65536;
  static constexpr uint32_t slots = 8;

  struct Writer {
    uint32_t id = 0; // 0: the number is free
    uint32_t credit = 0;
    bool over = false; // end or abort was sent
    bool ended = false;
  };
  struct Reader {
    uint32_t id = 0;
    uint32_t left = 0; // bytes that the writer may send
    uint32_t read = 0; // bytes that the program got since the last credit
    bool open = false; // neither end nor abort came
    bool over = false; // the program is finished: done is due, or was sent
    bool done = true;  // done was sent
    uint8_t result = 0;
  };

  bool on_open(Reader *r, Bytes name, uint64_t now);
  bool on_writer(uint8_t kind, Reader *r, Bytes body);
  bool on_reader(uint8_t kind, uint8_t number, Bytes body);
  bool credit_due(const Reader &r) const { return !r.over && r.open && r.read >= window / 4; }
  bool tell(uint8_t kind, uint32_t number, Bytes body);
  void adapt(uint64_t now);
  Writer *writer(uint32_t stream);
  uint32_t number(const Writer *w) const { return static_cast<uint32_t>(w - writers_); }

  Channel &channel_;
  Events &events_;
  bool reads_ = false;
  uint32_t max_rate_ = 0, rate_ = 0;
  uint32_t next_ = 1; // id
  Writer writers_[slots];
  Reader readers_[slots];
  Bucket opens_, peer_opens_, bytes_;
  uint64_t adapt_at_ = 0, least_rtt_ = UINT64_MAX;
};

} // namespace uplink::detail::client
