// What the program sends, and to which of the servers.
#include "src/client/core.hpp"

namespace uplink::detail::client {

Error Core::do_call(uint8_t rpc, const Frame &f, uint64_t now) {
  Link &l = *active_;
  if (rpc >= rpcs_n_ || !l.is_open() || l.bindings[rpc].phase != Phase::bound) return Error::closed;
  const BindConfig &c = rpcs_[rpc].config;
  // A full queue loses no call of the codec: the call is not coded.
  const bool room =
      c.reliable ? l.reliable.has_room(max_body) : l.waiting_n + 2 + max_body <= l.waiting.size();
  if (!room) return Error::full;
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
  if (m.size > (reliable_channel ? 8192U : l.session.max_data() - 1)) return Error::invalid;
  if (!game_.take(m.size + 64, 65536, 131072, now)) return Error::full;
  static const uint8_t type = 0xc4;
  const bool ok = reliable_channel ? l.reliable.send({&type, 1}, m) : l.queue({&type, 1}, m);
  return ok ? Error::ok : Error::full;
}

Error Core::do_request(Bytes body, uint32_t *id, uint64_t now) {
  Link &l = *active_;
  if (!l.is_open()) return Error::closed;
  if (body.size > 8192) return Error::invalid;
  if (l.requests_n == 64 || !game_.take(body.size + 64, 65536, 131072, now)) return Error::full;
  uint8_t head[6] = {0xcf, 0};
  store_little(head + 2, 4, next_request_);
  if (!l.reliable.send({head, 6}, body)) return Error::full;
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
      if (!l->reliable.send({m, 6})) return Error::full;
      l->requests[i] = l->requests[--l->requests_n];
      return Error::ok;
    }
  return Error::invalid;
}

Error Core::do_open(Bytes name, uint32_t *stream, uint64_t now) {
  return is_open() ? active_->streams.open(name, now, stream) : Error::closed;
}

// A stream continues with the server where it began: of the others, it is not open.
Error Core::do_write(uint32_t stream, Bytes data, uint64_t now, size_t *written) {
  Error e = Error::closed;
  *written = 0;
  for (Link *l = links_; l != nullptr && e == Error::closed; l = l->next)
    e = l->streams.write(stream, data, now, written);
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
