// Handovers: the client connects to another server while it plays, and switches when it is ready there.
// messages.md, 8.
#include <algorithm>
#include <cstdio>

#include "src/client/core.hpp"

namespace uplink::detail::client {
namespace {

// Maximum wait for the answers of another server to requests to bind, for worlds of which no data
// arrives once everything else is ready, and for data in flight at a former server.
constexpr uint64_t bind_wait = 10 * second, world_wait = second, part_wait = 15 * second;
// The time between two attempts to switch.
constexpr uint64_t switch_step = second / 50;
// The time in which the client switches, or stays, and then that for the release.
constexpr uint64_t switch_wait = 20 * second, release_wait = 5 * second;
// The size of a hello to a server that has not answered, with the headers of IP and UDP.
constexpr uint64_t hello_bytes = 64 + 28;
// A server may send 4 handovers per minute that fail. Handovers that complete cost an eighth.
constexpr uint64_t notice_cost = 120, notice_refund = 105, notice_rate = 8, notice_burst = 4 * notice_cost;

// Scope is the range of hosts that can reach an address.
enum class Scope : uint8_t { global, unreachable, loopback, link_local, local };

Scope scope_of(const Address &a) {
  const uint8_t *ip = a.ip;
  if (a.family == 4) {
    if (ip[0] == 0 || ip[0] >= 224) return Scope::unreachable;
    if (ip[0] == 127) return Scope::loopback;
    if (ip[0] == 169 && ip[1] == 254) return Scope::link_local;
    const bool local = ip[0] == 10 || (ip[0] == 172 && ip[1] >> 4 == 1) || (ip[0] == 192 && ip[1] == 168) ||
                       (ip[0] == 100 && ip[1] >> 6 == 1);
    return local ? Scope::local : Scope::global;
  }
  static const uint8_t zeros[15] = {};
  if (a.family != 6 || ip[0] == 0xff) return Scope::unreachable;
  if (std::memcmp(ip, zeros, 15) == 0) return ip[15] == 1 ? Scope::loopback : Scope::unreachable;
  if (ip[0] == 0xfe && ip[1] >> 6 == 2) return Scope::link_local;
  return ip[0] >> 1 == 0x7e || (ip[0] == 0xfe && ip[1] >> 6 == 3) ? Scope::local : Scope::global;
}

// text_of writes an address in the format of parse_address, and returns its size.
size_t text_of(const Address &a, char *to, size_t capacity) {
  int n = 0;
  if (a.family == 4) {
    n = std::snprintf(to, capacity, "%d.%d.%d.%d:%d", a.ip[0], a.ip[1], a.ip[2], a.ip[3], a.port);
  } else if (a.family == 6) {
    unsigned w[8];
    for (size_t i = 0; i < 8; i++) w[i] = static_cast<unsigned>(a.ip[2 * i] << 8 | a.ip[2 * i + 1]);
    n = std::snprintf(to, capacity, "[%x:%x:%x:%x:%x:%x:%x:%x]:%d", w[0], w[1], w[2], w[3], w[4], w[5], w[6],
                      w[7], a.port);
  }
  return n < 0 ? 0 : static_cast<size_t>(n);
}

} // namespace

bool Core::is_loopback(const Address &a) {
  return scope_of(a) == Scope::loopback;
}

bool parse_notice(const Crypto &c, Bytes m, Notice *h) {
  Reader r(m);
  const bool type = r.little(1) == 0xc0;
  h->stream = static_cast<uint8_t>(r.little(1));
  h->tick = r.varint();
  h->size = static_cast<uint32_t>(r.little(4));
  if (h->size > 0) r.copy(h->hash, 32);
  h->n = static_cast<size_t>(r.little(1));
  if (!type || !r.ok() || h->size > Streams::max_payload || h->n < 1 || h->n > 8 || h->tick >> 53 != 0 ||
      (h->stream > 15 && h->stream != 255) || (h->stream == 255 && h->tick != 0))
    return false;
  for (size_t i = 0; i < h->n; i++) {
    Address &a = h->servers[i];
    a = {};
    a.family = static_cast<uint8_t>(r.little(1));
    const Bytes ip = r.bytes(a.family == 4 ? 4 : 16);
    a.port = static_cast<uint16_t>(r.little(2));
    if (!r.ok() || (a.family != 4 && a.family != 6) || a.port == 0) return false;
    copy(a.ip, ip.data, ip.size);
    static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    uint8_t any = 0;
    for (size_t j = 0; j < ip.size; j++) any = static_cast<uint8_t>(any | a.ip[j]);
    if (any == 0 || (a.family == 6 && std::memcmp(a.ip, mapped, 12) == 0)) return false;
  }
  const Bytes token = r.rest();
  return token.size <= max_token_text &&
         parse_token(c, reinterpret_cast<const char *>(token.data), token.size, &h->token) == Error::ok;
}

void Core::tell(const Address &server, uint8_t status, Reason r) {
  char text[64];
  Event e;
  e.type = EventType::handover;
  e.status = status;
  e.reason = r;
  e.data = {reinterpret_cast<const uint8_t *>(text), text_of(server, text, sizeof(text))};
  events_.push(e);
}

bool Core::on_handover(Link &l, Bytes m, uint64_t now) {
  if (m.size == sizeof(l.release)) {
    if (l.parting != Parting::asked) return false;
    copy(l.release, m.data, m.size);
    l.parting = Parting::released;
    ask_release(l, now);
    return true;
  }
  auto *n = detail::create<Notice>(allocator_);
  if (n == nullptr || !parse_notice(config_.crypto, m, n)) {
    detail::destroy(allocator_, n);
    return false;
  }
  if (l.role == Role::playing && !notices_.take(notice_cost, notice_rate, notice_burst, now)) {
    detail::destroy(allocator_, n);
    return false;
  }
  detail::destroy(allocator_, l.notice);
  l.notice = n;
  if (l.role == Role::playing) return true;
  detail::destroy(allocator_, n);
  l.notice = nullptr;
  return true;
}

// begin_handover begins a handover once its notice and its data have arrived.
void Core::begin_handover(Link &l, uint64_t now) {
  if (l.role != Role::playing || l.notice == nullptr || !l.is_open()) return;
  if (l.streams.take_refused()) {
    detail::destroy(allocator_, l.notice);
    l.notice = nullptr;
  }
  if (l.notice == nullptr || !l.streams.has_payload()) return;
  Notice *n = l.notice;
  l.notice = nullptr;
  const size_t size = l.streams.take_payload(&n->data);
  const Bytes data = {n->data.data(), size};
  uint8_t hash[32] = {};
  if (size > 0) config_.crypto.sha256(config_.crypto.context, hash, &data, 1);
  if (size != n->size || std::memcmp(hash, n->hash, sizeof(hash)) != 0) {
    l.streams.finish_payload(false);
    tell(n->servers[0], 2, Reason::handover_data);
    detail::destroy(allocator_, n);
    return;
  }
  seek(n, now);
}

// seek connects to another server for a search.
void Core::seek(Notice *n, uint64_t now) {
  if (standby_ != nullptr) stay(Reason::superseded, now);
  size_t links = 0;
  for (const Link *l = links_; l != nullptr; l = l->next) links++;
  notice_ = n;
  tell(n->servers[0], 0, Reason::none);
  standby_ = links < max_links ? add_link(n->servers[0]) : nullptr;
  if (standby_ == nullptr) {
    stay(Reason::no_memory, now);
    return;
  }
  standby_->role = Role::standby;
  dialed_ = 0;
  switch_by_ = n->asked ? never : now + switch_wait;
  dial(now);
}

// dial connects to the next permitted address of the other server.
void Core::dial(uint64_t now) {
  unsigned hellos = 0;
  if (!notice_->asked) {
    refund(*standby_);
    while (dialed_ < notice_->n && !follows(notice_->servers[dialed_])) dialed_++;
    if (dialed_ == notice_->n || (hellos = spend(*standby_)) == 0) {
      stay(Reason::address, now);
      return;
    }
  }
  standby_->server = notice_->servers[dialed_];
  standby_->since = now;
  if (standby_->session.start(notice_->token, now, hellos) != Error::ok) stay(Reason::token_invalid, now);
}

bool Core::follows(const Address &a) const {
  const Scope to = scope_of(a);
  if (to == Scope::global || to == Scope::unreachable) return to == Scope::global;
  const Address &own = active_->server.family == 0 ? config_.server : active_->server;
  return config_.local_handovers || (own.family != 0 && scope_of(own) == to);
}

unsigned Core::spend(Link &l) {
  const uint64_t n =
      std::min<uint64_t>((received_ - std::min(received_, unanswered_)) / hello_bytes, max_hellos);
  l.spent = static_cast<uint32_t>(n * hello_bytes);
  unanswered_ += l.spent;
  return static_cast<unsigned>(n);
}

void Core::refund(Link &l) {
  if (l.session.answered()) unanswered_ -= l.spent;
  l.spent = 0;
}

uint64_t Core::wait_of(const Link &l) const {
  return &l == standby_ && !notice_->asked && !l.session.answered() ? silent_wait : dial_wait;
}

void Core::standby_opened(Link &l, uint64_t now) {
  refund(l);
  ready_at_ = never;
  if (notice_->size > 0) l.streams.send_payload(&notice_->data, notice_->size);
  active_->worlds.prepare(&l.worlds);
  if (orphaned_ != Reason::none) switch_over(now); // there is nothing to wait for
}

void Core::standby_ended(Link &l, uint64_t now) {
  if (!l.opened && ++dialed_ < notice_->n) {
    dial(now);
  } else if (Link *other = l.opened ? nullptr : seeking()) {
    promote(*other);
    abandon(l, now);
  } else {
    stay(l.session.reason(), now);
  }
}

void Core::abandon(Link &l, uint64_t now) {
  refund(l);
  l.role = Role::abandoned;
  l.worlds.discard();
  l.session.close(0, Reason::quit, now);
}

// stay abandons the other server. If the current session has ended, the client reconnects.
void Core::stay(Reason r, uint64_t now) {
  Notice *n = notice_;
  notice_ = nullptr;
  end_search(now);
  if (standby_ != nullptr) abandon(*standby_, now);
  standby_ = nullptr;
  if (!n->asked) active_->streams.finish_payload(false);
  tell(n->servers[0], 2, r);
  detail::destroy(allocator_, n);
  const Reason orphaned = orphaned_;
  orphaned_ = Reason::none;
  if (orphaned != Reason::none) lost(orphaned);
}

bool Core::reached() const {
  return notice_->stream == 255 || active_->worlds.reached(notice_->stream, notice_->tick);
}

// try_switch switches to the other server if the client is ready there and the tick of the handover
// is reached.
void Core::try_switch(uint64_t now) {
  if (standby_ == nullptr) return;
  Link &s = *standby_;
  if (notice_->asked && answers(now)) {
    stay(Reason::answers, now);
    return;
  }
  if (!s.is_open()) {
    if (now >= switch_by_) {
      stay(Reason::timeout, now);
    } else if (!s.opened && now - s.since >= wait_of(s)) {
      s.session.close(0, Reason::timeout, now);
      standby_ended(s, now);
    }
    return;
  }
  const Streams::Result sent = s.streams.sent();
  const bool ready = sent == Streams::complete && s.bound(rpcs_n_);
  look_at_ = never;
  if (ready && ready_at_ == never) ready_at_ = now;
  if (sent != Streams::complete && sent != Streams::pending)
    stay(Reason::refused, now);
  else if (!ready && now - s.since >= bind_wait)
    stay(Reason::not_bound, now);
  else if (ready && reached() && worlds_ready(now))
    switch_over(now);
  else if (now >= switch_by_)
    stay(Reason::timeout, now);
  else if (ready)
    look_at_ = now + switch_step;
}

// worlds_ready reports whether the worlds of the other server have arrived sufficiently. It waits
// only briefly for worlds that the other server may not offer, and never beyond switch_by_. If the
// client's server is dead, it does not wait: the view shows that server's last state until the new
// one is complete.
bool Core::worlds_ready(uint64_t now) const {
  if (notice_->asked) return true;
  const Worlds::Progress p = active_->worlds.prepared(standby_->worlds, now);
  if (p == Worlds::Progress::absent) return now - ready_at_ >= world_wait;
  return p == Worlds::Progress::complete || now >= switch_by_;
}

void Core::switch_over(uint64_t now) {
  Link &before = *active_;
  Link &next = *standby_;
  Notice *n = notice_;
  active_ = &next;
  standby_ = nullptr;
  notice_ = nullptr;
  orphaned_ = Reason::none;
  end_search(now);
  tell(next.server, 1, Reason::none);
  // Calls that are held back for batching are sent now. They may be lost like any datagram.
  for (size_t i = 0; i < rpcs_n_; i++) {
    Binding &b = next.bindings[i];
    rpcs_[i].reported = 0;
    const bool was = before.bindings[i].phase == Phase::bound;
    if (before.bindings[i].encoder != nullptr) (void)before.flush(i, rpcs_[i].config.reliable);
    if (b.phase == Phase::requesting || (b.phase == Phase::bound && was)) continue;
    Event e;
    e.type = b.phase == Phase::bound ? EventType::bound : EventType::bind_failed;
    e.rpc = static_cast<uint8_t>(i);
    e.value = b.reason;
    events_.push(e);
  }
  next.role = Role::playing;
  next.worlds.adopt(&before.worlds);
  before.role = Role::former;
  before.release_encoders();
  before.since = now;
  if (!n->asked) {
    before.parting = Parting::switching;
    before.follower = next.session.connection();
    notices_.level = std::min(notices_.level + notice_refund, notice_burst);
    ask_release(before, now);
  }
  before.streams.refuse_payloads();
  if (n->asked) before.session.close(0, Reason::quit, now);
  detail::destroy(allocator_, n);
  quality_at_ = now + second;
  backoff_ = 0;
  was_open_ = before_ = true;
}

// ask_release takes the next step after the client has switched in a handover. The former server
// must release the client; the release lets it play at the other server.
void Core::ask_release(Link &l, uint64_t now) {
  static const uint8_t switched[1] = {0xc0};
  if (l.parting == Parting::none) return;
  if (active_->session.connection() != l.follower) { // the client plays elsewhere
    l.parting = Parting::none;
    return;
  }
  // After all earlier messages to that server.
  if (l.parting == Parting::switching && l.is_open() && l.reliable.send({switched, 1}))
    l.parting = Parting::asked;
  if (l.parting == Parting::released && active_->reliable.send({l.release, sizeof(l.release)})) {
    l.parting = Parting::none;
    l.streams.finish_payload(true);
  }
  if (l.parting != Parting::none && now - l.since >= release_wait) unreleased(l, now);
}

// unreleased ends the session with the other server, because the client was not released. The
// client reconnects.
void Core::unreleased(Link &l, uint64_t now) {
  l.parting = Parting::none;
  active_->session.close(0, Reason::unreleased, now);
}

// part ends the session with a former server when no messages are in flight in either direction.
void Core::part(Link &l, uint64_t now) {
  if (!l.is_open()) {
    // No more data follows. Report the requests and streams that have not ended to the program.
    if (l.session.state() != State::idle || l.reliable.next_size() > 0 || l.bulk.next_size() > 0) {
      deliver(l, now);
      return;
    }
    ask_release(l, now);
    if (l.parting != Parting::none) unreleased(l, now);
    while (l.requests_n > 0 && events_.room() > 0) {
      Event e;
      e.type = EventType::answer;
      e.status = 5;
      e.value = l.requests[--l.requests_n];
      events_.push(e);
    }
    (void)l.streams.fail();
    return;
  }
  const bool sent = l.waiting_n == 0 && l.reliable.idle();
  ask_release(l, now);
  const bool over = l.parting == Parting::none && l.shutdown_told && sent && l.bulk.idle() &&
                    l.requests_n == 0 && !l.streams.busy() && l.reliable.next_size() == 0 &&
                    l.bulk.next_size() == 0;
  if (over || now - l.since >= part_wait) l.session.close(0, Reason::quit, now);
}

uint64_t Core::handover_timeout() const {
  uint64_t t = listen_at();
  for (const Link *l = links_; l != nullptr; l = l->next) {
    if (l->role == Role::former && l->is_open()) t = std::min(t, l->since + part_wait);
    if ((l->role == Role::standby && !l->opened) || l->role == Role::seeking)
      t = std::min(t, l->since + wait_of(*l));
    if (l->role == Role::former && l->parting != Parting::none) t = std::min(t, l->since + release_wait);
  }
  if (standby_ != nullptr) t = std::min(t, switch_by_);
  if (standby_ != nullptr && standby_->is_open())
    t = std::min(t, ready_at_ != never ? look_at_ : standby_->since + bind_wait);
  return t;
}

} // namespace uplink::detail::client
