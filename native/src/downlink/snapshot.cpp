// The decoder of snapshots. docs/spec/snapshots.md, 13 and 14.
#include "uplink/snapshot.hpp"

#include <algorithm>

#include "src/downlink/part.hpp"
#include "src/downlink/received.hpp"

namespace uplink {

using namespace detail;
using namespace detail::downlink;

namespace {

struct SnapshotHeader {
  uint64_t low = 0;
  int bits = 10;
  uint64_t distance = 0;
  bool empty = false; // whether the baseline is the empty set
  bool has_hash = false;
  uint16_t hash = 0;
  size_t size = 0;
};

bool parse(Bytes b, SnapshotHeader *h) {
  BitReader r(b.data, b.size);
  h->distance = r.bits(6);
  h->low = r.bits(10);
  if (h->distance == 0) {
    h->low |= r.bits(6) << 10;
    h->bits = 16;
    h->empty = r.bits(1) != 0;
    h->has_hash = r.bits(1) != 0;
  } else if (h->distance == 63) {
    h->distance = r.bits(8);
    h->has_hash = true;
    if (h->distance == 0 || h->distance > max_distance) return false;
  }
  if (h->has_hash) h->hash = static_cast<uint16_t>(r.bits(16));
  h->size = r.at();
  return !r.failed();
}

struct SnapshotDecoderImpl final : SnapshotDecoder {
  struct Entry {
    Set *set = nullptr; // null: none
    uint64_t number = 0;
  };

  Allocator allocator;
  const TypeImpl *type = nullptr;
  size_t max_objects = 0;
  ObjectCoder part;
  Received received;
  Set initial, empty;
  uint16_t initial_hash = 0, empty_hash = 0;
  Entry entries[ring];
  Set *spare[ring + 1] = {};
  size_t spare_n = 0;
  Set *current = nullptr;

  ~SnapshotDecoderImpl() {
    forget(UINT64_MAX);
    release(current);
    for (size_t i = 0; i < spare_n; i++) detail::destroy(allocator, spare[i]);
  }
  SnapshotDecoderImpl() = default;
  SnapshotDecoderImpl(const SnapshotDecoderImpl &) = delete;
  SnapshotDecoderImpl &operator=(const SnapshotDecoderImpl &) = delete;

  const Set *at(uint64_t n) const {
    const Entry &e = entries[n % ring];
    return e.set != nullptr && e.number == n ? e.set : nullptr;
  }
  void release(Set *s) {
    if (s != nullptr) spare[spare_n++] = s;
  }
  // forget discards the sets with lower numbers.
  void forget(uint64_t end) {
    for (Entry &e : entries) {
      if (e.set == nullptr || e.number >= end) continue;
      release(e.set);
      e.set = nullptr;
    }
  }
  bool take() {
    if (current != nullptr) return true;
    if (spare_n > 0) {
      current = spare[--spare_n];
      return true;
    }
    current = detail::create<Set>(allocator);
    if (current != nullptr) current->start(*type);
    return current != nullptr;
  }

