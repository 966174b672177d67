// The older frames from which a frame is predicted. docs/spec/adaptive.md, 7.
#pragma once

#include "src/codec/adaptive/fixed.hpp"
#include "src/codec/schema.hpp"

namespace uplink::detail {

// Known is which frames can be used: those with bit i of the mask, of sequence top - i. Frames of
// the payload itself are apart from the ring.
struct Known {
  FrameRing *ring = nullptr;
  uint64_t top = 0;
  uint64_t mask = 0;
  int64_t baseline = -1;              // -1 without one
  int64_t gap_end = 0;                // the first sequence after the gap
  const FrameView *payload = nullptr; // frames of the payload, from sequence payload_first on
  uint64_t payload_first = UINT64_MAX;

  const FrameView at(uint64_t sequence) const {
    return sequence >= payload_first ? payload[sequence - payload_first] : ring->at(sequence);
  }
  bool has(int64_t sequence) const {
    if (sequence < 0 || sequence > static_cast<int64_t>(top)) return false;
    uint64_t i = top - static_cast<uint64_t>(sequence);
    return i < 64 && (mask >> i & 1) != 0;
  }
  bool in_gap(int64_t sequence) const { return sequence > baseline && sequence < gap_end; }
};

// Reference is what a frame with sequence s is coded against: the frame b, and older ones with the
// rates at which they changed.
struct Reference {
  int64_t d = 1; // s - b
  FrameView b{};
  FrameView h1{}, h2{}, h4{}, hd{}, hdd{};
  FrameView p{}; // byte strings before b
  int64_t r1 = 0, r12 = 0, r24 = 0, rd = 0, rdd = 0;
  // Of each component: whether it differs between b and h1, and between b and hd.
  uint8_t moved1[max_components];
  uint8_t movedd[max_components];

  void find(const Known &known, uint64_t s, uint64_t base, size_t components);
};

inline void Reference::find(const Known &known, uint64_t s, uint64_t base, size_t components) {
  struct Place {
    int64_t sequence;
    FrameView frame;
  };
  int64_t bs = static_cast<int64_t>(base);
  d = static_cast<int64_t>(s) - bs;
  auto search = [&](const Place &from, int64_t to, int64_t *rate) -> Place {
    if (known.in_gap(to)) to = known.baseline;
    *rate = 0;
    if (to < 0) return from;
    uint64_t i = known.top - static_cast<uint64_t>(to);
    uint64_t found = i >= 64 ? 0 : known.mask >> i & 0xffff;
    if (found == 0) return from;
    while ((found & 1) == 0) found >>= 1, to--;
    int64_t steps = from.sequence - to < 64 ? from.sequence - to : 64;
    *rate = d * ((65536 + steps / 2) / steps);
    return {to, known.at(static_cast<uint64_t>(to))};
  };
  Place at_b{bs, known.at(base)};
  b = at_b.frame;
  Place p1 = search(at_b, bs - 1, &r1);
  Place p2 = search(p1, p1.sequence - 1, &r12);
  Place p4 = search(p2, p2.sequence - 2, &r24);
  h1 = p1.frame;
  h2 = p2.frame;
  h4 = p4.frame;
  hd = h1;
  rd = r1;
  hdd = h2;
  rdd = r12;
  if (d != 1) {
    Place pd = search(at_b, bs - d, &rd);
    hd = pd.frame;
    hdd = search(pd, pd.sequence - d, &rdd).frame;
  }
  for (size_t i = 0; i < components; i++) moved1[i] = b.c[i] != h1.c[i];
  for (size_t i = 0; i < components; i++) movedd[i] = b.c[i] != hd.c[i];
  p = known.has(bs - 1) && !known.in_gap(bs - 1) ? known.at(base - 1) : b;
}

} // namespace uplink::detail
