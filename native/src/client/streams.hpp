// Byte streams over the bulk channel, both directions. messages.md, 7.
#pragma once

#include "src/client/channel.hpp"
#include "src/client/events.hpp"
#include "src/client/session.hpp"

namespace uplink::detail::client {

// Streams implements the byte streams of one session. Except for the data of a handover, it stores
// no data: data to send waits in the channel, and received data waits in the queue of events or, if
// that is full, in the channel. Times are microseconds.
class Streams {
public:
  static constexpr size_t max_message = 1147;
  static constexpr size_t queue_bytes = 16 * max_segment; // maximum number of bytes queued in the channel
  static constexpr size_t max_payload = 65536;            // maximum size of a handover's data
  enum Result : uint8_t { complete, stopped, unhandled, pending };

  // ids contains the id of the client's next stream, which all links share.
  Streams(const Allocator &a, Channel &c, Events &e, uint32_t &ids)
      : allocator_(a), channel_(c), events_(e), next_(ids) {}
  // configure sets whether the program reads streams, and how many bytes per second it may send.
  void configure(bool reads, uint32_t rate) {
    reads_ = reads;
    max_rate_ = rate;
  }
  // start begins a session. Streams of an earlier session have ended.
  void start();

  // receive handles a message of the other end. It reports whether the message is well-formed.
  bool receive(Bytes message, uint64_t now);
  // polled records that poll_event returned an event of a stream.
  void polled(const Event &e);
  // send passes messages that are due to the channel. rate is that of the path, in bytes/s.
  void send(double rate);
  // due reports whether a message is due and there is room for it.
  bool due(double rate) const;

  Error open(Bytes name, uint64_t now, uint32_t *stream);
  // write passes as much data to the channel as it sends within a short time at the path's rate.
  Error write(uint32_t stream, Bytes data, uint64_t now, double rate, size_t *written);
  Error end(uint32_t stream);
  Error abort(uint32_t stream, Bytes reason);
  // stop ends the reading of a stream before its end.
  Error stop(uint32_t stream);
  // busy reports whether streams are open.
  bool busy() const;
  // fail ends all streams of the program, because the session has ended. It reports whether there
  // was room for all events; otherwise call it again.
  bool fail();

  // refuse_payloads refuses the data of handovers from now on.
  void refuse_payloads() { refuses_ = true; }
  // take_refused reports, once, that the data of a handover was refused. The notice of that
  // handover must be ignored.
  bool take_refused() {
    const bool r = refused_;
    refused_ = false;
    return r;
  }
  // has_payload reports whether the data of a handover has arrived completely. take_payload moves
  // it to to, and returns its size. Call finish_payload after it, to tell the server whether the
  // client has switched.
  bool has_payload() const { return arrived_; }
  size_t take_payload(Array<uint8_t> *to);
  void finish_payload(bool switched);
  // send_payload sends the data of a handover, and takes over its memory.
  void send_payload(Array<uint8_t> *data, size_t n);
  // sent returns the server's answer to send_payload; it is complete if there was no data.
  Result sent() const { return sent_; }

private:
  static constexpr uint32_t window = 65536;
  static constexpr uint32_t slots = 8;

  struct Writer {
    uint32_t id = 0; // 0: the number is unused
    uint32_t credit = 0;
    bool over = false; // the end or abort message was sent
    bool ended = false;
  };
  struct Reader {
    uint32_t id = 0;
    uint32_t left = 0; // bytes that the writer may still send
    uint32_t read = 0; // bytes that the program has received since the last credit
    bool open = false; // neither end nor abort was received
    bool over = false; // the program has finished: done is due, or was sent
    bool done = true;  // done was sent
    uint8_t result = 0;
  };

  bool on_open(Reader *r, Bytes name, uint64_t now);
  bool on_payload(uint8_t kind, Bytes body);
  void pump_payload(double rate);
  // ahead reports whether the channel has enough data to send for now.
  bool ahead(double rate) const;
  bool on_writer(uint8_t kind, Reader *r, Bytes body);
  bool on_reader(uint8_t kind, uint8_t number, Bytes body);
  bool credit_due(const Reader &r) const { return !r.over && r.open && r.read >= window / 4; }
  bool tell(uint8_t kind, uint32_t number, Bytes body);
  Writer *writer(uint32_t stream);
  uint32_t number(const Writer *w) const { return static_cast<uint32_t>(w - writers_); }

  Allocator allocator_;
  Channel &channel_;
  Events &events_;
  uint32_t &next_; // next id
  bool reads_ = false;
  bool refuses_ = false, refused_ = false; // whether data of handovers is refused, and was refused
  bool arrived_ = false;
  Result sent_ = complete;
  uint32_t max_rate_ = 0;
  // Data of handovers from and to the server, and the ids of their streams; 0: none.
  Array<uint8_t> payload_, sending_;
  size_t payload_n_ = 0, sending_n_ = 0, payload_sent_ = 0;
  uint32_t payload_in_ = 0, payload_out_ = 0;
  Writer writers_[slots];
  Reader readers_[slots];
  Bucket opens_, peer_opens_, bytes_;
};

} // namespace uplink::detail::client
