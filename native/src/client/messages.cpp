// What the client does with messages of the server.
#include <algorithm>

#include "src/client/core.hpp"
#include "src/codec/header.hpp"

namespace uplink::detail::client {

void Core::on_data(Bytes m, uint64_t now) {
  if (m.size == 0) return;
  const uint8_t type = m.data[0];
  Reader r({m.data + 1, m.size - 1});
  if (type < 0xc0) {
    on_call(m);
    return;
  }
  if (type >= 0xd0 && (type < 0xe0 || type >= 0xf0)) {
    worlds_.on_data(m, now);
    return;
  }
  Event e;
  switch (type) {
  case 0xc1:
    on_acks(r.rest());
    return;
  case 0xc3:
    on_answer(m, now);
    return;
  case 0xc4:
    e.type = EventType::message;
    e.data = r.rest();
    if (events_.room() >= e.data.size) events_.push(e);
    return;
  case 0xc5:
    if (m.size == 1 && !shutdown_told_) emit(EventType::shutdown);
    shutdown_told_ = shutdown_told_ || m.size == 1;
    return;
  case 0xcb:
    on_reports(r.rest());
    return;
  case 0xcc:
  case 0xcd: {
    const Bytes first = r.bytes(static_cast<size_t>(r.little(1)));
    const Bytes rest = r.rest();
    if (!r.ok() || rest.size == 0 || rest.data[0] < 0xd0 || (rest.data[0] >= 0xe0 && rest.data[0] < 0xf0))
      return;
    if (type == 0xcc)
      on_acks(first);
    else
      on_reports(first);
    worlds_.on_data(rest, now);
    return;
  }
  default:
    return;
  }
}

void Core::on_reports(Bytes m) {
  // Reports on jitter buffers are not used.
  Reader r(m);
  const uint64_t n = r.little(1);
  r.bytes(9 * static_cast<size_t>(n));
  if (n >= 1 && n <= 24 && r.ok()) on_acks(r.rest());
}

void Core::on_acks(Bytes b) {
  while (b.size > 0) {
    AckForm a;
    size_t n = parse_ack(b.data, b.size, &a);
    if (n == 0) return;
    if (a.stream < bindings_n_ && bindings_[a.stream].phase == Phase::bound) {
      size_t used = 0;
      if (bindings_[a.stream].encoder->ack({b.data, n}, &used) == Error::ok) acks_++;
    }
    b = {b.data + n, b.size - n};
  }
}

void Core::on_answer(Bytes m, uint64_t now) {
  BindAnswer a;
  if (!parse_answer(m, &a) || a.rpc >= bindings_n_) return;
  Binding &b = bindings_[static_cast<size_t>(a.rpc)];
  if (b.phase != Phase::requesting) return;
  if (a.reason == 9) {
    if (mark_described(a, b.described.data(), b.schema->fields())) {
      b.any_described = true;
      b.ask_at = now;
    }
    return;
  }
  Event e;
  e.rpc = static_cast<uint8_t>(a.rpc);
  e.type = EventType::bind_failed;
  e.value = a.reason;
  e.data = a.theirs;
  const Prior *prior = b.config.prior == nullptr ? &Prior::generic() : b.config.prior;
  if (a.reason == 0 && b.config.codec == Codec::adaptive && a.prior != prior->hash())
    prior = a.prior == Prior::generic().hash() ? &Prior::generic() : nullptr;
  if (a.reason == 0 && prior != nullptr && a.ring >= 2) {
    EncoderConfig c;
    c.codec = b.config.codec;
    c.rpc = e.rpc;
    c.ring = b.config.ring;
    c.peer_ring = static_cast<uint16_t>(std::min<uint64_t>(a.ring, b.config.ring));
    c.copies = b.config.codec == Codec::adaptive && !b.config.reliable ? b.config.copies : 0;
    c.reliable = b.config.reliable;
    c.prior = prior;
    c.max_payload = max_body;
    if (Encoder::create(allocator_, *b.schema, c, &b.encoder) == Error::ok) {
      e.type = EventType::bound;
      e.data = {};
    }
  }
  b.phase = e.type == EventType::bound ? Phase::bound : Phase::failed;
  events_.push(e);
}

bool Core::on_reliable(Bytes m, uint64_t now) {
  const uint8_t type = m.data[0];
  if (type < 0xc0) return on_reliable_call(m);
  Event e;
  switch (type) {
  case 0xc0: {
    Handover h;
    e.type = EventType::handover;
    e.data = m;
    return parse_handover(config_.crypto, m, &h) == Error::ok && events_.push(e);
  }
  case 0xc2:
    return on_bind(m);
  case 0xc4:
    e.type = EventType::message;
    e.reliable = true;
    e.data = {m.data + 1, m.size - 1};
    return m.size <= 8193 && events_.push(e);
  case 0xc6:
  case 0xc8:
  case 0xc9:
  case 0xce:
    return worlds_.on_reliable(m, now);
  case 0xcf:
    return on_request_answer(m);
  default:
    return false;
  }
}

bool Core::on_request_answer(Bytes m) {
  static const size_t most[] = {8192, 256, 0};
  if (m.size < 6 || m.data[1] < 2 || m.data[1] > 4 || m.size - 6 > most[m.data[1] - 2]) return false;
  const uint32_t id = static_cast<uint32_t>(load_little(m.data + 2, 4));
  for (size_t i = 0; i < requests_n_; i++) {
    if (requests_[i] != id) continue;
    requests_[i] = requests_[--requests_n_];
    Event e;
    e.type = EventType::answer;
    e.status = m.data[1];
    e.value = id;
    e.data = {m.data + 6, m.size - 6};
    return events_.push(e);
  }
  return true;
}

} // namespace uplink::detail::client

namespace uplink {

using namespace detail::client;

Error parse_handover(const Crypto &c, Bytes m, Handover *h) {
  Reader r(m);
  const bool type = r.little(1) == 0xc0;
  h->stream = static_cast<uint8_t>(r.little(1));
  h->tick = r.varint();
  h->size = static_cast<uint32_t>(r.little(4));
  if (h->size > 0) r.copy(h->hash, 32);
  h->n = static_cast<size_t>(r.little(1));
  if (!type || !r.ok() || h->size > 65536 || h->n < 1 || h->n > 8 || h->tick >> 53 != 0 ||
      (h->stream > 15 && h->stream != 255) || (h->stream == 255 && h->tick != 0))
    return Error::malformed;
  for (size_t i = 0; i < h->n; i++) {
    Address &a = h->servers[i];
    a = {};
    a.family = static_cast<uint8_t>(r.little(1));
    const Bytes ip = r.bytes(a.family == 4 ? 4 : 16);
    a.port = static_cast<uint16_t>(r.little(2));
    if (!r.ok() || (a.family != 4 && a.family != 6) || a.port == 0) return Error::malformed;
    copy(a.ip, ip.data, ip.size);
    static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    uint8_t any = 0;
    for (size_t j = 0; j < ip.size; j++) any = static_cast<uint8_t>(any | a.ip[j]);
    if (any == 0 || (a.family == 6 && std::memcmp(a.ip, mapped, 12) == 0)) return Error::malformed;
  }
  h->token = r.rest();
  Token t;
  return h->token.size > max_token_text ||
                 parse_token(c, reinterpret_cast<const char *>(h->token.data), h->token.size, &t) != Error::ok
             ? Error::malformed
             : Error::ok;
}

} // namespace uplink
