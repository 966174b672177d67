// What an encoder and a decoder of one RPC share: the frames that the other end has, and what was
// learned from them.
#pragma once

#include "src/codec/adaptive/learn.hpp"
#include "src/codec/adaptive/payload.hpp"
#include "src/codec/header.hpp"
#include "src/codec/sequences.hpp"

namespace uplink::detail {

// Stream keeps frames, of which some are accepted: both ends know that the decoder has them.
struct Stream {
  const SchemaImpl *schema = nullptr;
  const PriorImpl *prior = nullptr;
  bool adaptive = false;
  uint64_t ring = 0;   // of this end
  uint64_t reach = 0;  // maximum distance of a baseline
  uint64_t recent = 0; // frames back from the newest of a payload that it may be predicted from

  FrameRing frames;
  SequenceSet accepted;
  Model model;
  State state;
  State initial;
  bool empty = true;      // no frame is accepted
  uint64_t newest = 0;    // the newest accepted frame
  uint64_t unlearned = 0; // accepted frames from here on were not learned
  // Of frames that were the newest ones of their payload:
  struct Last {
    uint8_t size = 0; // frames of the payload; 0: it was not the newest
    bool repeats = false;
  };
  Array<Last> lasts;
  Array<uint8_t> scratch; // the binary part of rle

  // create makes room for frames of kept sequences, and for those with which they are learned.
  bool create(const Allocator &a, const SchemaImpl &s, Codec codec, const Prior *p, uint64_t own_ring,
              uint64_t peer_ring, size_t kept);
  // reset forgets all accepted frames, and what was learned.
  void reset();
  void accept(uint64_t sequence, size_t size, bool repeats);
  // learn_to learns the accepted frames up to a sequence.
  void learn_to(uint64_t sequence);
  // part prepares the coded part of a payload with count frames, of which views are set.
  Part part(uint64_t newest, uint64_t distance, size_t count, const FrameView *views) const;
  // hash_of returns the hash of a payload with a baseline.
  uint16_t hash_of(uint64_t baseline);
};

} // namespace uplink::detail
