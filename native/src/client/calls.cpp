// RPCs that the server calls. messages.md, 4.
#include <algorithm>

#include "src/base/nearest.hpp"
#include "src/client/core.hpp"
#include "src/codec/schema.hpp"

namespace uplink::detail::client {
namespace {

// Number of sequences that the short header of a payload distinguishes in datagrams.
constexpr uint64_t short_reach = 64;

enum Refusal : uint8_t { bound = 0, unknown_name = 1, other_fields = 2, other_codec = 3, out_of_range = 5 };

// A frame in an event consists of its components, the lengths of its byte strings, and the byte
// strings.
size_t frame_size(const SchemaImpl &s) {
  return 4 * s.component_count + 2 * s.strings.size() + s.bytes;
}

size_t pack(const Frame &frame, uint8_t *to) {
  const FrameImpl &f = impl(frame);
  const SchemaImpl &s = *f.schema;
  uint8_t *at = to;
  copy(at, f.view.c, 4 * s.component_count);
  at += 4 * s.component_count;
  copy(at, f.view.lengths, 2 * s.strings.size());
  at += 2 * s.strings.size();
  for (size_t i = 0; i < s.strings.size(); i++) {
    copy(at, f.view.bytes + s.offsets[i], f.view.lengths[i]);
    at += f.view.lengths[i];
  }
  return static_cast<size_t>(at - to);
}

void unpack(Bytes from, Frame *frame) {
  const FrameImpl &f = impl(*frame);
  const SchemaImpl &s = *f.schema;
  Reader r(from);
  r.copy(f.view.c, 4 * s.component_count);
  r.copy(f.view.lengths, 2 * s.strings.size());
  for (size_t i = 0; i < s.strings.size(); i++) r.copy(f.view.bytes + s.offsets[i], f.view.lengths[i]);
}

} // namespace

Error Core::do_handle(const Schema &s, uint8_t *handler) {
  if (handlers_n_ == handlers_.size()) return Error::full;
  const size_t size = frame_size(impl(s));
  if (sizeof(Event) + size + Events::reserve + sizeof(Event) > config_.event_bytes) return Error::invalid;
  for (size_t i = 0; i < handlers_n_; i++)
    if (std::strcmp(handlers_[i].schema->rpc(), s.rpc()) == 0) return Error::invalid;
  Handler &h = handlers_[handlers_n_];
  if (Frame::create(allocator_, s, &h.frame) != Error::ok) return Error::no_memory;
  h.schema = &s;
  h.size = size;
  *handler = static_cast<uint8_t>(handlers_n_++);
  return Error::ok;
}

bool Core::do_poll(Event *e) {
  if (!events_.pop(e)) {
    active_->worlds.step();
    if (!events_.pop(e) && !active_->worlds.pop(e)) return false;
  }
  if (e->type == EventType::server_call) {
    Handler &h = handlers_[e->rpc];
    unpack(e->data, h.frame);
    e->frame = h.frame;
    e->data = {};
  }
  for (Link *l = links_; l != nullptr; l = l->next) l->streams.polled(*e);
  log(*e);
  return true;
}

int Core::accept_bind(const ServerBind &r, Incoming *in, ServerBindAnswer *a) {
  in->reliable = r.reliable;
  size_t i = 0;
  for (; i < handlers_n_; i++) {
    const Bytes name = text_bytes(handlers_[i].schema->rpc());
    if (name.size == r.name.size && std::memcmp(name.data, r.name.data, name.size) == 0) break;
  }
  if (i == handlers_n_) {
    Nearest nearest(r.name);
    for (size_t k = 0; k < handlers_n_; k++) nearest.consider(text_bytes(handlers_[k].schema->rpc()));
    a->known = nearest.best();
    return unknown_name;
  }
  const Schema &own = *handlers_[i].schema;
  in->handler = static_cast<uint8_t>(i);
  if (r.fingerprint != own.fingerprint()) {
    a->theirs = text_bytes("the fields differ from those of the client");
    return other_fields;
  }
  if (!(r.rate >= 0 && r.rate <= 1000) || r.factors_n != own.velocity_factors()) return -1;
  static const Bytes adaptive = text_bytes("adaptive");
  if (r.prior != Prior::generic().hash() || r.codec.size != adaptive.size ||
      std::memcmp(r.codec.data, adaptive.data, adaptive.size) != 0)
    return other_codec;
  if (r.ring < 2 || r.ring > 64) return out_of_range;
  if (clone(allocator_, own, &in->schema) != Error::ok) return out_of_range;
  if (in->schema->set_velocity_factors(r.factors, r.factors_n) != Error::ok) return -1;
  DecoderConfig c;
  c.rpc = r.rpc;
  c.ring = c.peer_ring = static_cast<uint16_t>(r.ring);
  c.reliable = r.reliable;
  a->ring = c.ring;
  a->prior = r.prior;
  return Decoder::create(allocator_, *in->schema, c, &in->decoder) == Error::ok ? bound : out_of_range;
}

bool Core::on_bind(Link &l, Bytes m) {
  ServerBind r;
  if (!parse_server_bind(m, &r) || r.rpc != l.server_binds || l.server_binds == max_incoming) return false;
  l.server_binds++;
  Incoming none;
  ServerBindAnswer a;
  a.rpc = r.rpc;
  const int reason = accept_bind(r, l.incoming.size() > 0 ? &l.incoming[r.rpc] : &none, &a);
  if (reason < 0) return false;
  a.reason = static_cast<uint8_t>(reason);
  if (reason != bound && l.role == Role::playing) tell_refused(r, a);
  uint8_t answer[1 + max_answer] = {0xc3};
  const size_t n = format_answer({answer + 1, max_answer}, a);
  return n > 0 && l.reliable.send({answer, 1 + n});
}

void Core::take_call(Incoming *in, const Call &c) {
  const Handler &h = handlers_[in->handler];
  in->dropped += c.missed;
  uint8_t *to = events_.room() >= h.size ? events_.prepare(h.size) : nullptr;
  if (to == nullptr) {
    in->dropped++;
    server_calls_dropped_++;
    return;
  }
  Event e;
  e.type = EventType::server_call;
  e.rpc = in->handler;
  e.reliable = in->reliable;
  e.value = c.sequence;
  e.missed = in->dropped;
  e.data = {to, pack(*c.frame, to)};
  in->dropped = 0;
  server_calls_++;
  events_.push(e);
}

void Core::on_call(Link &l, Bytes payload) {
  const int rpc = rpc_of(payload);
  const bool known = rpc >= 0 && static_cast<size_t>(rpc) < l.incoming.size();
  Incoming *in = known ? &l.incoming[static_cast<size_t>(rpc)] : nullptr;
  const uint64_t number = l.session.accepted_number();
  Call calls[max_calls];
  size_t n = 0;
  Error e = Error::closed;
  if (in != nullptr && in->decoder != nullptr && !in->reliable && number + short_reach > in->newest) {
    in->newest = std::max(in->newest, number);
    e = in->decoder->decode(payload, calls, &n);
    in->due = in->due || e == Error::ok || e == Error::no_baseline || e == Error::desync;
    for (size_t i = 0; i < n; i++) take_call(in, calls[i]);
  }
  if (e != Error::ok) server_calls_dropped_++;
}

bool Core::on_reliable_call(Link &l, Bytes payload) {
  const int rpc = rpc_of(payload);
  if (rpc < 0 || static_cast<uint32_t>(rpc) >= l.server_binds) return false;
  if (l.incoming.size() == 0) return true; // all RPCs were refused
  Incoming &in = l.incoming[static_cast<size_t>(rpc)];
  if (in.decoder == nullptr) return in.reliable;
  Call calls[max_calls];
  size_t n = 0;
  if (!in.reliable || in.decoder->decode(payload, calls, &n) != Error::ok || n != 1 || calls[0].missed > 0)
    return false;
  take_call(&in, calls[0]);
  return true;
}

} // namespace uplink::detail::client
