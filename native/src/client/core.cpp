#include "src/client/core.hpp"

#include <algorithm>

namespace uplink::detail::client {
namespace {

constexpr uint64_t second = 1000000;
constexpr uint64_t bind_interval = 250000;
constexpr size_t least_waiting = 3072, least_events = 18944;

bool queue_size(size_t n, size_t least, size_t most) {
  return n >= least && n <= most && (n & (n - 1)) == 0;
}

bool may_reconnect(Reason r) {
  switch (r) {
  case Reason::timeout:
  case Reason::lost:
  case Reason::token_expired:
  case Reason::token_used:
  case Reason::token_early:
  case Reason::server_full:
  case Reason::busy:
  case Reason::shutdown:
  case Reason::refused:
    return true;
  default:
    return false;
  }
}

} // namespace

Core::~Core() {
  release_encoders();
  release_decoders();
  for (Handler &h : handlers_) Frame::destroy(h.frame);
}

Error Core::setup(const ClientConfig &c) {
  config_ = c;
  const Crypto &f = c.crypto;
  if (f.x25519 == nullptr || f.chacha20 == nullptr || f.poly1305 == nullptr || f.sha256 == nullptr ||
      f.random == nullptr)
    return Error::invalid;
  uint8_t offered = c.offered;
  if (offered == 0)
    for (uint8_t s = 1; s < suites; s++)
      offered = static_cast<uint8_t>(offered | (available(f, s) ? 1U << s : 0U));
  for (uint8_t s = 0; s < 8; s++)
    if ((offered >> s & 1) != 0 && !available(f, s)) return Error::invalid;
  if (config_.timeout == 0) config_.timeout = 15 * second * 1000;
  if (config_.event_bytes == 0) config_.event_bytes = least_events;
  if (config_.datagram_bytes == 0) config_.datagram_bytes = least_waiting;
  if (config_.timeout < 2 * second * 1000 || config_.event_bytes < least_events ||
      config_.datagram_bytes < least_waiting || !queue_size(c.send_queue, 8, 256) ||
      !queue_size(c.receive_queue, 16, 64) || c.bindings == 0 || c.bindings > 256 ||
      c.handlers > max_incoming || c.worlds > max_worlds || c.stream_rate < 4096)
    return Error::invalid;
  session_.configure(f, offered, config_.timeout / 1000);
  streams_.configure(c.streams, c.streams ? c.stream_rate : 0);
  // Without streams only answers to their opens use the bulk channel.
  const size_t bulk = c.streams ? 16 : 2;
  const bool ok = reliable_.create(allocator_, c.send_queue, c.receive_queue) &&
                  bulk_.create(allocator_, bulk, bulk) && events_.create(allocator_, config_.event_bytes) &&
                  bindings_.create(allocator_, c.bindings) && handlers_.create(allocator_, c.handlers) &&
                  incoming_.create(allocator_, c.handlers > 0 ? max_incoming : 0) &&
                  waiting_.create(allocator_, config_.datagram_bytes) && worlds_.create(c.worlds);
  return ok ? Error::ok : Error::no_memory;
}

void Core::release_encoders() {
  for (Binding &b : bindings_) {
    Encoder::destroy(b.encoder);
    b.encoder = nullptr;
  }
}

void Core::emit(EventType type, Reason r, uint64_t value) {
  Event e;
  e.type = type;
  e.reason = r;
  e.value = value;
  events_.push(e);
}

Error Core::do_bind(const Schema &s, const BindConfig &c, uint8_t *rpc) {
  if (bindings_n_ == bindings_.size()) return Error::full;
  if (c.ring < 2 || c.ring > 256 || c.batch > 7 || ((c.codec == Codec::rle || c.reliable) && c.batch > 0))
    return Error::invalid;
  Binding &b = bindings_[bindings_n_];
  if (!b.described.create(allocator_, (s.fields() + 7) / 8)) return Error::no_memory;
  b.schema = &s;
  b.config = c;
  b.phase = Phase::requesting;
  b.any_described = false;
  b.ask_at = 0;
  *rpc = static_cast<uint8_t>(bindings_n_++);
  return Error::ok;
}

Error Core::do_open(Bytes name, uint32_t *stream, uint64_t now) {
  return session_.state() == State::open ? streams_.open(name, now, stream) : Error::closed;
}

Error Core::do_connect(const char *token, size_t n, uint64_t now) {
  const Error e = parse_token(config_.crypto, token, n, &token_);
  if (e != Error::ok) return e;
  session_.close(0, Reason::quit, now);
  was_open_ = false;
  start_at_ = std::max(now, not_before_);
  return Error::ok;
}

void Core::do_close(uint8_t code, uint64_t now) {
  if (start_at_ != never) {
    start_at_ = never;
    emit(EventType::disconnected, Reason::quit);
    return;
  }
  const bool connecting = session_.state() == State::connecting;
  session_.close(code, Reason::quit, now);
  if (connecting) ended();
}

void Core::violation(uint64_t now) {
  session_.close(3, Reason::violation, now);
}

void Core::opened(uint64_t now) {
  const uint32_t conversation = static_cast<uint32_t>(session_.connection() >> 24);
  const size_t overhead = 28 + 11 + session_.overhead();
  reliable_.start(conversation, config_.timeout / 1000000, overhead, now / 1000);
  bulk_.start(conversation + 1, config_.timeout / 1000000, overhead, now / 1000);
  release_encoders();
  release_decoders();
  streams_.start(now);
  worlds_.start();
  for (size_t i = 0; i < bindings_n_; i++) {
    Binding &b = bindings_[i];
    b.phase = Phase::requesting;
    b.ask_at = 0;
    b.any_described = false;
    std::fill(b.described.begin(), b.described.end(), uint8_t{0});
  }
  waiting_n_ = 0;
  server_binds_ = 0;
  requests_n_ = 0;
  shutdown_told_ = false;
  opened_at_ = now;
  quality_at_ = now + second;
  emit(EventType::connected, Reason::none, before_ ? 1 : 0);
  was_open_ = before_ = true;
}

void Core::ended() {
  const Reason r = session_.reason();
  streams_.start(now_);
  worlds_.start();
  quality_at_ = never;
  if (was_open_ && now_ - opened_at_ > 10 * second) backoff_ = 0;
  was_open_ = false;
  if (!may_reconnect(r)) {
    emit(EventType::disconnected, r);
    return;
  }
  // The wait doubles from 250 ms up to 8 s, of which a random part is left out.
  uint8_t random[2] = {};
  config_.crypto.random(config_.crypto.context, random, 2);
  backoff_ = std::min(backoff_ == 0 ? second / 4 : 2 * backoff_, 8 * second);
  const uint64_t wait = backoff_ - backoff_ / 2 * load_little(random, 2) / 65536;
  not_before_ = now_ + wait;
  emit(EventType::reconnecting, r, wait * 1000);
}

void Core::step(uint64_t now) {
  now_ = now;
  const State before = session_.state();
  session_.advance(now);
  if (before != State::idle && session_.state() == State::idle) ended();
  if (now >= start_at_ && session_.state() == State::idle) {
    start_at_ = never;
    if (session_.start(token_, now) != Error::ok) emit(EventType::disconnected, Reason::token_invalid);
  }
  if (session_.state() != State::open) return;
  worlds_.step();
  if (reliable_.dead() || bulk_.dead()) {
    session_.close(0, Reason::timeout, now);
    return;
  }
  deliver(now);
  if (session_.take_deaf()) emit(EventType::new_socket);
  if (now >= quality_at_) {
    quality_at_ = now + second;
    if (events_.room() > 0) emit(EventType::quality);
  }
}

void Core::do_receive(Bytes d, uint64_t now) {
  now_ = now;
  uint8_t kind = 0;
  Bytes body;
  const State before = session_.state();
  const bool has = session_.receive(d, now, &kind, &body);
  if (before == State::connecting && session_.state() == State::open) opened(now);
  if (before != State::idle && session_.state() == State::idle) ended();
  if (!has) return;
  if (kind == data) {
    on_data(body, now);
    worlds_.step();
    return;
  }
  // Which channel it belongs to is in the conversation number.
  if (!reliable_.input(body, now / 1000)) bulk_.input(body, now / 1000);
  deliver(now);
}

void Core::deliver(uint64_t now) {
  // Messages wait in their channel until there is room for an event with them, or with a call. The
  // bulk channel leaves room for a message of the other one.
  size_t n = 0, call = 0;
  for (size_t i = 0; i < handlers_n_; i++) call = std::max(call, handlers_[i].size);
  while (session_.state() == State::open && (n = reliable_.next_size()) > 0 &&
         events_.room() >= std::max(n, call) && !worlds_.blocked()) {
    uint8_t *m = events_.prepare(n);
    reliable_.receive(m);
    if (!on_reliable({m, n}, now)) violation(now);
    worlds_.step();
  }
  while (session_.state() == State::open && (n = bulk_.next_size()) > 0 &&
         events_.room() >= std::min(n, Streams::max_message)) {
    if (n > Streams::max_message) {
      violation(now);
      break;
    }
    uint8_t *m = events_.prepare(n);
    bulk_.receive(m);
    if (!streams_.receive({m, n}, now)) violation(now);
  }
  if (reliable_.broken() || bulk_.broken()) violation(now);
}

size_t Core::do_next(Buffer to, uint64_t now) {
  if (to.capacity < max_sent) return 0;
  step(now);
  const State before = session_.state();
  size_t n = session_.next(to, now);
  if (before != State::idle && session_.state() == State::idle) ended();
  if (n > 0 || session_.state() != State::open) return n;
  uint8_t body[max_datagram];
  uint8_t kind = reliable;
  streams_.send(now);
  n = reliable_.output(body, now / 1000);
  if (n == 0) n = bulk_.output(body, now / 1000);
  if (n == 0) {
    kind = data;
    n = next_bind(body, now);
  }
  if (n == 0) n = next_acks(body, now);
  if (n == 0) n = next_messages({body, to.capacity < max_datagram ? max_body : session_.max_data()}, now);
  if (n == 0 && worlds_.alone(now, session_.rtt()) <= now) n = worlds_.take({body, max_body}, now);
  return n == 0 ? 0 : session_.seal(to.data, kind, {body, n});
}

uint64_t Core::do_timeout() const {
  uint64_t t = session_.timeout();
  if (session_.state() == State::idle) t = std::min(t, start_at_);
  if (session_.state() == State::open) {
    t = std::min(t, quality_at_);
    for (const Channel *c : {&reliable_, &bulk_})
      if (c->next() != UINT64_MAX) t = std::min(t, c->next() * 1000);
    if (waiting_n_ > 0 || streams_.due()) t = 0;
    t = std::min(t, std::min(acks_due(), worlds_.alone(now_, session_.rtt())));
    for (size_t i = 0; i < bindings_n_; i++)
      if (bindings_[i].phase == Phase::requesting) t = std::min(t, bindings_[i].ask_at);
  }
  return t == never ? never : t * 1000;
}

size_t Core::next_bind(uint8_t *to, uint64_t now) {
  for (size_t i = 0; i < bindings_n_; i++) {
    Binding &b = bindings_[i];
    if (b.phase != Phase::requesting || now < b.ask_at) continue;
    b.ask_at = now + bind_interval;
    const Prior &prior = b.config.prior == nullptr ? Prior::generic() : *b.config.prior;
    BindRequest r;
    r.rpc = static_cast<uint8_t>(i);
    r.schema = b.schema;
    r.ring = b.config.ring;
    r.codec = b.config.codec;
    r.reliable = b.config.reliable;
    r.frames = static_cast<uint8_t>(b.config.batch + 1);
    r.batch = b.config.batch;
    r.prior = r.codec == Codec::adaptive ? prior.hash() : 0;
    r.described = b.any_described ? b.described.data() : nullptr;
    if (const size_t n = format_bind({to, max_body}, r); n > 0) return n;
    b.phase = Phase::failed;
    Event e;
    e.type = EventType::bind_failed;
    e.rpc = r.rpc;
    e.value = 5;
    events_.push(e);
  }
  return 0;
}

bool Core::queue(Bytes head, Bytes body) {
  const size_t size = head.size + body.size;
  if (size > session_.max_data() || waiting_n_ + 2 + size > waiting_.size()) return false;
  uint8_t *to = waiting_.data() + waiting_n_;
  store_little(to, 2, size);
  copy(to + 2, head.data, head.size);
  copy(to + 2 + head.size, body.data, body.size);
  waiting_n_ += 2 + size;
  return true;
}

size_t Core::next_messages(Buffer to, uint64_t now) {
  // Those that were for a larger datagram are lost.
  size_t lost = 0;
  while (lost < waiting_n_ && load_little(waiting_.data() + lost, 2) > to.capacity)
    lost += 2 + static_cast<size_t>(load_little(waiting_.data() + lost, 2));
  std::memmove(waiting_.data(), waiting_.data() + lost, waiting_n_ - lost);
  waiting_n_ -= lost;
  if (waiting_n_ == 0) return 0;
  const uint8_t *w = waiting_.data();
  // As many payloads as fit into a bundle with the size of each but the last in front. One datagram
  // has one payload of each RPC: a request to bind bounds the new frames of a datagram.
  uint64_t seen[4] = {};
  size_t n = 0, at = 0, last = 0, before = 1;
  while (at < waiting_n_ && n < 17) {
    const size_t size = static_cast<size_t>(load_little(w + at, 2));
    const int rpc = rpc_of({w + at + 2, size});
    if (rpc < 0 || (seen[rpc / 64] >> rpc % 64 & 1) != 0 || (n > 0 && before + last + 2 + size > to.capacity))
      break;
    if (n > 0) before += (last < 128 ? 1 : 2) + last;
    seen[rpc / 64] |= uint64_t{1} << rpc % 64;
    last = size;
    at += 2 + size;
    n++;
  }
  size_t size = 0;
  if (n < 2) {
    size = static_cast<size_t>(load_little(w, 2));
    copy(to.data, w + 2, size);
    at = 2 + size;
  } else {
    Writer b(to);
    b.little(0xe0 | (n - 2), 1);
    for (size_t i = 0, from = 0; i < n; i++) {
      const size_t one = static_cast<size_t>(load_little(w + from, 2));
      if (i + 1 < n) b.varint(one);
      b.bytes({w + from + 2, one});
      from += 2 + one;
    }
    size = b.size();
  }
  std::memmove(waiting_.data(), w + at, waiting_n_ - at);
  waiting_n_ -= at;
  // Acks of worlds leave in front of payloads.
  if (to.data[0] >= 0xc0 && to.data[0] < 0xe0) return size;
  if (to.capacity - size >= 2 + max_ack) worlds_.carried(now);
  uint8_t acks[Worlds::max_acks];
  const size_t acks_n = worlds_.take({acks, std::min(to.capacity - size, sizeof(acks))}, now);
  std::memmove(to.data + acks_n, to.data, size);
  copy(to.data, acks, acks_n);
  return acks_n + size;
}

Error Core::do_call(uint8_t rpc, const Frame &f) {
  if (rpc >= bindings_n_ || session_.state() != State::open || bindings_[rpc].phase != Phase::bound)
    return Error::closed;
  Binding &b = bindings_[rpc];
  // A full queue loses no call of the codec: the call is not coded.
  const bool room =
      b.config.reliable ? reliable_.has_room(max_body) : waiting_n_ + 2 + max_body <= waiting_.size();
  if (!room) return Error::full;
  Error e = b.encoder->hold(f);
  if (e != Error::ok) return e;
  calls_++;
  if (b.encoder->waiting() <= b.config.batch) return Error::ok;
  while (b.encoder->waiting() > 0) {
    uint8_t payload[max_body];
    size_t n = 0;
    e = b.encoder->flush({payload, sizeof(payload)}, &n);
    if (e != Error::ok) return e;
    const bool ok = b.config.reliable ? reliable_.send({payload, n}) : queue({payload, n});
    if (!ok) return Error::full;
  }
  return Error::ok;
}

Error Core::do_send(Bytes m, bool reliable_channel, uint64_t now) {
  if (session_.state() != State::open) return Error::closed;
  if (m.size > (reliable_channel ? 8192U : session_.max_data() - 1)) return Error::invalid;
  if (!game_.take(m.size + 64, 65536, 131072, now)) return Error::full;
  static const uint8_t type = 0xc4;
  const bool ok = reliable_channel ? reliable_.send({&type, 1}, m) : queue({&type, 1}, m);
  return ok ? Error::ok : Error::full;
}

Error Core::do_request(Bytes body, uint32_t *id, uint64_t now) {
  if (session_.state() != State::open) return Error::closed;
  if (body.size > 8192) return Error::invalid;
  if (requests_n_ == 64 || !game_.take(body.size + 64, 65536, 131072, now)) return Error::full;
  uint8_t head[6] = {0xcf, 0};
  store_little(head + 2, 4, next_request_);
  if (!reliable_.send({head, 6}, body)) return Error::full;
  *id = next_request_++;
  requests_[requests_n_++] = *id;
  return Error::ok;
}

Error Core::do_cancel(uint32_t id) {
  for (size_t i = 0; i < requests_n_; i++) {
    if (requests_[i] != id) continue;
    uint8_t m[6] = {0xcf, 1};
    store_little(m + 2, 4, id);
    if (!reliable_.send({m, 6})) return Error::full;
    requests_[i] = requests_[--requests_n_];
    return Error::ok;
  }
  return Error::invalid;
}

bool Core::next_call(uint8_t rpc, uint64_t *next) const {
  if (rpc >= bindings_n_ || bindings_[rpc].phase != Phase::bound) return false;
  *next = bindings_[rpc].encoder->next();
  return true;
}

Stats Core::do_stats() const {
  Stats s;
  session_.fill(&s);
  s.calls = calls_;
  s.acks = acks_;
  s.server_calls = server_calls_;
  s.server_calls_dropped = server_calls_dropped_;
  return s;
}

} // namespace uplink::detail::client
