// The sender of an RPC's frames. docs/spec/frames.md, 5, 6 and 9.
#include <cstring>

#include "src/codec/rle.hpp"
#include "src/codec/stream.hpp"

namespace uplink {

using namespace detail;

namespace {

constexpr uint64_t kept_beyond_ring = 113;
constexpr size_t max_held = 8;
constexpr size_t max_copies = 8;

struct EncoderImpl final : Encoder {
  // Sent is the state of a sent frame.
  struct Sent {
    bool payload = false; // a payload has this sequence
    bool repeats = false; // an earlier payload contains the first frame of that payload
    uint8_t older = 0;    // number of frames before it in that payload
  };

  // Attempt is a candidate for the payload to send.
  struct Attempt {
    uint64_t newest;
    size_t older;
    bool based;
    bool hashed;
  };

  Allocator allocator;
  EncoderConfig config;
  Stream s;
  Array<Sent> sent;
  Array<uint8_t> alternative; // the payload coded without a baseline
  uint64_t next_frame = 0;
  size_t held = 0;
  uint64_t base = 0;
  bool has_base = false;
  uint8_t epoch = 0;
  bool acked = false;
  uint64_t resolved = 0;
  uint64_t check_at = 0;
  uint64_t period = 1;
  uint64_t starts[max_copies] = {}; // first new frames of the last payloads, the newest payload first
  size_t payloads = 0;              // number of entries in starts

  Sent &at(uint64_t sequence) { return sent[static_cast<size_t>(sequence) & (sent.size() - 1)]; }
  uint64_t kept() const { return config.ring + kept_beyond_ring; }

  size_t code(const Attempt &a, uint8_t *to, size_t capacity, size_t *bare);
  size_t choose(Attempt &a, uint8_t *to, size_t capacity);
  size_t copies(uint64_t newest, size_t fresh) const;
  void commit(const Attempt &a, size_t fresh);

