// The coded part of payloads. docs/spec/adaptive.md, 5 to 11.
#pragma once

#include "src/codec/adaptive/predictor.hpp"
#include "src/codec/rangecoder.hpp"

namespace uplink::detail {

constexpr uint64_t max_reach = 64; // frames back from the newest one that are looked at

// Part is the coded part of a payload: its frames, and what they are coded from.
struct Part {
  const Model *model = nullptr;
  const State *state = nullptr; // learned up to the baseline, or that of the start
  const PriorImpl *prior = nullptr;
  Known known;                       // known.payload are the frames; top, gap and mask as for a payload
  const FrameView *frames = nullptr; // oldest first
  size_t count = 0;                  // frames; when decoding, at most this many
  uint64_t newest = 0;               // sequence of the last one
  uint64_t distance = 0;             // from newest to the baseline; 0 without one
  bool repeats = false;              // the first frame was in an earlier payload
};

// limit_of returns the maximum number of frames of a payload.
inline size_t limit_of(uint64_t distance) {
  return distance == 0 || distance > 16 ? 16 : static_cast<size_t>(distance);
}

// alone_bits returns the size of a frame without a reference, or if that is larger, one from enough on.
size_t alone_bits(const Model &m, const FrameView &f, size_t enough);

// encode_part writes the coded part.
void encode_part(const Part &p, RangeEncoder &out);

// decode_count reads how many frames there are, and whether the first one was in an earlier payload.
void decode_count(Part &p, RangeDecoder &in);

// decode_part reads the frames after decode_count. It reports false if they are malformed.
bool decode_part(const Part &p, RangeDecoder &in);

} // namespace uplink::detail
