#include "src/codec/stream.hpp"

namespace uplink::detail {

bool Stream::create(const Allocator &a, const SchemaImpl &s, Codec codec, const Prior *p, uint64_t own_ring,
                    uint64_t peer_ring, size_t kept) {
  schema = &s;
  prior = &impl(p == nullptr ? Prior::generic() : *p);
  adaptive = codec == Codec::adaptive;
  ring = own_ring;
  uint64_t smaller = own_ring < peer_ring ? own_ring : peer_ring;
  reach = smaller - 1;
  if (adaptive && reach > max_reach - 1) reach = max_reach - 1;
  recent = smaller < max_reach ? smaller : max_reach;
  size_t n = capacity_for(kept + history + 2 * max_calls);
  if (!frames.create(a, s, n) || !accepted.create(a, n) || !lasts.create(a, frames.size())) return false;
  if (!adaptive) return scratch.create(a, s.binary);
  if (!model.create(a, s) || !state.create(a, model) || !initial.create(a, model)) return false;
  initial.start(*prior);
  state.copy(initial);
  return true;
}

void Stream::reset() {
  accepted.clear();
  empty = true;
  if (adaptive) state.copy(initial);
}

void Stream::accept(uint64_t sequence, size_t size, bool repeats) {
  if (empty) unlearned = sequence;
  empty = false;
  newest = sequence;
  accepted.set(sequence, true);
  lasts[static_cast<size_t>(sequence) & (lasts.size() - 1)] = {static_cast<uint8_t>(size), repeats};
}

void Stream::learn_to(uint64_t sequence) {
  if (!adaptive) return;
  if (empty) return;
  if (newest + 1 > unlearned + frames.size())
    unlearned = newest + 1 - frames.size(); // no older frame is stored
  learn(&state, &unlearned, sequence);
}

void Stream::learn(State *to, uint64_t *from, uint64_t sequence) const {
  for (uint64_t last = sequence < newest ? sequence : newest; *from <= last; ++*from) {
    const uint64_t n = *from, mask = accepted.below(n);
    if ((mask & 1) == 0) continue;
    Known known;
    known.ring = const_cast<FrameRing *>(&frames);
    known.top = n;
    known.mask = mask & ((UINT64_C(1) << (history + 1)) - 1);
    Last l = lasts[static_cast<size_t>(n) & (lasts.size() - 1)];
    detail::learn(*to, *prior, known, n, l.size, l.repeats);
  }
}

PayloadPart Stream::part(uint64_t last, uint64_t distance, size_t count, const FrameView *views) const {
  PayloadPart p;
  p.model = &model;
  p.state = distance == 0 ? &initial : &state;
  p.prior = prior;
  p.frames = views;
  p.count = count;
  p.newest = last;
  p.distance = distance;
  uint64_t first = last + 1 - count;
  p.known.ring = const_cast<FrameRing *>(&frames);
  p.known.top = last;
  p.known.payload = views;
  p.known.payload_first = first;
  p.known.gap_end = static_cast<int64_t>(first);
  if (distance != 0) {
    p.known.baseline = static_cast<int64_t>(last - distance);
    uint64_t all = recent >= 64 ? UINT64_MAX : (UINT64_C(1) << recent) - 1;
    p.known.mask = accepted.below(last) & all & (UINT64_MAX << distance);
  }
  return p;
}

uint16_t Stream::hash_of(uint64_t baseline, const State &learned) const {
  uint16_t h = hash(*schema, const_cast<FrameRing &>(frames).at(baseline));
  return adaptive ? static_cast<uint16_t>(h ^ learned.hash()) : h;
}

} // namespace uplink::detail
