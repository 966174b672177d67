// Sending data of the program, and the choice of the server.
#include "src/client/core.hpp"

#include <algorithm>

namespace uplink::detail::client {
namespace {

// Number of queued reliable messages from which on no reliable call is sent.
constexpr size_t max_calls_waiting = 256;
// The server's limit of game messages and requests, in bytes. Each message counts message_cost
// bytes more.
constexpr uint64_t message_rate = 65536, message_burst = 131072, message_cost = 64;
constexpr size_t max_game_message = 8192, request_header = 6;

} // namespace

Error Core::do_call(uint8_t rpc, const Frame &f, uint64_t now) {
  Link &l = *active_;
  if (rpc >= rpcs_n_) return Error::invalid;
  if (!l.is_open()) return Error::closed;
  if (l.bindings[rpc].phase != Phase::bound) return Error::unbound;
  const BindConfig &c = rpcs_[rpc].config;
  // If the queue is full, the call is not encoded, so the codec loses no frame.
  if (c.reliable ? l.reliable.waiting() >= max_calls_waiting || !l.reliable.has_room(max_body)
                 : l.waiting_n + 2 + max_body > l.waiting.size())
    return c.reliable ? Error::backlog : Error::full;
  const Error e = l.bindings[rpc].encoder->hold(f);
  if (e != Error::ok) return e;
  calls_++;
  called_at_ = now;
  return l.bindings[rpc].encoder->waiting() <= c.batch ? Error::ok : l.flush(rpc, c.reliable);
}

bool Core::do_next_call(uint8_t rpc, uint64_t *session, uint64_t *sequence) const {
  const Link &l = *active_;
  if (rpc >= rpcs_n_ || !l.is_open() || l.bindings[rpc].phase != Phase::bound) return false;
  *session = l.bindings[rpc].session;
  return l.next_call(rpc, sequence);
}

Error Core::do_send(Bytes m, bool reliable_channel, uint64_t now) {
  Link &l = *active_;
  if (!l.is_open()) return Error::closed;
  if (m.size > (reliable_channel ? max_game_message : l.session.max_data() - 1)) return Error::invalid;
  if (reliable_channel && !l.reliable.has_room(1 + m.size)) return Error::backlog;
  if (!game_.take(m.size + message_cost, message_rate, message_burst, now)) return Error::too_fast;
  static const uint8_t type = 0xc4;
  if (reliable_channel) return l.reliable.send({&type, 1}, m) ? Error::ok : Error::no_memory;
  return l.queue({&type, 1}, m) ? Error::ok : Error::full;
}

size_t Core::do_room(uint64_t now) const {
  if (!is_open()) return 0;
  Bucket game = game_;
  game.take(0, message_rate, message_burst, now);
  const size_t room = active_->reliable.room();
  if (room < request_header || game.level < message_cost) return 0;
  return std::min({room - request_header, static_cast<size_t>(game.level - message_cost), max_game_message});
}

Error Core::do_request(Bytes body, uint32_t *id, uint64_t now) {
  Link &l = *active_;
  if (!l.is_open()) return Error::closed;
  if (body.size > max_game_message) return Error::invalid;
  if (l.requests_n == 64) return Error::full;
  if (!l.reliable.has_room(request_header + body.size)) return Error::backlog;
  if (!game_.take(body.size + message_cost, message_rate, message_burst, now)) return Error::too_fast;
  uint8_t head[request_header] = {0xcf, 0};
  store_little(head + 2, 4, next_request_);
  if (!l.reliable.send({head, request_header}, body)) return Error::no_memory;
  *id = next_request_++;
  l.requests[l.requests_n++] = *id;
  return Error::ok;
}

Error Core::do_cancel(uint32_t id) {
  for (Link *l = links_; l != nullptr; l = l->next)
    for (size_t i = 0; i < l->requests_n; i++) {
      if (l->requests[i] != id) continue;
      uint8_t m[6] = {0xcf, 1};
      store_little(m + 2, 4, id);
      if (!l->reliable.send({m, 6})) return Error::backlog;
      l->requests[i] = l->requests[--l->requests_n];
      return Error::ok;
    }
  return Error::invalid;
}

Error Core::do_open(Bytes name, uint32_t *stream, uint64_t now) {
  return is_open() ? active_->streams.open(name, now, stream) : Error::closed;
}

// A stream continues at the server where it began. At other servers it is not open.
Error Core::do_write(uint32_t stream, Bytes data, uint64_t now, size_t *written) {
  Error e = Error::closed;
  *written = 0;
  for (Link *l = links_; l != nullptr && e == Error::closed; l = l->next)
    e = l->streams.write(stream, data, now, l->session.path_rate(), written);
  return e;
}

Error Core::do_end(uint32_t stream) {
  Error e = Error::closed;
  for (Link *l = links_; l != nullptr && e == Error::closed; l = l->next) e = l->streams.end(stream);
  return e;
}

Error Core::do_abort(uint32_t stream, Bytes reason) {
  Error e = Error::closed;
  for (Link *l = links_; l != nullptr && e == Error::closed; l = l->next)
    e = l->streams.abort(stream, reason);
  return e;
}

Error Core::do_stop(uint32_t stream) {
  Error e = Error::closed;
  for (Link *l = links_; l != nullptr && e == Error::closed; l = l->next) e = l->streams.stop(stream);
  return e;
}

Error Core::do_subscribe(const char *name, WorldReceiver &r, uint16_t ack_hz, uint8_t *world) {
  Worlds *next = standby_ == nullptr || !standby_->is_open() ? nullptr : &standby_->worlds;
  return active_->worlds.subscribe(text_bytes(name), r, ack_hz, world, next);
}

Error Core::do_unsubscribe(uint8_t world) {
  Worlds *next = standby_ == nullptr || !standby_->is_open() ? nullptr : &standby_->worlds;
  return active_->worlds.unsubscribe(world, next);
}

void Core::do_rebind(uint64_t now) {
  for (Link *l = links_; l != nullptr; l = l->next) l->session.rebind(now);
}

} // namespace uplink::detail::client
