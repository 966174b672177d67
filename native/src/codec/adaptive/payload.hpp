// The coded part of payloads. docs/spec/adaptive.md, 5 to 11.
#pragma once

#include "src/codec/adaptive/predictor.hpp"
#include "src/codec/rangecoder.hpp"

namespace uplink::detail {

constexpr uint64_t max_reach = 64; // number of frames before the newest one that are used

// PayloadPart is the coded part of a payload: its frames, and the state that they are coded from.
struct PayloadPart {
  const Model *model = nullptr;
  const State *state = nullptr; // state learned up to the baseline, or the initial state
  const PriorImpl *prior = nullptr;
  Known known; // known.payload are the frames; top, gap and mask are set for the payload
  const FrameView *frames = nullptr; // oldest first
  size_t count = 0;                  // number of frames; when decoding, the maximum
  uint64_t newest = 0;               // sequence of the last frame
  uint64_t distance = 0;             // distance from newest to the baseline; 0: no baseline
  bool repeats = false;              // an earlier payload contains the first frame
};

// limit_of returns the maximum number of frames of a payload.
inline size_t limit_of(uint64_t distance) {
  return distance == 0 || distance > 16 ? 16 : static_cast<size_t>(distance);
}

// alone_bits returns the size of a frame without a reference. If the size is enough or more, it may
// return any value that is at least enough.
size_t alone_bits(const Model &m, const FrameView &f, size_t enough);

// encode_part writes the coded part.
void encode_part(const PayloadPart &p, RangeEncoder &out);

// decode_count reads the number of frames, and whether an earlier payload contains the first one.
void decode_count(PayloadPart &p, RangeDecoder &in);

// decode_part reads the frames after decode_count. It reports false if they are malformed.
bool decode_part(const PayloadPart &p, RangeDecoder &in);

} // namespace uplink::detail
