// Learning from accepted frames. docs/spec/adaptive.md, 12.
#pragma once

#include "src/codec/adaptive/predictor.hpp"

namespace uplink::detail {

// history is the number of frames before one that it is learned with.
constexpr uint64_t history = 24;

// learn learns the frame of sequence n. known has the frames from n - history to n that were accepted; its
// gap is ignored. size is the number of frames of the payload whose newest frame this was, otherwise 0.
void learn(State &s, const PriorImpl &p, Known known, uint64_t n, int size, bool repeats);

} // namespace uplink::detail
