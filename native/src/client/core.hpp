// The client: messages, bindings, reconnection, handovers, events. messages.md.
#pragma once

#include "src/client/link.hpp"

namespace uplink::detail::client {

constexpr size_t max_links = 4;
// Maximum time for one address of another server.
constexpr uint64_t dial_wait = 5 * second;
// Time within which a server of a handover must answer the first of max_hellos hellos.
constexpr uint64_t silent_wait = 2 * second;
constexpr unsigned max_hellos = 3;

// Core holds the links of a client: the current link, during a handover a link to the next server,
// and links to former servers. Times are microseconds.
class Core final : public Client {
public:
  explicit Core(const Allocator &a) : allocator_(a) {}
  Core(const Core &) = delete;
  Core &operator=(const Core &) = delete;
  ~Core();
  Error setup(const ClientConfig &c);
  const Allocator &allocator() const { return allocator_; }

  Error do_bind(const Schema &s, const BindConfig &c, uint8_t *rpc);
  Error do_handle(const Schema &s, uint8_t *handler);
  Error do_connect(const char *token, size_t n, uint64_t now);
  Error continue_at(const Address &server, const char *token, size_t n, uint64_t now);
  Error do_assign(const Address &server, const char *token, size_t n, uint64_t now);
  void do_close(uint8_t code, uint64_t now);
  bool is_open() const { return active_->is_open(); }
  bool uses(const Address &server) const;
  void do_receive(Bytes datagram, uint64_t arrived, uint64_t now);
  size_t do_next(Buffer to, Address *server, uint64_t now);
  uint64_t do_timeout() const;
  static bool is_loopback(const Address &a);
  void do_unreachable(const Address &server, uint64_t now);
  void do_rebind(uint64_t now);
  bool do_poll(Event *e);
  Error do_call(uint8_t rpc, const Frame &f, uint64_t now);
  bool do_next_call(uint8_t rpc, uint64_t *session, uint64_t *sequence) const;
  Pace do_pace(uint8_t rpc, uint64_t now) const;
  Error do_send(Bytes message, bool reliable, uint64_t now);
  size_t do_room(uint64_t now) const;
  Error do_request(Bytes body, uint32_t *id, uint64_t now);
  Error do_cancel(uint32_t id);
  Error do_open(Bytes name, uint32_t *stream, uint64_t now);
  Error do_write(uint32_t stream, Bytes data, uint64_t now, size_t *written);
  Error do_end(uint32_t stream);
  Error do_abort(uint32_t stream, Bytes reason);
  Error do_stop(uint32_t stream);
  Error do_subscribe(const char *name, WorldReceiver &r, uint16_t ack_hz, uint8_t *world);
  Error do_unsubscribe(uint8_t world);
  Stats do_stats() const;

private:
  friend struct CoreAccess; // for tests

  // Handler is an RPC that the server can call.
  struct Handler {
    const Schema *schema = nullptr;
    Frame *frame = nullptr; // frame of the last event
    size_t size = 0;        // size of a frame in an event
  };

  Link *add_link(const Address &server);
  void remove_links();
  void step(uint64_t now);
  void step(Link &l, uint64_t now);
  void opened(Link &l, uint64_t now);
  void ended(Link &l);
  void lost(Reason r);
  void violation(Link &l, uint64_t now);
  // These functions queue mismatch events: one per session for the fields of an RPC, and one for a
  // call of the server that the client refuses.
  void tell_mismatch(uint8_t rpc, Text *text);
  void tell_differences(uint8_t rpc, const BindAnswer &a);
  void tell_refused(const ServerBind &r, const ServerBindAnswer &a);
  void log(LogLevel level, const char *text) const;
  void log(const Event &e) const;
  void log_dropped(uint64_t now);
  void emit(EventType type, Reason r = Reason::none, uint64_t value = 0);
  void deliver(Link &l, uint64_t now);
  size_t next_of(Link &l, Buffer to, uint64_t now);
  uint64_t timeout_of(const Link &l) const;

