// The receiver of state synchronization: a server sends the state of some of its objects, and the
// players' inputs, and the program simulates in between. docs/spec/state.md specifies the packets.
//
// A program describes its objects by a Schema, as the server does, and passes each packet to
// StateReceiver::receive. It applies the objects and inputs of the update to its simulation, and sends
// StateReceiver::ack back, some ten times a second.
#pragma once

#include "uplink/objects.hpp"

namespace uplink {

// The memory of a receiver follows from these numbers. A packet that needs more is dropped as
// Error::full; the receiver then asks the sender to begin again.
struct StateConfig {
  uint32_t objects = 1024;    // that the server shows at a time, at most 65,536
  uint32_t updates = 4096;    // of the last 64 packets, which have at most 255 each
  uint16_t input_bytes = 256; // of the inputs of a tick, with 2 bytes per player; at most 1024
  // Name of the integer field that is above its minimum while an object is at rest. Without it, an
  // object is at rest while all its numbers but the first field of them are 0.
  const char *rest = nullptr;
};

// StateUpdate is a decoded packet. It and what it refers to are valid until the next one.
struct StateUpdate {
  uint64_t number = 0; // of the packet, from 0
  int64_t tick = 0;
  bool late = false;  // a packet with a later tick was decoded before
  bool first = false; // of a new sender: ticks and objects of earlier packets have no meaning any more
  size_t objects = 0; // see StateReceiver::object
  size_t inputs = 0;  // see StateReceiver::inputs
};

// StateObject is an updated object.
struct StateObject : Object {
  bool removed = false;                // there are no components
  const int32_t *components = nullptr; // its row
};

// TickInputs are the inputs of all players for a tick.
struct TickInputs {
  int64_t tick = 0;
  bool missing = false; // the server had none
  Bytes inputs;         // see next_input
};

// next_input removes the first input of a tick. It reports false if there is none. Players ascend.
bool next_input(Bytes *inputs, uint8_t *player, Bytes *data);

// Packets, and those that were dropped.
struct StateStats {
  uint64_t packets = 0;
  uint64_t reordered = 0; // decoded, but late
  uint64_t duplicate = 0;
  uint64_t late = 0;
  uint64_t no_baseline = 0;
  uint64_t desync = 0;
  uint64_t malformed = 0;
  uint64_t full = 0; // more than StateConfig allows
  uint64_t lost = 0; // packets that have not arrived so far
};

// StateReceiver decodes the packets of one sender, whatever the network loses, duplicates, reorders or
// forges.
class StateReceiver {
public:
  // create allocates all memory that the receiver ever needs, and copies the schema of the objects.
  // Velocities and their factors are those of the schema, whose rate is the number of ticks per
  // second; see Schema::set_velocity_factors. Error::invalid: the objects have more than 32 fields or
  // 128 components, or a velocity has one itself, or rest is no such field.
  static Error create(const Allocator &a, const Schema &objects, const StateConfig &c, StateReceiver **out);
  static void destroy(StateReceiver *r);

  // receive decodes a packet. Error::malformed, Error::no_baseline, Error::duplicate, Error::stale
  // (late), Error::desync, Error::full: the packet was dropped, and nothing has changed but what the
  // next ack says.
  Error receive(Bytes packet, StateUpdate *u);
  // object returns updated object i, by ascending id.
  StateObject object(size_t i) const;
  // get sets a frame of the receiver's schema to object i. Error::invalid: it was removed, or the
  // frame has another schema.
  Error get(size_t i, Frame &f) const;
  // inputs returns those of a tick that were not known before, the oldest first.
  TickInputs inputs(size_t i) const;
  // ack writes an ack of all packets to to, which has room for max_ack bytes, and returns its size.
  size_t ack(uint8_t *to) const;
  StateStats stats() const;
  // reset forgets everything, before the packets of another stream.
  void reset();

protected:
  StateReceiver() = default;
  ~StateReceiver() = default;
};

} // namespace uplink
