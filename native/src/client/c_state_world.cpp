// The flat C interface of worlds of state.
#include "src/base/memory.hpp"
#include "src/downlink/state/c_state.hpp"
#include "uplink/state_world.hpp"

using namespace uplink::detail::c_api;

// HeldStateWorld is a StateWorld with the callback of the program.
struct uplink::detail::c_api::HeldStateWorld {
  uplink::StateWorld *world = nullptr;
  uplink_state_updated updated = nullptr;
  void *context = nullptr;
  uplink::Allocator allocator;
};

namespace {

void destroy(HeldStateWorld *w) {
  uplink::StateWorld::destroy(w->world);
  const uplink::Allocator a = w->allocator;
  uplink::detail::destroy(a, w);
}

void updated(void *context, const uplink::StateWorld &, const uplink::StateUpdate &u) {
  auto *w = static_cast<HeldStateWorld *>(context);
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
  auto *w = uplink::detail::create<HeldStateWorld>(of(a));
  if (w == nullptr) return UPLINK_NO_MEMORY;
  w->allocator = of(a);
  w->updated = function;
  w->context = context;
  config.objects = as<const uplink::Schema>(objects);
  config.updated = updated;
  config.context = w;
  const uplink_error e = code(uplink::StateWorld::create(of(a), config, &w->world));
  if (e != UPLINK_OK)
    destroy(w);
  else
    *out = made<uplink_state_world>(w);
  return e;
}
void uplink_state_world_destroy(uplink_state_world *w) {
  if (w != nullptr) destroy(gone<HeldStateWorld>(w));
}
uplink_world *uplink_state_world_base(uplink_state_world *w) {
  return as<uplink_world>(static_cast<uplink::ClientWorld *>(in(w)->world));
}
const uplink_state_receiver *uplink_state_world_receiver(const uplink_state_world *w) {
  return as<const uplink_state_receiver>(&in(w)->world->receiver());
}
