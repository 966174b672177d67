// Learning from accepted frames. docs/spec/adaptive.md, 12.
#pragma once

#include "src/codec/adaptive/predictor.hpp"

namespace uplink::detail {

// history is the number of earlier frames that learning a frame requires.
constexpr uint64_t history = 24;

// learn learns the frame with sequence n. known contains the accepted frames from n - history to n;
// its gap is ignored. size is the number of frames in the payload whose newest frame is n, or 0 if
// there is none.
void learn(State &s, const PriorImpl &p, Known known, uint64_t n, int size, bool repeats);

} // namespace uplink::detail
