// Decoders of snapshots and of worlds with areas, for programs with a connection of their own. They
// use no sockets and no clock. docs/spec/snapshots.md specifies them.
//
// A decoder allocates memory while it decodes: a set of objects for each of up to 64 messages, with
// at most max_objects objects. If there is no memory, it drops the message, as if it were lost.
#pragma once

#include "uplink/objects.hpp"

namespace uplink {

// SnapshotInfo contains the header of a decoded message.
struct SnapshotInfo {
  uint16_t number = 0;  // low 16 bits of the snapshot's number
  uint8_t distance = 0; // number of snapshots to the baseline; 0 without a baseline
};

// SnapshotDecoder decodes the payloads of a world without areas. Lost, duplicated, reordered and
// forged payloads are safe.
class SnapshotDecoder {
public:
  // create returns a decoder of objects of a type, which must outlive it. initial is the coded
  // initial state of the world; it has no bytes if the state is empty. A payload with more than
  // most_objects objects is dropped. Error::malformed: initial is no initial state of the type.
  static Error create(const Allocator &a, const ObjectType &t, Bytes initial, SnapshotDecoder **out,
                      size_t most_objects = uplink::max_objects);
  static void destroy(SnapshotDecoder *d);

  // decode decodes a payload. The objects are valid until the next call. Error::malformed,
  // Error::no_baseline, Error::stale (late), Error::desync, Error::no_memory: the payload was dropped.
  Error decode(Bytes payload, SnapshotInfo *info, Objects *objects);
  // ack writes an ack of all decoded payloads to the buffer to, which has room for max_ack bytes,
  // and returns its size. Send an ack after each payload, also after a dropped one.
  size_t ack(uint8_t *to) const;
  // content returns the hash of the initial state, see docs/spec/streams.md, 2.
  uint64_t content() const;

protected:
  SnapshotDecoder() = default;
  ~SnapshotDecoder() = default;
};

// AreaDecoder decodes the messages of a world with areas.
class AreaDecoder {
public:
  // create returns a decoder of a world with these types of objects, 1 to 16, which must outlive it. A
  // message that shows more than most_objects objects of all types together is dropped.
  static Error create(const Allocator &a, const ObjectType *const *types, size_t n, AreaDecoder **out,
                      size_t most_objects = 16 * uplink::max_objects);
  static void destroy(AreaDecoder *d);

  // decode decodes a message. Errors are those of SnapshotDecoder::decode.
  Error decode(Bytes message, SnapshotInfo *info);
  // shown returns the objects of a type in the message that was decoded last. They are valid until
  // the next decode.
  Objects shown(size_t type) const;
  // complete reports whether the message that was decoded last shows all objects of the client's
  // view: the server has sent all of them, and every group of the message has arrived.
  bool complete() const;
  size_t ack(uint8_t *to) const;

protected:
  AreaDecoder() = default;
  ~AreaDecoder() = default;
};

} // namespace uplink