  Error find_baseline(const SnapshotHeader &h, uint64_t n, const Set **base);
  Error decode_part(const SnapshotHeader &h, uint64_t n, const Set &base, Bytes coded, uint64_t *step);
  void accept(const SnapshotHeader &h, uint64_t n, uint64_t step);
};

SnapshotDecoderImpl &impl(SnapshotDecoder *d) {
  return *static_cast<SnapshotDecoderImpl *>(d);
}

Error SnapshotDecoderImpl::find_baseline(const SnapshotHeader &h, uint64_t n, const Set **base) {
  uint16_t hash = h.empty ? empty_hash : initial_hash;
  *base = h.empty ? &empty : &initial;
  if (h.distance > 0) {
    *base = h.distance <= n ? at(n - h.distance) : nullptr;
    if (*base == nullptr) {
      const bool discarded = h.distance <= n && n - h.distance < received.floor;
      return discarded || n < received.first ? Error::stale : received.missing();
    }
    if (h.has_hash) hash = (*base)->hash();
  }
  if (!h.has_hash || h.hash == hash) return Error::ok;
  if (h.distance == 0 && !h.empty) received.no_initial = true;
  forget(UINT64_MAX);
  return received.desync();
}

Error SnapshotDecoderImpl::decode_part(const SnapshotHeader &h, uint64_t n, const Set &base, Bytes coded,
                                       uint64_t *step) {
  *step = part.begin(coded, h.distance > 0);
  const Set *references[reference_count] = {};
  for (size_t i = 0; i<reference_count && * step> 0; i++) {
    const uint64_t newest = n - h.distance, age = ages[i] * *step;
    references[i] = age <= newest ? at(newest - age) : nullptr;
    if (references[i] != nullptr) continue;
    const bool discarded =
        age <= newest && (received.has(newest - age) || newest - age + ring < received.next);
    return discarded ? Error::stale : received.missing();
  }
  const Error e = part.decode(base, std::max<uint64_t>(h.distance, 1), references, current);
  return e == Error::ok && current->size() > max_objects ? Error::no_memory : e;
}

void SnapshotDecoderImpl::accept(const SnapshotHeader &h, uint64_t n, uint64_t step) {
  Entry &e = entries[n % ring];
  release(e.set);
  e = {current, n};
  current = nullptr;
  received.add(n, h.distance > 0);
  if (h.distance == 0) return;
  const uint64_t next = received.next;
  received.floor = std::max({received.floor, n - h.distance, next - std::min(next, ring)});
  const uint64_t behind = 3 + 6 * std::max<uint64_t>(1, step);
  forget(received.floor - std::min(received.floor, behind));
}

} // namespace

Error SnapshotDecoder::create(const Allocator &a, const ObjectType &t, Bytes initial, SnapshotDecoder **out,
                              size_t most_objects) {
  *out = nullptr;
  auto *d = detail::create<SnapshotDecoderImpl>(a);
  if (d == nullptr) return Error::no_memory;
  d->allocator = a;
  d->type = &detail::downlink::impl(t);
  d->max_objects = most_objects;
  d->initial.start(*d->type);
  d->empty.start(*d->type);
  Error e = d->part.create(a, *d->type) ? Error::ok : Error::no_memory;
  if (e == Error::ok && initial.size > 0) {
    SnapshotHeader h;
    uint64_t step = 0;
    if (!parse(initial, &h) || h.distance > 0)
      e = Error::malformed;
    else
      e = d->take() ? Error::ok : Error::no_memory;
    if (e == Error::ok)
      e = d->decode_part(h, 0, d->empty, {initial.data + h.size, initial.size - h.size}, &step);
    if (e == Error::ok && !d->initial.copy(a, *d->current)) e = Error::no_memory;
    if (e == Error::ok && h.has_hash && h.hash != d->empty.hash()) e = Error::malformed;
  }
  if (e != Error::ok) {
    destroy(d);
    return e;
  }
  d->initial.physics = {};
  d->initial_hash = d->initial.hash();
  d->empty_hash = d->empty.hash();
  *out = d;
  return Error::ok;
}

void SnapshotDecoder::destroy(SnapshotDecoder *d) {
  if (d == nullptr) return;
  auto *i = static_cast<SnapshotDecoderImpl *>(d);
  const Allocator a = i->allocator;
  detail::destroy(a, i);
}

Error SnapshotDecoder::decode(Bytes payload, SnapshotInfo *info, Objects *objects) {
  SnapshotDecoderImpl &d = impl(this);
  SnapshotHeader h;
  if (!parse(payload, &h)) return Error::malformed;
  const uint64_t n = downlink::unwrap(h.low, h.bits, d.received.next);
  if (d.received.is_old(n)) return Error::stale;
  const Set *base = nullptr;
  Error e = d.find_baseline(h, n, &base);
  if (e != Error::ok) return e;
  if (!d.take()) return Error::no_memory;
  uint64_t step = 0;
  e = d.decode_part(h, n, *base, {payload.data + h.size, payload.size - h.size}, &step);
  d.received.count(e);
  if (e != Error::ok) return e;
  *objects = d.current->view();
  info->number = static_cast<uint16_t>(n);
  info->distance = static_cast<uint8_t>(h.distance);
  d.accept(h, n, step);
  return Error::ok;
}

size_t SnapshotDecoder::ack(uint8_t *to) const {
  return static_cast<const SnapshotDecoderImpl *>(this)->received.ack(to);
}

uint64_t SnapshotDecoder::content() const {
  return static_cast<const SnapshotDecoderImpl *>(this)->initial.content();
}

} // namespace uplink
