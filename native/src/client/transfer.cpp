// Receiving and sending of datagrams for all links of a client, and the times of both.
#include <algorithm>

#include "src/client/core.hpp"

namespace uplink::detail::client {
namespace {

// If the messages stored before the switch exceed max_stored bytes, further messages wait at the
// other server.
constexpr size_t max_stored = 262144;

// request_wait returns the wait after the given number of requests to bind. A round-trip time of 0
// means unknown.
uint64_t request_wait(uint64_t rtt, uint8_t asked) {
  const uint64_t most = 250 * ms;
  if (rtt == 0) return most;
  uint64_t wait = std::max(rtt * 3 / 2, 100 * ms);
  for (; asked > 1 && wait < most; asked--) wait = wait * 3 / 2;
  return std::min(wait, most);
}

} // namespace

void Core::do_receive(Bytes d, uint64_t arrived, uint64_t now) {
  now_ = now;
  arrived = std::min(arrived, now);
  // Authentication determines the session of a datagram.
  for (Link *l = links_; l != nullptr; l = l->next) {
    uint8_t kind = 0;
    Bytes body;
    const State before = l->session.state();
    if (!l->session.receive(d, arrived, &kind, &body)) continue;
    received_ += d.size;
    if (before == State::connecting && l->is_open()) opened(*l, now);
    if (before != State::idle && l->session.state() == State::idle) ended(*l);
    if (body.size == 0) return;
    if (kind == data) {
      on_data(*l, body, arrived);
      l->worlds.step(l->role == Role::playing);
      return;
    }
    // The conversation number determines the channel.
    if (!l->reliable.input(body, now / 1000)) l->bulk.input(body, now / 1000);
    deliver(*l, now);
    return;
  }
  dropped_++;
}

void Core::deliver(Link &l, uint64_t now) {
  // Messages wait in their channel until there is room for an event with them, or with a call. The
  // bulk channel leaves room for a message of the reliable channel.
  size_t n = 0, call = 0;
  for (size_t i = 0; i < handlers_n_; i++) call = std::max(call, handlers_[i].size);
  // Messages of a former server are delivered even after it has ended the session.
  const auto lives = [&l] { return l.is_open() || (l.role == Role::former && !l.reliable.broken()); };
  while (l.role == Role::playing && l.first != nullptr && lives() &&
         events_.room() >= std::max(l.first->size, call)) {
    Message *m = l.first;
    l.first = m->next;
    l.held -= sizeof(Message) + m->size;
    uint8_t *to = events_.prepare(m->size);
    copy(to, m + 1, m->size);
    if (!on_reliable(l, {to, m->size}, now)) violation(l, now);
    detail::release(allocator_, m);
  }
  if (l.role == Role::playing && l.first != nullptr) return;
  // A request to bind needs room for its answer.
  while (lives() && (n = l.reliable.next_size()) > 0 && events_.room() >= std::max(n, call) &&
         (l.role == Role::former || l.reliable.has_room(max_answer)) && !l.worlds.blocked() &&
         l.held < max_stored) {
    uint8_t *m = events_.prepare(n);
    l.reliable.receive(m);
    if (!on_reliable(l, {m, n}, now)) violation(l, now);
    l.worlds.step(l.role == Role::playing);
  }
  while (lives() && (n = l.bulk.next_size()) > 0 && events_.room() >= std::min(n, Streams::max_message)) {
    if (n > Streams::max_message) {
      violation(l, now);
      break;
    }
    uint8_t *m = events_.prepare(n);
    l.bulk.receive(m);
    if (!l.streams.receive({m, n}, now)) violation(l, now);
  }
  if (l.reliable.broken() || l.bulk.broken()) violation(l, now);
  begin_handover(l, now);
}

size_t Core::do_next(Buffer to, Address *server, uint64_t now) {
  *server = {};
  if (to.capacity < max_sent) return 0;
  step(now);
  size_t n = 0;
  for (Link *l = links_; l != nullptr && n == 0; l = l->next) {
    n = next_of(*l, to, now);
    *server = l->server;
  }
  return n;
}

size_t Core::next_of(Link &l, Buffer to, uint64_t now) {
  const State before = l.session.state();
  size_t n = l.session.next(to, now);
  if (before != State::idle && l.session.state() == State::idle) ended(l);
  if (n > 0 || !l.is_open()) return n;
  uint8_t body[max_datagram];
  uint8_t kind = reliable;
  l.streams.send(l.session.path_rate());
  n = l.reliable.output(body, now / 1000);
  if (n == 0) n = l.bulk.output(body, now / 1000, l.bulk.unsent() > 0 ? l.session.streams(now) : Allowance{});
  if (n == 0) {
    kind = data;
    n = next_bind(l, body, now);
  }
  if (n == 0) n = l.next_acks(body, now);
  if (n == 0) n = l.next_messages({body, to.capacity < max_datagram ? max_body : l.session.max_data()}, now);
  if (n == 0 && l.worlds.alone(now, l.session.rtt()) <= now) n = l.worlds.take({body, max_body}, now);
  return n == 0 ? l.session.next_report(to.data, now) : l.session.send(to.data, kind, {body, n}, now);
}

uint64_t Core::do_timeout() const {
  uint64_t t = handover_timeout();
  if (active_->session.state() == State::idle) t = std::min(t, start_at_);
  if (active_->is_open()) t = std::min({t, quality_at_, active_->worlds.await_at()});
  for (const Link *l = links_; l != nullptr; l = l->next) t = std::min(t, timeout_of(*l));
  return t == never ? never : t * 1000;
}

uint64_t Core::timeout_of(const Link &l) const {
  uint64_t t = l.session.timeout();
  if (!l.is_open()) return t;
  for (const Channel *c : {&l.reliable, &l.bulk})
    if (c->next() != UINT64_MAX) t = std::min(t, c->next() * 1000);
  if (l.waiting_n > 0 || l.streams.due(l.session.path_rate())) t = 0;
  t = std::min(t, std::min(l.acks_due(), l.worlds.alone(now_, l.session.rtt())));
  if (l.role != Role::former)
    for (size_t i = 0; i < rpcs_n_; i++)
      if (l.bindings[i].phase == Phase::requesting) t = std::min(t, l.bindings[i].ask_at);
  return t;
}

size_t Core::next_bind(Link &l, uint8_t *to, uint64_t now) {
  if (l.role == Role::former) return 0;
  for (size_t i = 0; i < rpcs_n_; i++) {
    Binding &b = l.bindings[i];
    const BindConfig &c = rpcs_[i].config;
    if (b.phase != Phase::requesting || now < b.ask_at) continue;
    if (b.asked < 255) b.asked++;
    b.ask_at = now + request_wait(l.session.rtt() != 0 ? l.session.rtt() : active_->session.rtt(), b.asked);
    const Prior &prior = c.prior == nullptr ? Prior::generic() : *c.prior;
    BindRequest r;
    r.rpc = static_cast<uint8_t>(i);
    r.schema = rpcs_[i].schema;
    r.ring = c.ring;
    r.codec = c.codec;
    r.reliable = c.reliable;
    r.frames = static_cast<uint8_t>(c.batch + 1);
    r.batch = c.batch;
    r.prior = r.codec == Codec::adaptive ? prior.hash() : 0;
    r.described = b.any_described ? b.described.data() : nullptr;
    if (const size_t n = format_bind({to, max_body}, r); n > 0) return n;
    b.phase = Phase::failed;
    b.reason = 5;
    if (l.role != Role::playing) continue;
    Event e;
    e.type = EventType::bind_failed;
    e.rpc = r.rpc;
    e.value = b.reason;
    events_.push(e);
  }
  return 0;
}

} // namespace uplink::detail::client
