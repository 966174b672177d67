// The receiver of state synchronization: each packet of the server contains the state of some of
// its objects and the players' inputs, and the program simulates all objects. docs/spec/state.md
// specifies the packets.
//
// A program describes its objects by a Schema with the same fields as the server's, and passes each
// packet to StateReceiver::receive. It applies the objects and inputs of the update to its
// simulation, and sends the result of StateReceiver::ack back about ten times a second.
#pragma once

#include "uplink/objects.hpp"

namespace uplink {

// StateConfig limits the memory of a receiver. A packet that exceeds a limit is dropped with
// Error::full; the receiver then requests a reset of the sender.
struct StateConfig {
  uint32_t objects = 1024; // maximum number of objects that the server sends, at most 65,536
  // Maximum number of object updates in the last 64 packets; a packet has at most 255.
  uint32_t updates = 4096;
  // Maximum size of the inputs of a tick, including 2 bytes per player; at most 1024.
  uint16_t input_bytes = 256;
  // Name of the integer field whose value is above its minimum while an object is at rest. If it is
  // null, an object is at rest while all its number fields except the first are 0.
  const char *rest = nullptr;
};

// StateUpdate is a decoded packet. It is valid until the next packet is received.
struct StateUpdate {
  uint64_t number = 0; // number of the packet, from 0
  int64_t tick = 0;
  bool late = false;  // a packet with a later tick was decoded before
  bool first = false; // first packet of a new sender: ticks and objects of earlier packets are obsolete
  size_t objects = 0; // number of updated objects, see StateReceiver::object
  size_t inputs = 0;  // number of ticks with inputs, see StateReceiver::inputs
};

// StateObject is an updated object.
struct StateObject : Object {
  bool removed = false;                // the object was removed, and has no components
  const int32_t *components = nullptr; // row of the object
};

// TickInputs are the inputs of all players for a tick.
struct TickInputs {
  int64_t tick = 0;
  bool missing = false; // the server has no inputs for the tick
  Bytes inputs;         // see next_input
};

// next_input removes the first input from *inputs and returns it. It reports false if there is
// none. Inputs are in ascending order of players.
bool next_input(Bytes *inputs, uint8_t *player, Bytes *data);

// StateStats counts the decoded packets, and the dropped ones by reason.
struct StateStats {
  uint64_t packets = 0;
  uint64_t reordered = 0; // decoded packets that arrived out of order
  uint64_t duplicate = 0;
  uint64_t late = 0;
  uint64_t no_baseline = 0;
  uint64_t desync = 0;
  uint64_t malformed = 0;
  uint64_t full = 0; // packets that exceeded a limit of StateConfig
  uint64_t lost = 0; // packets that have not arrived so far
};

// StateReceiver decodes the packets of one sender. Lost, duplicated, reordered and forged packets
// are safe.
class StateReceiver {
public:
  // create allocates all memory that the receiver needs, and copies the schema of the objects. The
  // rate of the schema is the number of ticks per second, from which its velocity factors follow;
  // see Schema::set_velocity_factors. Error::invalid: the objects have more than 32 fields or 128
  // components, or a velocity field has a velocity itself, or StateConfig::rest does not name a
  // suitable field.
  static Error create(const Allocator &a, const Schema &objects, const StateConfig &c, StateReceiver **out);
  static void destroy(StateReceiver *r);

  // receive decodes a packet. Error::malformed, Error::no_baseline, Error::duplicate, Error::stale
  // (late), Error::desync, Error::full: the packet was dropped, which only affects the next ack.
  Error receive(Bytes packet, StateUpdate *u);
  // object returns updated object i. Objects are in ascending order of ids.
  StateObject object(size_t i) const;
  // get sets a frame of the receiver's schema to updated object i. Error::invalid: the object was
  // removed, or the frame has another schema.
  Error get(size_t i, Frame &f) const;
  // inputs returns the inputs of a tick that no earlier packet contained. i counts these ticks, the
  // oldest first.
  TickInputs inputs(size_t i) const;
  // ack writes an ack of all packets to the buffer to, which has room for max_ack bytes, and
  // returns its size.
  size_t ack(uint8_t *to) const;
  StateStats stats() const;
  // reset discards all state, before the packets of another stream.
  void reset();

protected:
  StateReceiver() = default;
  ~StateReceiver() = default;
};

} // namespace uplink