  void on_data(Link &l, Bytes m, uint64_t now);
  void on_acks(Link &l, Bytes acks);
  void on_reports(Link &l, Bytes m, uint64_t now);
  void on_answer(Link &l, Bytes m, uint64_t now);
  bool start_encoder(Link &l, uint8_t rpc, uint64_t ring, uint64_t prior);
  // on_reliable reports whether the message is well-formed.
  bool on_reliable(Link &l, Bytes m, uint64_t now);
  bool on_request_answer(Link &l, Bytes m);
  bool on_bind(Link &l, Bytes m);
  // accept_bind returns the reason in the answer, or -1 if no server sends such a request.
  int accept_bind(const ServerBind &r, Incoming *in, ServerBindAnswer *a);
  void on_call(Link &l, Bytes payload);
  bool on_reliable_call(Link &l, Bytes payload);
  void take_call(Incoming *in, const Call &c);
  size_t next_bind(Link &l, uint8_t *to, uint64_t now);

  // Handovers. messages.md, 8.
  bool on_handover(Link &l, Bytes m, uint64_t now);
  // follows reports whether the client connects to an address of a handover.
  bool follows(const Address &a) const;
  // spend returns the number of hellos that may be sent to a server that has not answered, and
  // counts them.
  unsigned spend(Link &l);
  void refund(Link &l);
  // wait_of returns the maximum time for the handshake with a server.
  uint64_t wait_of(const Link &l) const;
  void begin_handover(Link &l, uint64_t now);
  void seek(Notice *n, uint64_t now);
  void dial(uint64_t now);
  void standby_opened(Link &l, uint64_t now);
  void standby_ended(Link &l, uint64_t now);
  void stay(Reason r, uint64_t now);
  void try_switch(uint64_t now);
  bool reached() const;
  bool worlds_ready(uint64_t now) const;
  void switch_over(uint64_t now);
  void part(Link &l, uint64_t now);
  void ask_release(Link &l, uint64_t now);
  void unreleased(Link &l, uint64_t now);

  // The search for another server while the current one is silent.
  bool answers(uint64_t now) const;
  Link *seeking() const;
  void promote(Link &l);
  void choose(uint64_t now);
  void end_search(uint64_t now);
  uint64_t ask_at() const;
  void listen(uint64_t now);
  uint64_t listen_at() const;

  uint64_t handover_timeout() const;
  void abandon(Link &l, uint64_t now);
  void tell(const Address &server, uint8_t status, Reason r);

  Allocator allocator_;
  ClientConfig config_;
  uint8_t offered_ = 0;
  Events events_;
  Link *links_ = nullptr; // all links
  Link *active_ = nullptr;
  Array<Rpc> rpcs_;
  size_t rpcs_n_ = 0;
  Array<Handler> handlers_;
  size_t handlers_n_ = 0;

  bool was_open_ = false; // the session of this connect was open once
  bool before_ = false;   // a session of an earlier connect was open once
  Token token_;
  Address server_;            // server of the next session; family 0: the server of connect
  uint64_t start_at_ = never; // time of the handshake
  uint64_t not_before_ = 0, backoff_ = 0, quality_at_ = never;
  uint64_t now_ = 0;

  // The server to which the client may switch.
  Notice *notice_ = nullptr;
  Link *standby_ = nullptr;    // null: no link exists; notice_ may be set
  uint64_t ready_at_ = never;  // time at which everything but worlds was ready
  uint64_t look_at_ = never;   // time of the next attempt to switch
  uint64_t switch_by_ = never; // deadline of a handover
  Bucket notices_;             // cost of a handover: 120
  // Bytes received, and bytes sent to servers of handovers that did not answer.
  uint64_t received_ = 0, unanswered_ = 0;
  uint8_t dialed_ = 0;             // number of the address of notice_ being dialed
  Reason orphaned_ = Reason::none; // reason of the ended session that the standby replaces
  unsigned attempts_ = 0;          // number of calls of continue_at in a search

  // Times of the last call, probe, silent event, and call of continue_at; 0: none.
  uint64_t called_at_ = 0, probed_at_ = 0, told_at_ = 0, continued_at_ = 0;
  uint32_t next_request_ = 1, next_stream_ = 1;
  Bucket game_;
  uint64_t bound_ = 0; // number of bindings in all sessions
  uint64_t calls_ = 0, acks_ = 0, server_calls_ = 0, server_calls_dropped_ = 0, dropped_ = 0;
  uint64_t dropped_logged_ = 0,
           dropped_at_ = 0; // dropped_ at the last line of the log, and when the next may follow
  Stats past_;              // counters of removed links
};

} // namespace uplink::detail::client
