// The older frames from which a frame is predicted. docs/spec/adaptive.md, 7.
#pragma once

#include "src/codec/adaptive/fixed.hpp"
#include "src/codec/schema.hpp"

namespace uplink::detail {

// Known is the set of usable frames. Frame top - i of the ring is usable if bit i of the mask is
// set. Frames of the payload itself are not in the ring.
struct Known {
  FrameRing *ring = nullptr;
  uint64_t top = 0;
  uint64_t mask = 0;
  int64_t baseline = -1;              // -1: no baseline
  int64_t gap_end = 0;                // first sequence after the gap
  const FrameView *payload = nullptr; // frames of the payload, the first with sequence payload_first
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

// Inputs are the inputs of a flag's probability, a set of bits.
struct Inputs {
  static constexpr unsigned moved = 1;     // b differs from h1
  static constexpr unsigned moved_far = 2; // b differs from hd
  static constexpr unsigned after = 4;     // the previous flag is set
  static constexpr unsigned buttons = 8;   // a bit set differs
  static constexpr unsigned differs = 16;  // the frame differs from b; this is the flag itself, not an input
};

// Reference contains the frames that a frame with sequence s is coded against: the reference b, and
// older frames with their rates of change.
struct Reference {
  int64_t d = 1; // s - b
  FrameView b{};
  FrameView h1{}, h2{}, h4{}, hd{}, hdd{};
  FrameView p{}; // byte strings of the frame before b
  int64_t r1 = 0, r12 = 0, r24 = 0, rd = 0, rdd = 0;
  // Inputs of each component: whether b differs from h1 and from hd, and differs.
  uint32_t changes[max_components];

  // find sets the frames and rates.
  void find(const Known &known, uint64_t s, uint64_t base);
  // compare sets the inputs. x is the frame being coded, or b if it is not known yet.
  void compare(const FrameView &x, size_t components) {
    for (size_t i = 0; i < components; i++) {
      int32_t v = b.c[i];
      changes[i] = (v != h1.c[i] ? Inputs::moved : 0) | (v != hd.c[i] ? Inputs::moved_far : 0) |
                   (v != x.c[i] ? Inputs::differs : 0);
    }
  }
};

// reciprocals are 1 / i in Q16.
struct Reciprocals {
  int32_t of[65] = {};

  constexpr Reciprocals() {
    for (int i = 1; i <= 64; i++) of[i] = (65536 + i / 2) / i;
  }
};
constexpr Reciprocals reciprocals;

inline void Reference::find(const Known &known, uint64_t s, uint64_t base) {
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
    *rate = d * reciprocals.of[from.sequence - to < 64 ? from.sequence - to : 64];
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
  p = known.has(bs - 1) && !known.in_gap(bs - 1) ? known.at(base - 1) : b;
}

} // namespace uplink::detail
