// The client: messages, bindings, reconnection, events. messages.md.
#pragma once

#include "src/client/bind.hpp"
#include "src/client/channel.hpp"
#include "src/client/events.hpp"
#include "src/client/session.hpp"
#include "src/client/streams.hpp"
#include "src/client/worlds.hpp"

namespace uplink::detail::client {

class Core final : public Client, private CallCounter {
public:
  explicit Core(const Allocator &a)
      : allocator_(a), streams_(bulk_, events_), worlds_(a, reliable_, events_, *this) {}
  Core(const Core &) = delete;
  Core &operator=(const Core &) = delete;
  ~Core();
  Error setup(const ClientConfig &c);
  const Allocator &allocator() const { return allocator_; }

  Error do_bind(const Schema &s, const BindConfig &c, uint8_t *rpc);
  Error do_handle(const Schema &s, uint8_t *handler);
  Error do_open(Bytes name, uint32_t *stream, uint64_t now);
  Streams &streams() { return streams_; }
  Error do_connect(const char *token, size_t n, uint64_t now);
  void do_close(uint8_t code, uint64_t now);
  bool is_open() const { return session_.state() == State::open; }
  void do_receive(Bytes datagram, uint64_t now);
  size_t do_next(Buffer to, uint64_t now);
  uint64_t do_timeout() const;
  void do_rebind(uint64_t now) { session_.rebind(now); }
  bool do_poll(Event *e);
  Error do_call(uint8_t rpc, const Frame &f);
  Error do_send(Bytes message, bool reliable, uint64_t now);
  Error do_request(Bytes body, uint32_t *id, uint64_t now);
  Error do_cancel(uint32_t id);
  Worlds &worlds() { return worlds_; }
  Stats do_stats() const;

private:
  friend struct CoreAccess; // of tests

  enum class Phase : uint8_t { requesting, bound, failed };

  struct Binding {
    const Schema *schema = nullptr;
    BindConfig config;
    Phase phase = Phase::requesting;
    Encoder *encoder = nullptr;
    uint64_t ask_at = 0;
    bool any_described = false;
    Array<uint8_t> described;
  };

  // Handler is an RPC that the server can call.
  struct Handler {
    const Schema *schema = nullptr;
    Frame *frame = nullptr; // of the last event
    size_t size = 0;        // of a frame in an event
  };

  // Incoming is such an RPC that the server has bound in this session.
  struct Incoming {
    Schema *schema = nullptr;   // with the server's factors
    Decoder *decoder = nullptr; // null if it was refused
    uint8_t handler = 0;
    bool reliable = false;
    bool due = false;     // an ack
    uint64_t newest = 0;  // packet number with a frame
    uint64_t dropped = 0; // calls without room, before the next event
  };
  static constexpr size_t max_incoming = 32;

  void step(uint64_t now);
  void opened(uint64_t now);
  void ended();
  void violation(uint64_t now);
  void emit(EventType type, Reason r = Reason::none, uint64_t value = 0);
  void on_data(Bytes m, uint64_t now);
  void on_acks(Bytes acks);
  void on_reports(Bytes m);
  void on_answer(Bytes m, uint64_t now);
  // on_reliable reports whether the message is well-formed.
  bool on_reliable(Bytes m, uint64_t now);
  bool on_request_answer(Bytes m);
  bool on_bind(Bytes m);
  // accept_bind returns the reason of the answer, or -1 if no server sends the request.
  int accept_bind(const ServerBind &r, Incoming *in, ServerBindAnswer *a);
  void on_call(Bytes payload);
  bool on_reliable_call(Bytes payload);
  void take_call(Incoming *in, const Call &c);
  size_t next_acks(uint8_t *to, uint64_t now);
  uint64_t acks_due() const;
  void release_decoders();
  void deliver(uint64_t now);
  void release_encoders();
  bool queue(Bytes head, Bytes body = {});
  size_t next_bind(uint8_t *to, uint64_t now);
  size_t next_messages(Buffer to, uint64_t now);
  bool next_call(uint8_t rpc, uint64_t *next) const override;

  Allocator allocator_;
  ClientConfig config_;
  Session session_;
  Channel reliable_, bulk_;
  Events events_;
  Array<Binding> bindings_;
  size_t bindings_n_ = 0;

  // Waiting datagrams: sizes in front of messages; payloads share bundles.
  Array<uint8_t> waiting_;
  size_t waiting_n_ = 0;

  Streams streams_;
  Worlds worlds_;
  Array<Handler> handlers_;
  size_t handlers_n_ = 0;
  Array<Incoming> incoming_;
  uint64_t acked_at_ = 0;
  bool was_open_ = false; // the session of this connect was open
  bool before_ = false;   // so was an earlier one
  Token token_;
  uint64_t start_at_ = never; // of the handshake
  uint64_t not_before_ = 0, backoff_ = 0, opened_at_ = 0, quality_at_ = never;
  uint64_t now_ = 0;

  uint32_t server_binds_ = 0;
  uint32_t next_request_ = 1;
  uint32_t requests_[64] = {};
  size_t requests_n_ = 0;
  Bucket game_;
  uint64_t calls_ = 0, acks_ = 0, server_calls_ = 0, server_calls_dropped_ = 0;
  bool shutdown_told_ = false;
};

} // namespace uplink::detail::client
