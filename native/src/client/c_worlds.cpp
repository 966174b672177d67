// The flat C interface of subscriptions to worlds.
#include "src/downlink/c_downlink.hpp"
#include "uplink/client.hpp"
#include "uplink/snapshot_world.hpp"

using namespace uplink::detail::c_api;

uplink_error uplink_snapshot_world_create(const uplink_allocator *a, const uplink_schema *const *types,
                                          const uplink_interpolator_config *const *interpolation, size_t n,
                                          size_t max_objects, uplink_snapshot_world **out) {
  uplink::SnapshotWorldConfig config;
  uplink::InterpolatorConfig interpolators[uplink::max_world_types];
  *out = nullptr;
  if (n > uplink::max_world_types) return UPLINK_INVALID;
  config.n = n;
  if (max_objects != 0) config.max_objects = max_objects;
  for (size_t i = 0; i < n; i++) {
    config.types[i] = as<const uplink::Schema>(types[i]);
    if (interpolation == nullptr || interpolation[i] == nullptr) continue;
    if (!config_of(interpolation[i], &interpolators[i])) return UPLINK_INVALID;
    config.interpolation[i] = &interpolators[i];
  }
  uplink::SnapshotWorld *w = nullptr;
  const uplink_error e = code(uplink::SnapshotWorld::create(of(a), config, &w));
  *out = made<uplink_snapshot_world>(w);
  return e;
}
void uplink_snapshot_world_destroy(uplink_snapshot_world *w) {
  uplink::SnapshotWorld::destroy(gone<uplink::SnapshotWorld>(w));
}
uplink_world *uplink_snapshot_world_base(uplink_snapshot_world *w) {
  return as<uplink_world>(static_cast<uplink::ClientWorld *>(&*in(w)));
}
int32_t uplink_snapshot_world_newest(const uplink_snapshot_world *w, uplink_snapshot *s) {
  const uplink::Snapshot *own = in(w)->newest();
  if (own == nullptr) return 0;
  store({0, own->tick, own->received}, s);
  return 1;
}
void uplink_snapshot_world_objects(const uplink_snapshot_world *w, size_t type, uplink_objects *objects) {
  store(of(in(w)->objects(type)), objects);
}
uplink_error uplink_snapshot_world_restore(const uplink_snapshot_world *w, size_t type, const int32_t *row,
                                           uplink_frame *f) {
  return code(in(w)->type(type).restore(row, &*in(f)));
}
int32_t uplink_snapshot_world_sample(uplink_snapshot_world *w, size_t type, uint64_t now, uplink_sample *s) {
  uplink::Sample own;
  if (!in(w)->sample(type, now, &own)) return 0;
  store(of(own), s);
  return 1;
}
void uplink_snapshot_world_interpolation(const uplink_snapshot_world *w, size_t type,
                                         uplink_interpolator_stats *s) {
  store(of(in(w)->interpolation(type)), s);
}

double uplink_world_ticks(const uplink_world *w) {
  return in(w)->ticks();
}
int32_t uplink_world_clock(uplink_world *w, uint64_t now, uint64_t min_rtt, uint64_t rtt, uplink_ticks *t) {
  uplink::Ticks own;
  if (!in(w)->clock(now, min_rtt, rtt, &own)) return 0;
  store({0, own.server, own.hz, own.rate, own.one_way, own.rtt}, t);
  return 1;
}
double uplink_ticks_input(const uplink_ticks *t, const uplink_pace *p) {
  uplink::Pace own;
  own.target = p->target;
  return uplink::Ticks{t->server, t->hz, t->rate, t->one_way, t->rtt}.input(own);
}
double uplink_ticks_shown(const uplink_ticks *t, uint64_t delay) {
  return uplink::Ticks{t->server, t->hz, t->rate, t->one_way, t->rtt}.shown(delay);
}
int32_t uplink_world_processed(const uplink_world *w, int32_t rpc, uint64_t *next) {
  return rpc >= 0 && rpc <= 255 && in(w)->processed(static_cast<uint8_t>(rpc), next) ? 1 : 0;
}

uplink_error uplink_client_subscribe(uplink_client *c, const char *name, uplink_world *w, int32_t ack_hz,
                                     int32_t *world) {
  uint8_t own = 0;
  uint16_t hz = 0;
  *world = -1;
  if (!number(ack_hz, 0, &hz)) return UPLINK_INVALID;
  const uplink_error e = code(in(c)->subscribe(name, *in(w), hz, &own));
  if (e == UPLINK_OK) *world = own;
  return e;
}
uplink_error uplink_client_unsubscribe(uplink_client *c, int32_t world) {
  if (world < 0 || world > 255) return UPLINK_INVALID;
  return code(in(c)->unsubscribe(static_cast<uint8_t>(world)));
}
