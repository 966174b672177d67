// Copies of earlier learned states, to decode late payloads.
#pragma once

#include "src/codec/stream.hpp"

namespace uplink::detail {

// Checkpoints holds the last states from before a decoder learned further frames. A late payload has an older
// baseline, by as many frames as acks are in flight.
class Checkpoints {
public:
  bool create(const Allocator &a, const Model &m) {
    for (State &s : states_)
      if (!s.create(a, m)) return false;
    return scratch_.create(a, m);
  }
  void clear() { saved_ = 0; }

  // save copies the state of a stream before it learns up to a baseline, unless the last copy is recent.
  void save(const Stream &s, uint64_t baseline) {
    if (s.empty || baseline < s.unlearned) return;
    if (saved_ > 0 && s.unlearned < unlearned_[(saved_ - 1) % count] + interval) return;
    states_[saved_ % count].copy(s.state);
    unlearned_[saved_ % count] = s.unlearned;
    saved_++;
  }
  // restore returns the state that has learned up to a baseline, or null if that is too old. It is valid
  // until the next call.
  const State *restore(const Stream &s, uint64_t baseline) {
    for (size_t i = saved_; i > 0 && i + count > saved_; i--) {
      const size_t at = (i - 1) % count;
      uint64_t unlearned = unlearned_[at];
      if (unlearned > baseline + 1) continue;
      if (unlearned + s.frames.size() < s.newest + 1 + history) return nullptr; // its frames are gone
      scratch_.copy(states_[at]);
      s.learn(&scratch_, &unlearned, baseline);
      return &scratch_;
    }
    return nullptr;
  }

private:
  static constexpr size_t count = 8;
  static constexpr uint64_t interval = 6; // frames between two copies, at least

  State states_[count], scratch_;
  uint64_t unlearned_[count] = {}; // Stream::unlearned of each
  size_t saved_ = 0;               // copies since the last clear
};

} // namespace uplink::detail
