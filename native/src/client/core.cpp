#include "src/client/core.hpp"

#include <algorithm>
#include <cstring>

#include "src/base/text.hpp"

namespace uplink::detail::client {
namespace {

constexpr size_t least_waiting = 3072, least_events = 18944;
constexpr uint32_t least_queue = 32768, most_queue = 64 << 20;

bool may_reconnect(Reason r) {
  switch (r) {
  case Reason::timeout:
  case Reason::lost:
  case Reason::token_expired:
  case Reason::token_used:
  case Reason::token_early:
  case Reason::token_ahead:
  case Reason::server_full:
  case Reason::busy:
  case Reason::shutdown:
  case Reason::refused:
  case Reason::unreleased:
  case Reason::no_server:
    return true;
  default:
    return false;
  }
}

} // namespace

Core::~Core() {
  while (links_ != nullptr) {
    Link *l = links_;
    links_ = l->next;
    detail::destroy(allocator_, l);
  }
  detail::destroy(allocator_, notice_);
  for (Handler &h : handlers_) Frame::destroy(h.frame);
}

Error Core::setup(const ClientConfig &c) {
  config_ = c;
  const Crypto &f = c.crypto;
  if (f.x25519 == nullptr || f.chacha20 == nullptr || f.poly1305 == nullptr || f.sha256 == nullptr ||
      f.random == nullptr)
    return Error::invalid;
  offered_ = c.offered;
  if (offered_ == 0)
    for (uint8_t s = 1; s < suites; s++)
      offered_ = static_cast<uint8_t>(offered_ | (available(f, s) ? 1U << s : 0U));
  for (uint8_t s = 0; s < 8; s++)
    if ((offered_ >> s & 1) != 0 && !available(f, s)) return Error::invalid;
  if (config_.timeout == 0) config_.timeout = 15 * second * 1000;
  if (config_.event_bytes == 0) config_.event_bytes = least_events;
  if (config_.datagram_bytes == 0) config_.datagram_bytes = least_waiting;
  if (config_.timeout < 2 * second * 1000 || config_.event_bytes < least_events ||
      config_.datagram_bytes < least_waiting || c.reliable_queue < least_queue ||
      c.reliable_queue > most_queue || c.bindings == 0 || c.bindings > 256 || c.handlers > max_incoming ||
      c.worlds > max_worlds || c.stream_rate < 4096)
    return Error::invalid;
  const bool ok = events_.create(allocator_, config_.event_bytes) && rpcs_.create(allocator_, c.bindings) &&
                  handlers_.create(allocator_, c.handlers) && (active_ = add_link({})) != nullptr;
  return ok ? Error::ok : Error::no_memory;
}

Link *Core::add_link(const Address &server) {
  auto *l = detail::create<Link>(allocator_, allocator_, events_, next_stream_);
  if (l == nullptr) return nullptr;
  if (!l->create(config_, offered_, rpcs_.data(), rpcs_n_)) {
    detail::destroy(allocator_, l);
    return nullptr;
  }
  l->server = server;
  l->next = links_;
  links_ = l;
  return l;
}

// remove_links removes links whose session has ended and whose data the program has received.
void Core::remove_links() {
  for (Link **at = &links_; *at != nullptr;) {
    Link *l = *at;
    const bool rest = l->role == Role::former && (l->reliable.next_size() > 0 || l->bulk.next_size() > 0 ||
                                                  l->requests_n > 0 || l->streams.busy());
    const bool ended =
        l->role != Role::playing && l->role != Role::standby && l->session.state() == State::idle && !rest;
    if (!ended) {
      at = &l->next;
      continue;
    }
    Stats s;
    l->session.fill(&s);
    past_.sent += s.sent;
    past_.sent_bytes += s.sent_bytes;
    past_.received += s.received;
    past_.missing += s.missing;
    *at = l->next;
    detail::destroy(allocator_, l);
  }
}

void Core::emit(EventType type, Reason r, uint64_t value) {
  Event e;
  e.type = type;
  e.reason = r;
  e.value = value;
  events_.push(e);
}

void Core::log(LogLevel level, const char *text) const {
  if (config_.log.write != nullptr) config_.log.write(config_.log.context, level, text);
}

void Core::log(const Event &e) const {
  if (config_.log.write == nullptr) return;
  LogLevel level = LogLevel::info;
  switch (e.type) {
  case EventType::message:
  case EventType::answer:
  case EventType::quality:
  case EventType::server_call:
  case EventType::stream_data:
  case EventType::world_update:
  case EventType::tick_message:
    level = LogLevel::debug;
    break;
  case EventType::reconnecting:
  case EventType::disconnected:
  case EventType::bind_failed:
  case EventType::new_socket:
  case EventType::stream_aborted:
  case EventType::silent:
  case EventType::mismatch:
  case EventType::tick_rate:
    level = LogLevel::warning;
    break;
  case EventType::world:
    if (e.status == static_cast<uint8_t>(WorldStatus::refused) ||
        e.status == static_cast<uint8_t>(WorldStatus::partial))
      level = LogLevel::warning;
    break;
  default:
    break;
  }
  char line[max_report + 256];
  describe(e, line, sizeof(line));
  log(level, line);
}

// log_dropped logs how many datagrams were dropped, at most once a second.
void Core::log_dropped(uint64_t now) {
  if (dropped_ == dropped_logged_ || now < dropped_at_) return;
  char line[160];
  Text t(line, sizeof(line));
  t.number("datagrams dropped that are damaged, repeated, late, or of no session: ",
           static_cast<long long>(dropped_ - dropped_logged_));
  t.end();
  log(LogLevel::warning, line);
  dropped_logged_ = dropped_;
  dropped_at_ = now + second;
}

Error Core::do_bind(const Schema &s, const BindConfig &c, uint8_t *rpc) {
  if (rpcs_n_ == rpcs_.size()) return Error::full;
  if (c.ring < 2 || c.ring > 256 || c.batch > 7 || ((c.codec == Codec::rle || c.reliable) && c.batch > 0))
    return Error::invalid;
  for (size_t i = 0; i < rpcs_n_; i++) {
    const bool again = std::strcmp(rpcs_[i].schema->rpc(), s.rpc()) == 0;
    if (again && active_->bindings[i].phase != Phase::failed) return Error::invalid;
  }
  Rpc &r = rpcs_[rpcs_n_];
  r = {&s, c};
  for (Link *l = links_; l != nullptr; l = l->next)
    if (!l->add(r, rpcs_n_)) return Error::no_memory;
  *rpc = static_cast<uint8_t>(rpcs_n_++);
  return Error::ok;
}

Error Core::do_connect(const char *token, size_t n, uint64_t now) {
  const Error e = parse_token(config_.crypto, token, n, &token_);
  if (e != Error::ok) return e;
  orphaned_ = Reason::none;
  if (standby_ != nullptr) stay(Reason::quit, now);
  active_->session.close(0, Reason::quit, now);
  was_open_ = false;
  server_ = {};
  start_at_ = std::max(now, not_before_);
  return Error::ok;
}

Error Core::do_assign(const Address &server, const char *token, size_t n, uint64_t now) {
  if (is_open()) return continue_at(server, token, n, now);
  const Error e = do_connect(token, n, now);
  if (e == Error::ok) server_ = server;
  return e;
}

Pace Core::do_pace(uint8_t rpc, uint64_t now) const {
  Pace p;
  if (rpc >= rpcs_n_) return p;
  const Rpc &r = rpcs_[rpc];
  p.slack = int64_t{r.slack} * 100000;
  p.target = uint64_t{r.target} * 100000;
  p.missing = r.missing;
  p.late = r.late;
  // Differences are corrected within 3 s, the part above 12 ms within 1 s, by at most 25 %.
  if (r.reported != 0 && now - r.reported <= 2 * second) {
    const double few = r.target - r.slack, excess = few > 120 ? few - 120 : few < -120 ? few + 120 : 0;
    p.rate = r.rate / 10000.0 * (1 + std::max(-0.25, std::min(few / 30000 + excess / 10000, 0.25)));
  }
  return p;
}

void Core::do_close(uint8_t code, uint64_t now) {
  now_ = now;
  const bool waits = start_at_ != never || orphaned_ != Reason::none;
  start_at_ = never;
  orphaned_ = Reason::none;
  if (standby_ != nullptr) stay(Reason::quit, now);
  for (Link *l = links_; l != nullptr; l = l->next) {
    if (l == active_) continue;
    abandon(*l, now);
  }
  if (waits) {
    emit(EventType::disconnected, Reason::quit);
    return;
  }
  const bool connecting = active_->session.state() == State::connecting;
  active_->session.close(code, Reason::quit, now);
  if (connecting) ended(*active_);
}

void Core::violation(Link &l, uint64_t now) {
  l.session.close(3, Reason::violation, now);
}

void Core::opened(Link &l, uint64_t now) {
  l.begin(config_.timeout, now);
  if (l.role == Role::seeking) promote(l);
  if (l.role == Role::standby) {
    standby_opened(l, now);
    return;
  }
  quality_at_ = now + second;
  emit(EventType::connected, Reason::none, before_ ? 1 : 0);
  was_open_ = before_ = true;
}

void Core::ended(Link &l) {
  if (l.role == Role::standby) {
    standby_ended(l, now_);
    return;
  }
  if (l.role != Role::playing) return;
  quality_at_ = never;
  if (was_open_ && now_ - l.since > 10 * second) backoff_ = 0;
  if (standby_ != nullptr && !notice_->asked)
    stay(l.session.reason(), now_); // no server is left to release it
  if (standby_ != nullptr && standby_->is_open()) {
    switch_over(now_);
    return;
  }
  l.streams.start();
  l.worlds.start();
  was_open_ = false;
  if (standby_ != nullptr)
    orphaned_ = l.session.reason(); // the result of the standby decides what follows
  else
    lost(l.session.reason());
}

void Core::lost(Reason r) {
  // The client has begun a session at another server because its server was silent. That session
  // replaced this one.
  const bool own = r == Reason::replaced && continued_at_ != 0 && now_ - continued_at_ < 10 * second;
  if (!may_reconnect(r) && !own) {
    emit(EventType::disconnected, r);
    return;
  }
  // The wait doubles from 250 ms to 8 s. A random part is subtracted.
  uint8_t random[2] = {};
  config_.crypto.random(config_.crypto.context, random, 2);
  backoff_ = std::min(backoff_ == 0 ? second / 4 : 2 * backoff_, 8 * second);
  const uint64_t wait = backoff_ - backoff_ / 2 * load_little(random, 2) / 65536;
  not_before_ = now_ + wait;
  emit(EventType::reconnecting, r, wait * 1000);
}

void Core::step(uint64_t now) {
  now_ = now;
  for (Link *l = links_; l != nullptr; l = l->next) step(*l, now);
  listen(now);
  choose(now);
  try_switch(now);
  remove_links();
  log_dropped(now);
}

void Core::step(Link &l, uint64_t now) {
  const State before = l.session.state();
  l.session.advance(now);
  if (before != State::idle && l.session.state() == State::idle) ended(l);
  if (&l == active_ && now >= start_at_ && l.session.state() == State::idle) {
    start_at_ = never;
    l.server = server_;
    for (size_t i = 0; i < rpcs_n_; i++) rpcs_[i].reported = 0;
    log(LogLevel::info, "connecting");
    if (l.session.start(token_, now) != Error::ok) emit(EventType::disconnected, Reason::token_invalid);
  }
  if (l.role == Role::former) part(l, now);
  if (!l.is_open()) return;
  l.worlds.step(l.role == Role::playing);
  if (l.reliable.dead() || l.bulk.dead()) {
    l.session.close(0, Reason::timeout, now);
    return;
  }
  deliver(l, now);
  const bool deaf = l.session.take_deaf();
  if (l.role != Role::playing) return;
  if (deaf) emit(EventType::new_socket);
  l.worlds.await(now);
  if (now >= quality_at_) {
    quality_at_ = now + second;
    if (events_.room() > 0) emit(EventType::quality);
  }
}

Stats Core::do_stats() const {
  Stats s;
  active_->session.fill(&s);
  for (const Link *l = links_; l != nullptr; l = l->next) {
    if (l == active_) continue;
    Stats other;
    l->session.fill(&other);
    s.sent += other.sent;
    s.sent_bytes += other.sent_bytes;
    s.received += other.received;
    s.missing += other.missing;
  }
  s.sent += past_.sent;
  s.sent_bytes += past_.sent_bytes;
  s.received += past_.received;
  s.missing += past_.missing;
  s.dropped = dropped_;
  s.calls = calls_;
  s.acks = acks_;
  s.server_calls = server_calls_;
  s.server_calls_dropped = server_calls_dropped_;
  return s;
}

} // namespace uplink::detail::client