  Error apply(const AckForm &a);
  void trouble(const AckForm &a) {
    if (a.request != 0 && acked) new_epoch();
  }
  void resolve(const AckForm &a, uint64_t n);
  void processed(uint64_t q);
  void new_epoch();
};

EncoderImpl &impl(Encoder &e) {
  return static_cast<EncoderImpl &>(e);
}

} // namespace

Error Encoder::create(const Allocator &a, const Schema &s, const EncoderConfig &c, Encoder **out) {
  if (c.ring < 2 || c.ring > 256 || c.peer_ring < 2 || c.peer_ring > 256 || c.copies > max_copies ||
      c.max_payload < max_header || (c.codec == Codec::rle && c.copies > 0) || (c.reliable && c.copies > 0))
    return Error::invalid;
  EncoderImpl *e = detail::create<EncoderImpl>(a);
  if (e == nullptr) return Error::no_memory;
  e->allocator = a;
  e->config = c;
  const SchemaImpl &schema = detail::impl(s);
  e->period = schema.rate < 1 ? 1 : static_cast<uint64_t>(schema.rate);
  e->check_at = e->period;
  if (!e->s.create(a, schema, c.codec, c.prior, c.ring, c.peer_ring, static_cast<size_t>(e->kept())) ||
      !e->sent.create(a, e->s.frames.size()) || !e->alternative.create(a, c.max_payload)) {
    destroy(e);
    return Error::no_memory;
  }
  *out = e;
  return Error::ok;
}

void Encoder::destroy(Encoder *e) {
  if (e == nullptr) return;
  Allocator a = impl(*e).allocator;
  detail::destroy(a, &impl(*e));
}

uint64_t Encoder::next() const {
  return static_cast<const EncoderImpl &>(*this).next_frame;
}
size_t Encoder::waiting() const {
  return static_cast<const EncoderImpl &>(*this).held;
}

Error Encoder::hold(const Frame &f) {
  EncoderImpl &e = impl(*this);
  const FrameImpl &frame = detail::impl(f);
  if (frame.schema != e.s.schema) return Error::invalid;
  bool alone = e.config.codec == Codec::rle || e.config.reliable;
  if (e.held >= (alone ? 1 : max_held)) return Error::full;
  uint64_t n = e.next_frame++;
  e.s.accepted.set(n, false);
  copy(*e.s.schema, e.s.frames.at(n), frame.view);
  e.at(n) = EncoderImpl::Sent();
  e.held++;
  return Error::ok;
}

Error Encoder::encode(const Frame &f, Buffer to, size_t *size) {
  Error e = hold(f);
  return e == Error::ok ? flush(to, size) : e;
}

Error Encoder::flush(Buffer to, size_t *size) {
  EncoderImpl &e = impl(*this);
  *size = 0;
  size_t capacity = to.capacity < e.config.max_payload ? to.capacity : e.config.max_payload;
  for (size_t fresh = e.held; fresh > 0; fresh--) {
    EncoderImpl::Attempt a{};
    a.newest = e.next_frame - e.held + fresh - 1;
    a.based = e.has_base && a.newest - e.base <= e.s.reach;
    if (a.based) e.s.learn_to(e.base);
    a.hashed = a.based && a.newest >= e.check_at;
    // All frames must be newer than the baseline.
    if (a.based && fresh > a.newest - e.base) continue;
    a.older = fresh - 1 + (a.based ? e.copies(a.newest, fresh) : 0);
    *size = e.choose(a, to.data, capacity);
    if (*size == 0 && a.older > fresh - 1) {
      a.older = fresh - 1;
      *size = e.choose(a, to.data, capacity);
    }
    if (*size == 0) continue;
    e.commit(a, fresh);
    return Error::ok;
  }
  if (e.held == 0) return Error::ok;
  e.held--; // the oldest frame is never sent
  return Error::too_small;
}

namespace {

// copies returns the number of frames of earlier payloads to repeat.
size_t EncoderImpl::copies(uint64_t newest, size_t fresh) const {
  size_t n = config.copies < payloads ? config.copies : payloads;
  if (n == 0) return 0;
  uint64_t oldest = starts[n - 1];
  uint64_t first_new = newest + 1 - fresh;
  // Maximum number of frames of the payload.
  uint64_t most = newest - base < max_calls ? newest - base : max_calls;
  if (most > fresh && oldest < first_new) {
    uint64_t count = first_new - oldest;
    return static_cast<size_t>(count < most - fresh ? count : most - fresh);
  }
  return 0;
}

// code writes a payload and returns its size, 0 if it does not fit. *bare is set to the size
// without a hash.
size_t EncoderImpl::code(const Attempt &a, uint8_t *to, size_t capacity, size_t *bare) {
  Header h;
  h.rpc = config.rpc;
  h.epoch = epoch;
  h.distance = a.based ? static_cast<uint16_t>(a.newest - base) : 0;
  h.has_hash = a.hashed;
  if (a.hashed) h.hash = s.hash_of(base, s.state);
  if (capacity < max_header) return 0;
  write_header(h, a.newest, to);
  *bare = 0;
  size_t size;
  if (s.adaptive) {
    FrameView views[max_calls];
    for (size_t i = 0; i <= a.older; i++) views[i] = s.frames.at(a.newest - a.older + i);
    PayloadPart p = s.part(a.newest, h.distance, a.older + 1, views);
    p.repeats = a.older >= held || a.newest - a.older < next_frame - held;
    RangeEncoder out;
    out.begin(to, h.size, capacity, h.free_bits);
    encode_part(p, out);
    size = out.finish();
  } else {
    Writer out(to + h.size, capacity - h.size);
    FrameView b = s.frames.at(base);
    if (!encode_rle(*s.schema, s.frames.at(a.newest), a.based ? &b : nullptr, s.scratch.data(), out))
      return 0;
    size = h.size + out.size();
  }
  *bare = size - (a.hashed ? 2 : 0);
  return size;
}

// choose writes the best payload. It omits the hash if the payload would not fit, and the baseline
// if the payload is then shorter.
size_t EncoderImpl::choose(Attempt &a, uint8_t *to, size_t capacity) {
  size_t bare, size = code(a, to, capacity, &bare);
  if (size == 0 && a.hashed) {
    a.hashed = false;
    size = code(a, to, capacity, &bare);
  }
  if (!a.based || a.older > 0) return size;
  constexpr size_t long_header = 5;
  if (s.adaptive && size != 0 &&
      alone_bits(s.model, s.frames.at(a.newest), 8 * bare) / 8 + long_header > bare)
    return size;
  Attempt alone = a;
  alone.based = alone.hashed = false;
  size_t bare_alone;
  size_t other = code(alone, alternative.data(),
                      capacity < alternative.size() ? capacity : alternative.size(), &bare_alone);
  if (other == 0 || (size != 0 && other >= bare)) return size;
  std::memcpy(to, alternative.data(), other);
  a = alone;
  return other;
}

void EncoderImpl::commit(const Attempt &a, size_t fresh) {
  uint64_t first_new = next_frame - held;
  Sent &f = at(a.newest);
  f.payload = true;
  f.older = static_cast<uint8_t>(a.older);
  f.repeats = a.newest - a.older < first_new;
  if (a.hashed) check_at = a.newest + period;
  for (size_t i = max_copies - 1; i > 0; i--) starts[i] = starts[i - 1];
  starts[0] = first_new;
  if (payloads < max_copies) payloads++;
  held -= fresh;
  if (!config.reliable) return;
  s.accept(a.newest, 1, false);
  base = a.newest;
  has_base = true;
}

} // namespace

Error Encoder::ack(Bytes b, size_t *used) {
  AckForm a;
  *used = parse_ack(b.data, b.size, &a);
  if (*used == 0) return Error::malformed;
  EncoderImpl &e = impl(*this);
  if (a.stream != e.config.rpc) return Error::invalid;
  if (a.request > 2 || a.epoch > 7 || e.config.reliable) return Error::malformed;
  return e.apply(a);
}

namespace {

Error EncoderImpl::apply(const AckForm &a) {
  if (a.none) {
    trouble(a);
    return Error::ok;
  }
  if (next_frame == 0) return Error::malformed;
  uint64_t width = a.is_long ? 16 : 10, top = next_frame - 1;
  if (!a.is_long && top > resolved + 62) top = resolved + 62;
  uint64_t behind = (top - a.newest) & ((UINT64_C(1) << width) - 1);
  if (behind > top) return Error::malformed;
  if (a.epoch != epoch) return ((epoch - a.epoch) & 7) > 4 ? Error::malformed : Error::ok;
  uint64_t n = top - behind;
  if (n + kept() >= next_frame && !at(n).payload) return Error::malformed;
  if (n >= resolved) resolve(a, n);
  trouble(a);
  return Error::ok;
}

void EncoderImpl::resolve(const AckForm &a, uint64_t n) {
  uint64_t unknown = n - resolved;
  if ((!a.whole && unknown > a.length) || (a.whole && acked && unknown >= a.length)) {
    new_epoch();
    return;
  }
  uint64_t from = n - (unknown < a.length ? unknown : a.length);
  if (from + kept() < next_frame) {
    new_epoch();
    return;
  }
  for (uint64_t q = from; q <= n; q++) {
    if (at(q).payload && (q == n || (a.window >> (n - 1 - q) & 1) != 0)) processed(q);
  }
  acked = true;
  resolved = n + 1;
}

void EncoderImpl::processed(uint64_t q) {
  uint64_t after = has_base ? base + 1 : resolved;
  uint64_t first = q - at(q).older;
  if (first < after) first = after;
  if (!has_base) first = q;
  if (q >= s.ring) s.learn_to(q - s.ring); // no baseline can be older
  for (uint64_t p = first; p < q; p++) s.accept(p, 0, false);
  s.accept(q, at(q).older + 1u, at(q).repeats);
  base = q;
  has_base = true;
}

void EncoderImpl::new_epoch() {
  epoch = (epoch + 1) & 7;
  has_base = acked = false;
  resolved = next_frame - held; // no payload contains the held frames
  s.reset();
}

} // namespace

} // namespace uplink
