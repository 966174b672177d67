// The receiver of Client::subscribe for worlds that the server offers as state.
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
  const Schema *objects = nullptr; // schema with the fields of the server; copied
  // StateConfig::rest must name the rest field of the server. The velocity factors are those of the
  // server.
  StateConfig state;
  // updated is called with each decoded packet. Until it returns, StateWorld::receiver returns the
  // packet's objects and inputs. The only function of the client that it may call is
  // Client::next_call, which Loop::correct uses.
  void (*updated)(void *context, const StateWorld &w, const StateUpdate &u) = nullptr;
  void *context = nullptr;
};

class StateWorld : public ClientWorld {
public:
  // create returns a receiver. Errors are those of StateReceiver::create, and Error::invalid if
  // updated is null.
  static Error create(const Allocator &a, const StateWorldConfig &c, StateWorld **out);
  static void destroy(StateWorld *w);

  virtual const StateReceiver &receiver() const = 0;

protected:
  StateWorld() = default;
  ~StateWorld() = default;
};

} // namespace uplink
