#include "src/client/worlds.hpp"

#include <algorithm>
#include <new>

#include "src/base/nearest.hpp"
#include "src/client/bind.hpp"
#include "src/codec/bits.hpp"

namespace uplink::detail::client {
namespace {

constexpr uint64_t max_tick = (uint64_t{1} << 53) - 1;
constexpr size_t max_piece = 1024, max_game = 8192;
// If messages for a tick exceed max_waiting bytes, the oldest is delivered early.
constexpr size_t max_waiting = 262144, held_overhead = 64;
// If datagrams are sent at intervals of at most max_wait, acks wait for the next one. Datagrams
// sent within same_tick count as one.
constexpr uint64_t max_wait = 100000, same_tick = 1000;
// Overhead of a separate datagram for an ack in bytes, down to IP.
constexpr uint64_t datagram_overhead = 50;

// Assumed number of messages for all objects of a view, and the minimum and maximum time for it in
// seconds. 4,096 objects of 8 bytes take about 60 messages of the default size.
constexpr double fill_messages = 100, min_fill = 3, max_fill = 20;

Bytes text_of(const WorldReport &r) {
  return {reinterpret_cast<const uint8_t *>(r.text), r.n};
}

uint64_t hash_of(const WorldReport &r) {
  Fnv h;
  h.put(r.text);
  return h.sum();
}

} // namespace

Worlds::~Worlds() {
  discard();
  for (Subscription &s : list_) release(&s);
}

void Worlds::release(Subscription *s) {
  while (s->first != nullptr) {
    Held *h = s->first;
    s->first = h->next;
    detail::release(allocator_, h);
  }
  s->last = nullptr;
  s->held = 0;
}

void Worlds::start() {
  for (Subscription &s : list_) {
    s.since = 0;
    s.missing = false;
  }
  for (Offered &o : offers_) {
    if (o.subscription != nullptr) withdraw(o.subscription);
    o.subscription = nullptr;
    o.message.clear();
  }
  offered_ = {};
  carried_at_ = carried_every_ = 0;
}

Error Worlds::subscribe(Bytes name, WorldReceiver &r, uint32_t ack_rate, uint8_t *world, Worlds *next) {
  if (!is_name(name) || ack_rate > 1000) return Error::invalid;
  Subscription *s = nullptr;
  for (Subscription &other : list_) {
    if (other.receiver == nullptr)
      s = s == nullptr ? &other : s;
    else if (&r == other.receiver || equal({reinterpret_cast<uint8_t *>(other.name), other.name_n}, name))
      return Error::invalid;
  }
  if (s == nullptr) return Error::full;
  *world = static_cast<uint8_t>(s - list_.data());
  subscribe(s, &r, nullptr, name, ack_rate == 0 ? 30 : ack_rate);
  if (next != nullptr) prepare(next, *world);
  return Error::ok;
}

void Worlds::subscribe(Subscription *s, WorldReceiver *r, WorldReceiver *owner, Bytes name,
                       uint32_t ack_rate) {
  s->receiver = r;
  s->owner = owner;
  copy(s->name, name.data, name.size);
  s->name_n = name.size;
  s->ack_rate = ack_rate;
  s->phase = Phase::none;
  s->changed = s->updated = s->any = s->partial = false;
  s->shown = owner != nullptr; // a spare passes nothing to the program before its view is complete
  s->newest = s->told = s->since = s->arrived = 0;
  s->missing = false;
  s->report = {};
  for (Offered &o : offers_)
    if (o.message.size() > 0 && equal(o.offer.name, name)) accept(s, &o);
}

Error Worlds::unsubscribe(uint8_t world, Worlds *next) {
  if (world >= list_.size() || list_[world].receiver == nullptr) return Error::invalid;
  if (next != nullptr && next->list_[world].receiver != nullptr) {
    const Error e = next->unsubscribe(world);
    if (e != Error::ok) return e;
  }
  Subscription &s = list_[world];
  Offered *o = s.phase == Phase::none ? nullptr : &offers_[s.number];
  if (o != nullptr && s.phase != Phase::refused) {
    const uint8_t answer[3] = {0xc7, s.number, 0};
    if (!channel_.send({answer, 3})) return Error::backlog;
  }
  if (o != nullptr) o->subscription = nullptr;
  set_phase(&s, Phase::none);
  release(&s);
  if (s.owner != nullptr) s.owner->discard(s.receiver);
  s.receiver = s.owner = nullptr;
  return Error::ok;
}

void Worlds::set_phase(Subscription *s, Phase p) {
  s->phase = p;
  s->reply_due = s->ack_due = false;
  s->acked_at = s->received = 0;
  s->assembler.reset();
  if (p != Phase::requesting) s->initial.clear();
}

void Worlds::withdraw(Subscription *s) {
  s->changed = s->changed || s->phase == Phase::subscribed;
  set_phase(s, Phase::none);
  s->any = s->missing = false;
  s->newest = s->since = 0;
  s->receiver->end();
  for (Held *h = s->first; h != nullptr; h = h->next) h->due = true;
}

void Worlds::reply(Subscription *s) {
  uint8_t answer = 0;
  if (s->phase == Phase::requesting) answer = 1;
  if (s->phase == Phase::subscribed) answer = 2;
  uint8_t m[3 + max_answer] = {0xc7, s->number, answer};
  ServerBindAnswer why;
  why.rpc = s->number;
  why.reason = s->phase == Phase::refused ? s->report.reason : 0;
  if (s->phase == Phase::refused) why.theirs = text_of(s->report);
  const WorldOffer &o = offers_[s->number].offer;
  for (size_t k = 0; k < o.types_n && s->phase == Phase::subscribed; k++)
    if ((s->report.skipped >> k & 1) != 0) why.asking[why.asking_n++] = o.types[k].name;
  size_t n = 3;
  if (why.reason != 0 || why.asking_n > 0) n += format_answer({m + 3, max_answer}, why);
  s->reply_due = !channel_.send({m, n});
}

void Worlds::await(uint64_t now) {
  for (Subscription &s : list_) {
    if (s.receiver == nullptr || s.owner != nullptr || s.phase != Phase::none || s.missing) continue;
    if (s.since == 0) s.since = now;
    if (now - s.since >= offer_wait) explain_missing(&s);
  }
}

uint64_t Worlds::await_at() const {
  uint64_t at = never;
  for (const Subscription &s : list_)
    if (s.receiver != nullptr && s.owner == nullptr && s.phase == Phase::none && !s.missing)
      at = std::min(at, s.since + offer_wait);
  return at;
}

void Worlds::explain_missing(Subscription *s) {
  const Bytes name = {reinterpret_cast<uint8_t *>(s->name), s->name_n};
  Text text(s->report.text, sizeof(s->report.text));
  Nearest nearest(name);
  for (const Offered &o : offers_)
    if (o.message.size() > 0) nearest.consider(o.offer.name);
  text.add("the server has not offered a world ");
  text.quote(name);
  text.add(" within 2 s");
  if (nearest.best().size > 0) {
    text.add(", nearest ");
    text.quote(nearest.best());
    text.add("; it offers ");
  } else {
    text.add(", nor any other");
  }
  bool any = false;
  for (const Offered &o : offers_) {
    if (o.message.size() == 0) continue;
    if (any) text.add(", ");
    text.quote(o.offer.name);
    any = true;
  }
  s->report.n = text.end();
  s->missing = true;
  uint8_t m[3 + max_answer] = {0xc7, 255, 0};
  ServerBindAnswer why;
  why.rpc = 255;
  why.reason = 1;
  why.theirs = name;
  // The program is informed in any case.
  (void)channel_.send({m, 3 + format_answer({m + 3, max_answer}, why)});
}

bool Worlds::on_offer(Bytes m, uint64_t now) {
  WorldOffer parsed;
  if (!parse_offer(m, &parsed) || !offered_.take(1, 1, 64, now)) return false;
  if (offers_.size() == 0) return true;
  Offered &o = offers_[parsed.number];
  if (o.subscription != nullptr) withdraw(o.subscription);
  o.subscription = nullptr;
  o.message.clear();
  if (!o.message.create(allocator_, m.size)) return true; // as if the program did not subscribe
  copy(o.message.data(), m.data, m.size);
  parse_offer({o.message.data(), m.size}, &o.offer);
  for (Subscription &s : list_)
    if (s.receiver != nullptr && equal({reinterpret_cast<uint8_t *>(s.name), s.name_n}, o.offer.name))
      accept(&s, &o);
  return true;
}

void Worlds::accept(Subscription *s, Offered *o) {
  if (s->phase != Phase::none) {
    offers_[s->number].subscription = nullptr; // a world has only one number at a time
    withdraw(s);
  }
  o->subscription = s;
  s->number = o->offer.number;
  const double interval = 1e6 / std::min<double>(s->ack_rate, o->offer.rate);
  s->interval = static_cast<uint64_t>(std::min(interval, 1e15)); // rates may be extremely low
  s->report = {};
  s->any = s->missing = false;
  s->arrived = 0;
  if (!s->receiver->accepts(o->offer, &s->report)) {
    set_phase(s, Phase::refused);
    s->changed = true;
    reply(s);
  } else if (o->offer.initial == 0 || s->receiver->knows(o->offer.hash)) {
    begin(s, o, {});
  } else {
    const bool room = s->initial.create(allocator_, o->offer.initial);
    if (!room) explain_error(s, Error::no_memory);
    set_phase(s, room ? Phase::requesting : Phase::refused);
    s->initial_n = 0;
    s->changed = s->phase == Phase::refused;
    reply(s);
  }
}

// explain_error lets the report of a refusal tell an error of the client.
void Worlds::explain_error(Subscription *s, Error e) {
  Text why(s->report.text, sizeof(s->report.text));
  why.add("the world cannot begin: ");
  why.add(text(e));
  s->report.n = why.end();
}

void Worlds::begin(Subscription *s, Offered *o, Bytes initial) {
  const Error e = s->receiver->begin(o->offer, initial);
  if (e != Error::ok) explain_error(s, e);
  set_phase(s, e == Error::ok ? Phase::subscribed : Phase::refused);
  s->any = false;
  s->newest = 0;
  s->changed = true;
  reply(s);
}

bool Worlds::on_piece(Subscription *s, Bytes piece) {
  if (s->phase != Phase::requesting) return true; // belongs to an earlier request
  if (piece.size < 1 || piece.size > max_piece) return false;
  if (piece.size > s->initial.size() - s->initial_n) return true;
  copy(s->initial.data() + s->initial_n, piece.data, piece.size);
  s->initial_n += piece.size;
  if (s->initial_n == s->initial.size()) begin(s, &offers_[s->number], {s->initial.data(), s->initial_n});
  return true;
}

bool Worlds::on_tick_message(Subscription *s, Bytes m) {
  Reader r(m);
  const uint64_t tick = r.varint();
  const Bytes body = r.rest();
  if (!r.ok() || tick > max_tick || body.size > max_game) return false;
  if (s == nullptr) return true;
  void *memory = allocate(allocator_, sizeof(Held) + body.size);
  if (memory == nullptr) return false;
  Held *h = new (memory) Held{nullptr, tick, body.size, false};
  copy(h + 1, body.data, body.size);
  (s->first == nullptr ? s->first : s->last->next) = h;
  s->last = h;
  s->held += body.size + held_overhead;
  return true;
}

bool Worlds::on_reliable(Bytes m, uint64_t now) {
  if (m.data[0] == 0xc6) return on_offer(m, now);
  if (m.size < 2 || m.data[1] >= max_worlds) return false;
  const bool known = offers_.size() > 0;
  Subscription *s = known ? offers_[m.data[1]].subscription : nullptr;
  const Bytes body = {m.data + 2, m.size - 2};
  switch (m.data[0]) {
  case 0xc8:
    return s == nullptr ? body.size >= 1 && body.size <= max_piece : on_piece(s, body);
  case 0xc9:
    if (body.size > 0) return false;
    if (s != nullptr) withdraw(s);
    if (known) {
      offers_[m.data[1]].subscription = nullptr;
      offers_[m.data[1]].message.clear();
    }
    return true;
  default:
    return on_tick_message(s, body);
  }
}

void Worlds::on_data(Bytes m, uint64_t now) {
  Subscription *s = offers_.size() > 0 ? offers_[m.data[0] & 15].subscription : nullptr;
  if (s == nullptr || s->phase != Phase::subscribed) return;
  if (s->arrived == 0) s->arrived = now;
  Bytes body = {m.data + 1, m.size - 1};
  if (m.data[0] < 0xe0 && s->assembler.add(allocator_, body, &body) != Error::ok) return;
  if (m.data[0] < 0xe0 && body.size == 0) return;
  receive(s, body, now);
}

bool Worlds::parse_processed(Reader *r, WorldMessage *m, ProcessedCalls *to) const {
  const size_t n = static_cast<size_t>(r->little(1));
  if (n > max_processed) return false;
  int before = -1;
  m->processed = to;
  for (size_t i = 0; i < n; i++) {
    const int rpc = static_cast<int>(r->little(1));
    const uint64_t low = r->little(2);
    if (!r->ok() || rpc <= before) return false;
    before = rpc;
    uint64_t next = 0;
    if (!calls_.next_call(static_cast<uint8_t>(rpc), &next)) continue;
    // Returns the nearest number with these low bits. Above next, all calls were processed.
    const uint64_t ahead = (low - next) & 0xffff;
    const uint64_t behind = 0x10000 - ahead;
    to[m->processed_n++] = {static_cast<uint8_t>(rpc),
                            ahead < 0x8000 || behind > next ? next : next - behind};
  }
  return r->ok();
}

// filled reports whether a view is shown although it is not complete: the time for fill_messages
// messages has passed.
bool Worlds::filled(const Subscription &s, double rate, uint64_t now) {
  const double fill = std::min(std::max(fill_messages / rate, min_fill), max_fill);
  return s.arrived != 0 && static_cast<double>(now - s.arrived) >= fill * 1e6;
}

// holds reports whether the client still shows an earlier stream.
bool Worlds::holds(Subscription *s, uint64_t now) {
  if (s->any || !s->shown) return false;
  if (!filled(*s, offers_[s->number].offer.rate, now)) return true;
  s->any = s->partial = true;
  return false;
}

void Worlds::receive(Subscription *s, Bytes body, uint64_t now) {
  WorldMessage m;
  ProcessedCalls processed[max_processed];
  Reader r(body);
  s->received += body.size;
  uint64_t tick = 0;
  bool ok = !offers_[s->number].offer.processed || parse_processed(&r, &m, processed);
  m.body = r.rest();
  m.now = now * 1000;
  m.held = holds(s, now);
  ok = ok && s->receiver->receive(m, &tick) == Error::ok && (!m.held || s->receiver->complete());
  if (ok && (!s->any || tick > s->newest)) {
    s->any = s->shown = s->updated = true;
    s->newest = tick;
  }
  // Also after an error, because an ack reports missing messages.
  s->ack_due = true;
}

void Worlds::step(bool deliver) {
  for (Subscription &s : list_) {
    if (s.reply_due) reply(&s);
    while (deliver && s.first != nullptr) {
      Held *h = s.first;
      const bool due = h->due || (s.any && h->tick <= s.newest) || s.held > max_waiting;
      if (!due || events_.room() < h->size) break;
      Event e;
      e.type = EventType::tick_message;
      e.world = static_cast<uint8_t>(&s - list_.data());
      e.reliable = true;
      e.value = h->tick;
      e.data = {reinterpret_cast<const uint8_t *>(h + 1), h->size};
      events_.push(e);
      s.held -= h->size + held_overhead;
      s.first = h->next;
      detail::release(allocator_, h);
    }
  }
}

bool Worlds::blocked() const {
  for (const Subscription &s : list_)
    if (s.held > max_waiting) return true;
  return false;
}

// report_due reports whether an event is due for the report on an accepted offer.
bool Worlds::report_due(const Subscription &s) {
  return (s.phase == Phase::subscribed || s.missing) && s.report.n > 0 && hash_of(s.report) != s.told;
}

bool Worlds::pop(Event *e) {
  for (Subscription &s : list_) {
    if (s.receiver == nullptr) continue;
    bool off = false;
    *e = {};
    e->world = static_cast<uint8_t>(&s - list_.data());
    if (s.changed) {
      e->type = EventType::world;
      e->status = s.phase == Phase::subscribed ? 0 : s.phase == Phase::refused ? 1 : 2;
      if (s.phase == Phase::refused) e->data = text_of(s.report);
      s.changed = false;
    } else if (s.partial && s.phase == Phase::subscribed) {
      e->type = EventType::world;
      e->status = 3;
      s.partial = false;
    } else if (report_due(s)) {
      e->type = EventType::mismatch;
      e->status = 1;
      e->data = text_of(s.report);
      s.told = hash_of(s.report);
    } else if (s.updated) {
      e->type = EventType::world_update;
      e->value = s.newest;
      s.updated = false;
      if (s.phase != Phase::subscribed) continue;
    } else if (s.phase == Phase::subscribed && s.receiver->rate_news(&e->value, &off)) {
      e->type = EventType::tick_rate;
      e->status = off ? 1 : 0;
    } else {
      continue;
    }
    return true;
  }
  return false;
}

void Worlds::carried(uint64_t now) {
  const uint64_t gap = now - carried_at_;
  if (carried_at_ != 0) {
    if (gap <= same_tick) return;
    carried_every_ = std::min(std::max(gap, carried_every_ - carried_every_ / 8), max_wait);
  }
  carried_at_ = now;
}

uint64_t Worlds::alone(const Subscription &s, uint64_t now, uint64_t rtt) const {
  const uint64_t at = s.acked_at == 0 ? 0 : s.acked_at + s.interval;
  const uint64_t until = carried_at_ + 2 * carried_every_;
  if (carried_every_ == 0 || now >= until) return at;
  // If acks waited, the messages sent meanwhile would be larger, since they refer to an older
  // baseline.
  const uint64_t age = std::max<uint64_t>(rtt + now - s.acked_at, 1), wait = (until - now) / 4;
  const bool pays = s.received * wait / (2 * age) > datagram_overhead + 2 + max_ack;
  return pays ? at : std::max(at, until);
}

uint64_t Worlds::alone(uint64_t now, uint64_t rtt) const {
  uint64_t at = never;
  for (const Subscription &s : list_)
    if (s.ack_due) at = std::min(at, alone(s, now, rtt));
  return at;
}

size_t Worlds::take(Buffer to, uint64_t now) {
  size_t n = 0;
  for (Subscription &s : list_) {
    if (!s.ack_due || to.capacity - n < 2 + max_ack) continue;
    to.data[n] = 0xca;
    to.data[n + 1] = s.number;
    n += 2 + s.receiver->ack(to.data + n + 2);
    s.ack_due = false;
    s.acked_at = now;
    s.received = 0;
  }
  return n;
}

} // namespace uplink::detail::client
