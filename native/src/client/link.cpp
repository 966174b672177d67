#include "src/client/link.hpp"

#include <algorithm>
#include <new>

namespace uplink::detail::client {
namespace {

constexpr uint64_t ack_interval = 100000;

} // namespace

Link::~Link() {
  release_encoders();
  release_decoders();
  release_held();
  detail::destroy(allocator, notice);
}

bool Link::create(const ClientConfig &c, uint8_t offered, const Rpc *rpcs, size_t n) {
  session.configure(allocator, c.crypto, offered, c.timeout / 1000);
  streams.configure(c.streams, c.streams ? c.stream_rate : 0);
  bool ok = reliable.create(allocator, c.reliable_queue) &&
            bulk.create(allocator, Streams::queue_bytes, false) && bindings.create(allocator, c.bindings) &&
            incoming.create(allocator, c.handlers > 0 ? max_incoming : 0) &&
            waiting.create(allocator, c.datagram_bytes) && worlds.create(c.worlds);
  for (size_t i = 0; i < n && ok; i++) ok = add(rpcs[i], i);
  return ok;
}

bool Link::add(const Rpc &r, size_t rpc) {
  Binding &b = bindings[rpc];
  b.phase = Phase::requesting;
  b.any_described = false;
  b.ask_at = 0;
  b.asked = 0;
  return b.described.create(allocator, (r.schema->fields() + 7) / 8);
}

void Link::begin(uint64_t timeout, uint64_t now) {
  const uint32_t conversation = static_cast<uint32_t>(session.connection() >> 24);
  const size_t overhead = 28 + 11 + session.overhead();
  reliable.start(conversation, timeout / 1000000, overhead, now / 1000);
  bulk.start(conversation + 1, timeout / 1000000, overhead, now / 1000);
  release_encoders();
  release_decoders();
  release_held();
  streams.start();
  worlds.start();
  for (Binding &b : bindings) {
    b.phase = Phase::requesting;
    b.ask_at = 0;
    b.asked = 0;
    b.any_described = false;
    b.missing = b.late = 0;
    std::fill(b.described.begin(), b.described.end(), uint8_t{0});
  }
  detail::destroy(allocator, notice);
  notice = nullptr;
  waiting_n = 0;
  server_binds = 0;
  requests_n = 0;
  shutdown_told = false;
  opened = true;
  since = now;
}

void Link::release_encoders() {
  for (Binding &b : bindings) {
    Encoder::destroy(b.encoder);
    b.encoder = nullptr;
  }
}

void Link::release_decoders() {
  for (Incoming &in : incoming) {
    Decoder::destroy(in.decoder);
    Schema::destroy(in.schema);
    in = {};
  }
}

void Link::release_held() {
  while (first != nullptr) {
    Message *m = first;
    first = m->next;
    detail::release(allocator, m);
  }
  last = nullptr;
  held = 0;
}

bool Link::bound(size_t n) const {
  return std::all_of(bindings.begin(), bindings.begin() + n,
                     [](const Binding &b) { return b.phase != Phase::requesting; });
}

bool Link::next_call(uint8_t rpc, uint64_t *to) const {
  if (rpc >= bindings.size() || bindings[rpc].encoder == nullptr) return false;
  *to = bindings[rpc].encoder->next();
  return true;
}

bool Link::hold(Bytes message) {
  void *memory = allocate(allocator, sizeof(Message) + message.size);
  if (memory == nullptr) return false;
  auto *m = new (memory) Message{nullptr, message.size};
  copy(m + 1, message.data, message.size);
  (first == nullptr ? first : last->next) = m;
  last = m;
  held += sizeof(Message) + message.size;
  return true;
}

bool Link::queue(Bytes head, Bytes body) {
  const size_t size = head.size + body.size;
  if (size > session.max_data() || waiting_n + 2 + size > waiting.size()) return false;
  uint8_t *to = waiting.data() + waiting_n;
  store_little(to, 2, size);
  copy(to + 2, head.data, head.size);
  copy(to + 2 + head.size, body.data, body.size);
  waiting_n += 2 + size;
  return true;
}

Error Link::flush(size_t rpc, bool reliably) {
  Encoder &encoder = *bindings[rpc].encoder;
  while (encoder.waiting() > 0) {
    uint8_t payload[max_body];
    size_t n = 0;
    const Error e = encoder.flush({payload, sizeof(payload)}, &n);
    if (e != Error::ok) return e;
    if (!(reliably ? reliable.send({payload, n}) : queue({payload, n})))
      return reliably ? Error::no_memory : Error::full;
  }
  return Error::ok;
}

size_t Link::next_messages(Buffer to, uint64_t now) {
  // Messages built for a larger datagram are lost.
  size_t lost = 0;
  while (lost < waiting_n && load_little(waiting.data() + lost, 2) > to.capacity)
    lost += 2 + static_cast<size_t>(load_little(waiting.data() + lost, 2));
  std::memmove(waiting.data(), waiting.data() + lost, waiting_n - lost);
  waiting_n -= lost;
  if (waiting_n == 0) return 0;
  const uint8_t *w = waiting.data();
  // Adds as many payloads as fit into a bundle. Each payload but the last is preceded by its size.
  // A datagram contains one payload of each RPC, because a request to bind bounds the new frames in
  // a datagram.
  uint64_t seen[4] = {};
  size_t n = 0, at = 0, before = 1, one_before = 0;
  while (at < waiting_n && n < 17) {
    const size_t size = static_cast<size_t>(load_little(w + at, 2));
    const int rpc = rpc_of({w + at + 2, size});
    if (rpc < 0 || (seen[rpc / 64] >> rpc % 64 & 1) != 0 ||
        (n > 0 && before + one_before + 2 + size > to.capacity))
      break;
    if (n > 0) before += (one_before < 128 ? 1 : 2) + one_before;
    seen[rpc / 64] |= uint64_t{1} << rpc % 64;
    one_before = size;
    at += 2 + size;
    n++;
  }
  size_t size = 0;
  if (n < 2) {
    size = static_cast<size_t>(load_little(w, 2));
    copy(to.data, w + 2, size);
    at = 2 + size;
  } else {
    ByteWriter b(to);
    b.little(0xe0 | (n - 2), 1);
    for (size_t i = 0, from = 0; i < n; i++) {
      const size_t one = static_cast<size_t>(load_little(w + from, 2));
      if (i + 1 < n) b.varint(one);
      b.bytes({w + from + 2, one});
      from += 2 + one;
    }
    size = b.size();
  }
  std::memmove(waiting.data(), w + at, waiting_n - at);
  waiting_n -= at;
  // Acks of worlds precede payloads.
  if (to.data[0] >= 0xc0 && to.data[0] < 0xe0) return size;
  if (to.capacity - size >= 2 + max_ack) worlds.carried(now);
  uint8_t acks[Worlds::max_acks];
  const size_t acks_n = worlds.take({acks, std::min(to.capacity - size, sizeof(acks))}, now);
  std::memmove(to.data + acks_n, to.data, size);
  copy(to.data, acks, acks_n);
  return acks_n + size;
}

uint64_t Link::acks_due() const {
  for (size_t i = 0; i < server_binds && i < incoming.size(); i++)
    if (incoming[i].due) return acked_at + ack_interval;
  return never;
}

size_t Link::next_acks(uint8_t *to, uint64_t now) {
  if (acks_due() > now) return 0;
  size_t size = 1;
  to[0] = 0xc1;
  for (Incoming &in : incoming) {
    if (!in.due) continue;
    size += in.decoder->ack(to + size);
    in.due = false;
  }
  acked_at = now;
  return size;
}

} // namespace uplink::detail::client
