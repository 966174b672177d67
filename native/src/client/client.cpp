#include "src/client/core.hpp"

namespace uplink {
namespace {

detail::client::Core *core(Client *c) {
  return static_cast<detail::client::Core *>(c);
}
const detail::client::Core *core(const Client *c) {
  return static_cast<const detail::client::Core *>(c);
}

constexpr uint64_t us = 1000;

} // namespace

const char *text(Reason r) {
  switch (r) {
  case Reason::none:
    return "no reason";
  case Reason::timeout:
    return "nothing arrived from the server";
  case Reason::lost:
    return "the server does not know the session any more";
  case Reason::token_expired:
    return "the token has expired";
  case Reason::token_used:
    return "the token was used before";
  case Reason::token_invalid:
    return "the token was altered, or issued with another key";
  case Reason::token_server:
    return "the token is for another server or route";
  case Reason::token_early:
    return "the token was issued before the server started";
  case Reason::token_ahead:
    return "the token comes from a clock that is ahead of the server's";
  case Reason::server_full:
    return "the server is full";
  case Reason::no_suite:
    return "client and server have no common cipher suite";
  case Reason::version:
    return "the server does not support this version of the protocol";
  case Reason::busy:
    return "the server has too many handshakes";
  case Reason::key:
    return "the server does not have the token's key";
  case Reason::quit:
    return "the session was closed";
  case Reason::shutdown:
    return "the server shuts down";
  case Reason::replaced:
    return "the client id has a new session";
  case Reason::violation:
    return "one end violated the protocol";
  case Reason::limit:
    return "the client exceeded a limit of the server";
  case Reason::refused:
    return "the server refuses the session for the time being";
  case Reason::handover_data:
    return "the data of the handover is not that of its notice";
  case Reason::not_bound:
    return "the other server has not answered the requests to bind in time";
  case Reason::superseded:
    return "another handover has begun";
  case Reason::answers:
    return "the server answers again";
  case Reason::address:
    return "the client does not follow the server to its address";
  case Reason::unreleased:
    return "the former server has not released the client";
  case Reason::no_server:
    return "no program receives at the server's address";
  case Reason::no_memory:
    return "there is no memory for another session, or too many sessions end";
  }
  return "unknown reason";
}

Error Client::create(const Allocator &a, const ClientConfig &c, Client **out) {
  *out = nullptr;
  auto *client = detail::create<detail::client::Core>(a, a);
  if (client == nullptr) return Error::no_memory;
  const Error e = client->setup(c);
  if (e != Error::ok)
    detail::destroy(a, client);
  else
    *out = client;
  return e;
}

void Client::destroy(Client *c) {
  if (c == nullptr) return;
  const Allocator a = core(c)->allocator();
  detail::destroy(a, core(c));
}

Error Client::bind(const Schema &s, const BindConfig &c, uint8_t *rpc) {
  return core(this)->do_bind(s, c, rpc);
}
Error Client::connect(const char *token, size_t n, uint64_t now) {
  return core(this)->do_connect(token, n, now / us);
}
Error Client::assign(const Address &server, const char *token, size_t n, uint64_t now) {
  return core(this)->do_assign(server, token, n, now / us);
}
Error Client::handle(const Schema &s, uint8_t *handler) {
  return core(this)->do_handle(s, handler);
}
Error Client::open_stream(Bytes name, uint32_t *stream, uint64_t now) {
  return core(this)->do_open(name, stream, now / us);
}
Error Client::write_stream(uint32_t stream, Bytes data, size_t *written, uint64_t now) {
  return core(this)->do_write(stream, data, now / us, written);
}
Error Client::end_stream(uint32_t stream) {
  return core(this)->do_end(stream);
}
Error Client::abort_stream(uint32_t stream, Bytes reason) {
  return core(this)->do_abort(stream, reason);
}
Error Client::stop_stream(uint32_t stream) {
  return core(this)->do_stop(stream);
}
void Client::close(uint8_t code, uint64_t now) {
  core(this)->do_close(code, now / us);
}
bool Client::connected() const {
  return core(this)->is_open();
}
void Client::receive(Bytes d, uint64_t now) {
  core(this)->do_receive(d, now / us, now / us);
}
void Client::receive_at(Bytes d, uint64_t arrived, uint64_t now) {
  core(this)->do_receive(d, arrived / us, now / us);
}
size_t Client::next_datagram(Buffer to, Address *server, uint64_t now) {
  return core(this)->do_next(to, server, now / us);
}
bool Client::uses(const Address &server) const {
  return core(this)->uses(server);
}
uint64_t Client::next_timeout() const {
  return core(this)->do_timeout();
}
void Client::unreachable(const Address &server, uint64_t now) {
  core(this)->do_unreachable(server, now / us);
}
void Client::rebind(uint64_t now) {
  core(this)->do_rebind(now / us);
}
bool Client::poll_event(Event *e) {
  return core(this)->do_poll(e);
}
Error Client::call(uint8_t rpc, const Frame &f, uint64_t now) {
  return core(this)->do_call(rpc, f, now / us);
}
bool Client::next_call(uint8_t rpc, uint64_t *session, uint64_t *sequence) const {
  return core(this)->do_next_call(rpc, session, sequence);
}
Pace Client::pace(uint8_t rpc, uint64_t now) const {
  return core(this)->do_pace(rpc, now / us);
}
Error Client::send(Bytes m, bool reliable, uint64_t now) {
  return core(this)->do_send(m, reliable, now / us);
}
size_t Client::reliable_room(uint64_t now) const {
  return core(this)->do_room(now / us);
}
Error Client::request(Bytes body, uint32_t *id, uint64_t now) {
  return core(this)->do_request(body, id, now / us);
}
Error Client::cancel(uint32_t id) {
  return core(this)->do_cancel(id);
}
Error Client::subscribe(const char *name, WorldReceiver &r, uint16_t ack_hz, uint8_t *world) {
  return core(this)->do_subscribe(name, r, ack_hz, world);
}
Error Client::unsubscribe(uint8_t world) {
  return core(this)->do_unsubscribe(world);
}
Stats Client::stats() const {
  return core(this)->do_stats();
}

} // namespace uplink
