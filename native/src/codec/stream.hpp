// State that an encoder and a decoder of one RPC share: the accepted frames, and the state learned
// from them.
#pragma once

#include "src/codec/adaptive/learn.hpp"
#include "src/codec/adaptive/payload.hpp"
#include "src/codec/header.hpp"
#include "src/codec/sequences.hpp"

namespace uplink::detail {

// Stream stores frames. Some are accepted: both ends know that the decoder has them.
struct Stream {
  const SchemaImpl *schema = nullptr;
  const PriorImpl *prior = nullptr;
  bool adaptive = false;
  uint64_t ring = 0;   // ring size of this end
  uint64_t reach = 0;  // maximum distance to a baseline
  uint64_t recent = 0; // maximum distance from the newest frame of a payload to frames that predict it

  FrameRing frames;
  SequenceSet accepted;
  Model model;
  State state;
  State initial;
  bool empty = true;      // no frame was accepted yet
  uint64_t newest = 0;    // newest accepted frame
  uint64_t unlearned = 0; // accepted frames from this sequence on are not learned yet
  // For frames that were the newest of their payload:
  struct Last {
    uint8_t size = 0; // number of frames in the payload; 0: not the newest frame of a payload
    bool repeats = false;
  };
  Array<Last> lasts;
  Array<uint8_t> scratch; // binary part of rle

  // create allocates room for frames of kept sequences, and for frames that learning them requires.
  bool create(const Allocator &a, const SchemaImpl &s, Codec codec, const Prior *p, uint64_t own_ring,
              uint64_t peer_ring, size_t kept);
  // reset discards all accepted frames and the learned state.
  void reset();
  void accept(uint64_t sequence, size_t size, bool repeats);
  // learn_to learns the accepted frames up to a sequence.
  void learn_to(uint64_t sequence);
  // learn lets a state, which has learned the accepted frames before *from, learn those up to a sequence.
  void learn(State *to, uint64_t *from, uint64_t sequence) const;
  // part prepares the coded part of a payload with count frames, whose views are set.
  PayloadPart part(uint64_t last, uint64_t distance, size_t count, const FrameView *views) const;
  // hash_of returns the hash for a payload with a baseline, up to which a state has learned.
  uint16_t hash_of(uint64_t baseline, const State &learned) const;
};

} // namespace uplink::detail
