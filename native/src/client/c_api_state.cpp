// The flat C interface of worlds of state.
#include "src/base/memory.hpp"
#include "src/downlink/state/c_api.hpp"
#include "uplink/client.hpp"
#include "uplink/state_world.hpp"

using namespace uplink::detail::c_api;

namespace {

// World has the function of the program.
struct World {
  uplink::StateWorld *world = nullptr;
  uplink_state_updated updated = nullptr;
  void *context = nullptr;
  uplink::Allocator allocator;
};

World *in(uplink_state_world *w) {
  return as<World>(w);
}
const World *in(const uplink_state_world *w) {
  return as<const World>(w);
}

void updated(void *context, const uplink::StateWorld &, const uplink::StateUpdate &u) {
  auto *w = static_cast<World *>(context);
  const uplink_state_update own = of(u);
  w->updated(w->context, as<uplink_state_world>(w), &own);
}

} // namespace

uplink_error uplink_state_world_create(const uplink_allocator *a, const uplink_schema *objects,
                                       const uplink_state_config *c, uplink_state_updated function,
                                       void *context, uplink_state_world **out) {
  uplink::StateWorldConfig config;
  *out = nullptr;
  if (function == nullptr || !config_of(c, &config.state)) return UPLINK_INVALID;
  auto *w = uplink::detail::create<World>(of(a));
  if (w == nullptr) return UPLINK_NO_MEMORY;
  w->allocator = of(a);
  w->updated = function;
  w->context = context;
  config.objects = as<const uplink::Schema>(objects);
  config.updated = updated;
  config.context = w;
  const uplink_error e = code(uplink::StateWorld::create(of(a), config, &w->world));
  if (e != UPLINK_OK)
    uplink_state_world_destroy(as<uplink_state_world>(w));
  else
    *out = as<uplink_state_world>(w);
  return e;
}
void uplink_state_world_destroy(uplink_state_world *w) {
  if (w == nullptr) return;
  uplink::StateWorld::destroy(in(w)->world);
  const uplink::Allocator a = in(w)->allocator;
  uplink::detail::destroy(a, in(w));
}
const uplink_state_receiver *uplink_state_world_receiver(const uplink_state_world *w) {
  return as<const uplink_state_receiver>(&in(w)->world->receiver());
}
double uplink_state_world_ticks(const uplink_state_world *w) {
  return in(w)->world->ticks();
}
int32_t uplink_state_world_processed(const uplink_state_world *w, int32_t rpc, uint64_t *next) {
  return rpc >= 0 && rpc <= 255 && in(w)->world->processed(static_cast<uint8_t>(rpc), next) ? 1 : 0;
}
uplink_error uplink_client_subscribe_state(uplink_client *c, const char *name, uplink_state_world *w,
                                           int32_t ack_hz, int32_t *world) {
  uint16_t rate = 0;
  uint8_t own = 0;
  *world = -1;
  if (!number(ack_hz, 0, &rate)) return UPLINK_INVALID;
  const uplink::Error e = as<uplink::Client>(c)->subscribe(name, *in(w)->world, rate, &own);
  if (e == uplink::Error::ok) *world = own;
  return code(e);
}
