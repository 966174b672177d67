// Handling of messages from the server.
#include <algorithm>

#include "src/client/core.hpp"
#include "src/client/mistakes.hpp"
#include "src/codec/header.hpp"

namespace uplink::detail::client {

namespace {

// wanted reports whether to handle a message of a server that is not the current one.
bool wanted(Role r, uint8_t type) {
  if (r == Role::standby)
    return type == 0xc3 || type == 0xcc || type == 0xcd || (type >= 0xd0 && (type < 0xe0 || type >= 0xf0));
  return r == Role::playing || (r == Role::former && (type < 0xc0 || type == 0xc4 || type == 0xc5));
}

} // namespace

void Core::on_data(Link &l, Bytes m, uint64_t now) {
  if (m.size == 0 || !wanted(l.role, m.data[0])) return;
  const uint8_t type = m.data[0];
  Reader r({m.data + 1, m.size - 1});
  if (type < 0xc0) {
    on_call(l, m);
    return;
  }
  if (type >= 0xd0 && (type < 0xe0 || type >= 0xf0)) {
    l.worlds.on_data(m, now);
    return;
  }
  Event e;
  switch (type) {
  case 0xc1:
    on_acks(l, r.rest());
    return;
  case 0xc3:
    on_answer(l, m, now);
    return;
  case 0xc4:
    e.type = EventType::message;
    e.data = r.rest();
    if (events_.room() >= e.data.size) events_.push(e);
    return;
  case 0xc5:
    if (m.size == 1 && !l.shutdown_told && l.role == Role::playing) emit(EventType::shutdown);
    l.shutdown_told = l.shutdown_told || m.size == 1;
    return;
  case 0xcb:
    on_reports(l, r.rest(), now);
    return;
  case 0xcc:
  case 0xcd: {
    const Bytes first = r.bytes(static_cast<size_t>(r.little(1)));
    const Bytes rest = r.rest();
    if (!r.ok() || rest.size == 0 || rest.data[0] < 0xd0 || (rest.data[0] >= 0xe0 && rest.data[0] < 0xf0))
      return;
    if (type == 0xcc)
      on_acks(l, first);
    else
      on_reports(l, first, now);
    l.worlds.on_data(rest, now);
    return;
  }
  default:
    return;
  }
}

// on_reports handles reports on jitter buffers, and acks. frames.md, 11.
void Core::on_reports(Link &l, Bytes m, uint64_t now) {
  Reader r(m);
  const uint64_t n = r.little(1);
  Reader reports(r.bytes(11 * static_cast<size_t>(n)));
  if (n < 1 || n > 24 || !r.ok()) return;
  for (uint64_t i = 0; i < n && l.role == Role::playing; i++) {
    const auto number = static_cast<size_t>(reports.little(1));
    const auto slack = static_cast<int16_t>(reports.little(2));
    const auto target = static_cast<uint16_t>(reports.little(2));
    const auto rate = static_cast<uint16_t>(reports.little(2));
    const auto missing = static_cast<uint16_t>(reports.little(2));
    const auto late = static_cast<uint16_t>(reports.little(2));
    if (rate < 2500 || rate > 20000) return;
    if (number >= rpcs_n_ || l.bindings[number].phase != Phase::bound) continue;
    Binding &b = l.bindings[number];
    // Counts are lower in a report that arrives after a newer one.
    if (static_cast<int16_t>(missing - b.missing) < 0 || static_cast<int16_t>(late - b.late) < 0) continue;
    Rpc &rpc = rpcs_[number];
    rpc.slack = slack;
    rpc.target = target;
    rpc.rate = rate;
    rpc.reported = now;
    rpc.missing += static_cast<uint16_t>(missing - b.missing);
    rpc.late += static_cast<uint16_t>(late - b.late);
    b.missing = missing;
    b.late = late;
  }
  on_acks(l, r.rest());
}

void Core::on_acks(Link &l, Bytes b) {
  while (b.size > 0) {
    AckForm a;
    size_t n = parse_ack(b.data, b.size, &a);
    if (n == 0) return;
    if (a.stream < rpcs_n_ && l.bindings[a.stream].phase == Phase::bound) {
      size_t used = 0;
      if (l.bindings[a.stream].encoder->ack({b.data, n}, &used) == Error::ok) acks_++;
    }
    b = {b.data + n, b.size - n};
  }
}

void Core::on_answer(Link &l, Bytes m, uint64_t now) {
  BindAnswer a;
  if (!parse_answer(m, &a) || a.rpc >= rpcs_n_) return;
  Binding &b = l.bindings[static_cast<size_t>(a.rpc)];
  if (b.phase != Phase::requesting) return;
  if (a.reason == 9) {
    if (mark_described(a, b.described.data(), rpcs_[static_cast<size_t>(a.rpc)].schema->fields())) {
      b.any_described = true;
      b.ask_at = now;
    }
    return;
  }
  Event e;
  e.rpc = static_cast<uint8_t>(a.rpc);
  const bool ok = a.reason == 0 && start_encoder(l, e.rpc, a.ring, a.prior);
  b.phase = ok ? Phase::bound : Phase::failed;
  if (ok) b.session = ++bound_;
  b.reason = static_cast<uint8_t>(a.reason);
  if (l.role != Role::playing) return;
  e.type = ok ? EventType::bound : EventType::bind_failed;
  e.value = a.reason;
  char text[max_report];
  Text why(text, sizeof(text));
  if (!ok) explain_answer(&why, *rpcs_[e.rpc].schema, a);
  e.data = {reinterpret_cast<const uint8_t *>(text), why.end()};
  events_.push(e);
  if (ok) tell_differences(e.rpc, a);
}

// start_encoder creates the encoder for an answer. It reports whether the client supports the
// answer.
bool Core::start_encoder(Link &l, uint8_t rpc, uint64_t ring, uint64_t answered) {
  const BindConfig &b = rpcs_[rpc].config;
  const Prior *prior = b.prior == nullptr ? &Prior::generic() : b.prior;
  if (b.codec == Codec::adaptive && answered != prior->hash())
    prior = answered == Prior::generic().hash() ? &Prior::generic() : nullptr;
  if (prior == nullptr || ring < 2) return false;
  EncoderConfig c;
  c.codec = b.codec;
  c.rpc = rpc;
  c.ring = b.ring;
  c.peer_ring = static_cast<uint16_t>(std::min<uint64_t>(ring, b.ring));
  c.copies = b.codec == Codec::adaptive && !b.reliable ? b.copies : 0;
  c.reliable = b.reliable;
  c.prior = prior;
  c.max_payload = max_body;
  return Encoder::create(allocator_, *rpcs_[rpc].schema, c, &l.bindings[rpc].encoder) == Error::ok;
}

bool Core::on_reliable(Link &l, Bytes m, uint64_t now) {
  const uint8_t type = m.data[0];
  if (l.role == Role::standby && (type < 0xc0 || type == 0xc0 || type == 0xc4)) return l.hold(m);
  if (type < 0xc0) return on_reliable_call(l, m);
  Event e;
  switch (type) {
  case 0xc0:
    return on_handover(l, m, now);
  case 0xc2:
    return on_bind(l, m);
  case 0xc4:
    e.type = EventType::message;
    e.reliable = true;
    e.data = {m.data + 1, m.size - 1};
    return m.size <= 8193 && events_.push(e);
  case 0xc6:
  case 0xc8:
  case 0xc9:
  case 0xce:
    if (l.role == Role::former) return true; // the worlds are those of the other server
    return l.worlds.on_reliable(m, now);
  case 0xcf:
    return on_request_answer(l, m);
  default:
    return false;
  }
}

bool Core::on_request_answer(Link &l, Bytes m) {
  static const size_t most[] = {8192, 256, 0};
  if (m.size < 6 || m.data[1] < 2 || m.data[1] > 4 || m.size - 6 > most[m.data[1] - 2]) return false;
  const uint32_t id = static_cast<uint32_t>(load_little(m.data + 2, 4));
  for (size_t i = 0; i < l.requests_n; i++) {
    if (l.requests[i] != id) continue;
    l.requests[i] = l.requests[--l.requests_n];
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
