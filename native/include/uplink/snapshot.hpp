// Decoders of snapshots and of worlds with areas, without sockets and without a clock.
// docs/spec/snapshots.md specifies them.
//
// A decoder allocates memory while it decodes, as much as the world needs: a set of objects for each of
// up to 64 messages. How many objects it accepts depends on the configuration. Without memory it drops
// a message, as if it were lost.
#pragma once

#include "uplink/objects.hpp"

namespace uplink {

// SnapshotInfo is what a decoder tells of a message.
struct SnapshotInfo {
  uint16_t number = 0;  // low bits of the snapshot's number
  uint8_t distance = 0; // to the baseline; 0 without one
};

// SnapshotDecoder decodes the payloads of a world, whatever the network loses, duplicates, reorders or
// forges.
class SnapshotDecoder {
public:
  // create returns a decoder of objects of a type, which must outlive it. initial is the coded initial
  // state of the world, without bytes if it is empty. A payload with more than max_objects objects is
  // dropped. Error::malformed: it is no initial state.
  static Error create(const Allocator &a, const ObjectType &t, Bytes initial, SnapshotDecoder **out,
                      size_t max_objects = uplink::max_objects);
  static void destroy(SnapshotDecoder *d);

  // decode decodes a payload. The objects are valid until the next call. Error::malformed,
  // Error::no_baseline, Error::stale (late), Error::desync, Error::no_memory: the payload was dropped.
  Error decode(Bytes payload, SnapshotInfo *info, Objects *objects);
  // ack writes an ack of everything decoded to to, which has room for max_ack bytes, and returns its
  // size. Send one after each payload, also after a dropped one.
  size_t ack(uint8_t *to) const;
  // content returns the hash of the initial state. docs/spec/streams.md, 2.
  uint64_t content() const;

protected:
  SnapshotDecoder() = default;
  ~SnapshotDecoder() = default;
};

// AreaDecoder decodes the messages of a world with areas.
class AreaDecoder {
public:
  // create returns a decoder of a world with these types of objects, 1 to 16, which must outlive it. A
  // message that shows more than max_objects objects of all types together is dropped.
  static Error create(const Allocator &a, const ObjectType *const *types, size_t n, AreaDecoder **out,
                      size_t max_objects = 16 * uplink::max_objects);
  static void destroy(AreaDecoder *d);

  // decode decodes a message. Errors are those of SnapshotDecoder.
  Error decode(Bytes message, SnapshotInfo *info);
  // shown returns the objects of a type that the message shows that was decoded last. They are valid
  // until another one is decoded.
  Objects shown(size_t type) const;
  // complete reports whether that message shows all objects of the client's view: the server has sent all of
  // them, and each group of the message has arrived.
  bool complete() const;
  size_t ack(uint8_t *to) const;

protected:
  AreaDecoder() = default;
  ~AreaDecoder() = default;
};

} // namespace uplink
