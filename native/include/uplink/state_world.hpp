// A world at a client by state synchronization: the receiver of Client::subscribe for the codec "state".
//
//   config.objects = schema;
//   config.updated = apply; // called in Client::receive, for each decoded packet
//   StateWorld::create({}, config, &world);
//   client->subscribe("arena", *world, 0, &number);
#pragma once

#include "uplink/state.hpp"
#include "uplink/world.hpp"

namespace uplink {

class StateWorld;

struct StateWorldConfig {
  const Schema *objects = nullptr; // fields must be those of the server; it is copied
  // The server's rest field must be StateConfig::rest. Velocities are those of the schema, their factors
  // those of the server.
  StateConfig state;
  // updated gets each decoded packet, whose objects and inputs StateWorld::receiver has until it returns.
  // Of the client it may call Client::next_call alone, as Loop::correct does.
  void (*updated)(void *context, const StateWorld &w, const StateUpdate &u) = nullptr;
  void *context = nullptr;
};

class StateWorld : public ClientWorld {
public:
  // create: see StateReceiver::create. Error::invalid also: updated is null.
  static Error create(const Allocator &a, const StateWorldConfig &c, StateWorld **out);
  static void destroy(StateWorld *w);

  virtual const StateReceiver &receiver() const = 0;

protected:
  StateWorld() = default;
  ~StateWorld() = default;
};

} // namespace uplink
