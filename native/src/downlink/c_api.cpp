// The flat C interface of decoders and interpolators.
#include "src/downlink/c_api.hpp"

#include "src/base/memory.hpp"
#include "uplink/smoother.hpp"
#include "uplink/snapshot.hpp"

using namespace uplink::detail::c_api;

bool uplink::detail::c_api::config_of(const uplink_interpolator_config &c, InterpolatorConfig *to) {
  if (c.method < UPLINK_LINEAR || c.method > UPLINK_NEAREST) return false;
  to->interval = c.interval;
  to->method = static_cast<Interpolation>(c.method);
  to->adaptive = c.adaptive != 0;
  to->position = c.position;
  to->velocity = c.velocity;
  to->orientation = c.orientation;
  to->teleports = c.teleports;
  for (size_t i = 0; i < max_blended; i++) to->blended[i] = c.blended[i];
  to->delay = c.delay;
  if (c.jitter != 0) to->jitter = c.jitter;
  if (c.loss != 0) to->loss = c.loss;
  if (c.late != 0) to->late = c.late;
  to->max_delay = c.max_delay;
  to->extrapolate = c.extrapolate;
  to->gap = c.gap;
  return true;
}

namespace {

const uplink::ObjectType *in(const uplink_object_type *t) {
  return as<const uplink::ObjectType>(t);
}

uplink_snapshot_info of(const uplink::SnapshotInfo &i) {
  return {i.number, i.distance};
}

} // namespace

uplink_error uplink_object_type_create(const uplink_allocator *a, const uplink_schema *s,
                                       uplink_object_type **out) {
  uplink::ObjectType *t = nullptr;
  const uplink_error e =
      code(uplink::ObjectType::create(uplink::detail::c_api::of(a), *as<const uplink::Schema>(s), &t));
  *out = as<uplink_object_type>(t);
  return e;
}
uplink_error uplink_object_type_of_fields(const uplink_allocator *a, const uplink_object_field *fields,
                                          size_t n, uplink_object_type **out) {
  uplink::ObjectField own[32];
  *out = nullptr;
  if (n > 32) return UPLINK_INVALID;
  for (size_t i = 0; i < n; i++) {
    if (fields[i].type < UPLINK_CLASS_NUMBER || fields[i].type > UPLINK_CLASS_BYTES) return UPLINK_INVALID;
    own[i].type = static_cast<uplink::ObjectClass>(fields[i].type);
    if (!number(fields[i].components, 0, &own[i].components)) return UPLINK_INVALID;
    own[i].lo = fields[i].lo;
    own[i].hi = fields[i].hi;
  }
  uplink::ObjectType *t = nullptr;
  const uplink_error e = code(uplink::ObjectType::create(uplink::detail::c_api::of(a), own, n, &t));
  *out = as<uplink_object_type>(t);
  return e;
}
void uplink_object_type_destroy(uplink_object_type *t) {
  uplink::ObjectType::destroy(as<uplink::ObjectType>(t));
}
size_t uplink_object_type_components(const uplink_object_type *t) {
  return in(t)->components();
}
uplink_error uplink_object_type_restore(const uplink_object_type *t, const int32_t *row, uplink_frame *f) {
  return code(in(t)->restore(row, as<uplink::Frame>(f)));
}

uplink_error uplink_snapshot_decoder_create(const uplink_allocator *a, const uplink_object_type *t,
                                            const uint8_t *initial, size_t n, size_t max_objects,
                                            uplink_snapshot_decoder **out) {
  uplink::SnapshotDecoder *d = nullptr;
  const uplink_error e =
      code(uplink::SnapshotDecoder::create(uplink::detail::c_api::of(a), *in(t), {initial, n}, &d,
                                           max_objects == 0 ? uplink::max_objects : max_objects));
  *out = as<uplink_snapshot_decoder>(d);
  return e;
}
void uplink_snapshot_decoder_destroy(uplink_snapshot_decoder *d) {
  uplink::SnapshotDecoder::destroy(as<uplink::SnapshotDecoder>(d));
}
uplink_error uplink_snapshot_decoder_decode(uplink_snapshot_decoder *d, const uint8_t *payload, size_t n,
                                            uplink_snapshot_info *info, uplink_objects *objects) {
  uplink::SnapshotInfo i;
  uplink::Objects o;
  const uplink_error e = code(as<uplink::SnapshotDecoder>(d)->decode({payload, n}, &i, &o));
  *info = of(i);
  *objects = uplink::detail::c_api::of(o);
  return e;
}
size_t uplink_snapshot_decoder_ack(const uplink_snapshot_decoder *d, uint8_t *to) {
  return as<const uplink::SnapshotDecoder>(d)->ack(to);
}

uplink_error uplink_area_decoder_create(const uplink_allocator *a, const uplink_object_type *const *types,
                                        size_t n, size_t max_objects, uplink_area_decoder **out) {
  const uplink::ObjectType *of[UPLINK_MAX_WORLD_TYPES] = {};
  *out = nullptr;
  if (n > UPLINK_MAX_WORLD_TYPES) return UPLINK_INVALID;
  for (size_t i = 0; i < n; i++) of[i] = in(types[i]);
  uplink::AreaDecoder *d = nullptr;
  const uplink_error e = code(uplink::AreaDecoder::create(
      uplink::detail::c_api::of(a), of, n, &d, max_objects == 0 ? 16 * uplink::max_objects : max_objects));
  *out = as<uplink_area_decoder>(d);
  return e;
}
void uplink_area_decoder_destroy(uplink_area_decoder *d) {
  uplink::AreaDecoder::destroy(as<uplink::AreaDecoder>(d));
}
uplink_error uplink_area_decoder_decode(uplink_area_decoder *d, const uint8_t *message, size_t n,
                                        uplink_snapshot_info *info) {
  uplink::SnapshotInfo i;
  const uplink_error e = code(as<uplink::AreaDecoder>(d)->decode({message, n}, &i));
  *info = of(i);
  return e;
}
void uplink_area_decoder_shown(const uplink_area_decoder *d, size_t type, uplink_objects *objects) {
  *objects = uplink::detail::c_api::of(as<const uplink::AreaDecoder>(d)->shown(type));
}
size_t uplink_area_decoder_ack(const uplink_area_decoder *d, uint8_t *to) {
  return as<const uplink::AreaDecoder>(d)->ack(to);
}

uplink_error uplink_interpolator_create(const uplink_allocator *a, const uplink_object_type *t,
                                        const uplink_interpolator_config *c, uplink_interpolator **out) {
  uplink::InterpolatorConfig config;
  uplink::Interpolator *i = nullptr;
  *out = nullptr;
  if (!config_of(*c, &config)) return UPLINK_INVALID;
  const uplink_error e = code(uplink::Interpolator::create(uplink::detail::c_api::of(a), *in(t), config, &i));
  *out = as<uplink_interpolator>(i);
  return e;
}
int32_t uplink_interpolation_problem(const uplink_schema *s, const uplink_interpolator_config *c, char *to,
                                     size_t capacity) {
  uplink::InterpolatorConfig config;
  if (!config_of(*c, &config)) return 0;
  return uplink::interpolation_problem(*as<const uplink::Schema>(s), config, to, capacity) ? 1 : 0;
}
void uplink_interpolator_destroy(uplink_interpolator *i) {
  uplink::Interpolator::destroy(as<uplink::Interpolator>(i));
}
uplink_error uplink_interpolator_add(uplink_interpolator *i, uint64_t now, uint64_t time,
                                     const uplink_objects *o) {
  const uplink::Objects objects = {o->n, o->components, as<const uplink::Object>(o->objects), o->rows,
                                   o->ages};
  return code(as<uplink::Interpolator>(i)->add(now, time, objects));
}
int32_t uplink_interpolator_sample(uplink_interpolator *i, uint64_t now, uplink_sample *s) {
  uplink::Sample own;
  if (!as<uplink::Interpolator>(i)->sample(now, &own)) return 0;
  *s = uplink::detail::c_api::of(own);
  return 1;
}
void uplink_interpolator_reset(uplink_interpolator *i) {
  as<uplink::Interpolator>(i)->reset();
}
void uplink_interpolator_get_stats(const uplink_interpolator *i, uplink_interpolator_stats *s) {
  *s = uplink::detail::c_api::of(as<const uplink::Interpolator>(i)->stats());
}

namespace {

static_assert(sizeof(uplink_pose) == sizeof(uplink::Pose), "a pose is that of interpolate.hpp");

// Smoothing in the C interface, with its allocator.
struct HeldSmoother {
  uplink::Allocator allocator;
  uplink::Smoother smoother;
};

void set(double from, double *to) {
  if (from != 0) *to = from;
}

} // namespace

uplink_error uplink_smoother_create(const uplink_allocator *a, const uplink_smoothing *s,
                                    const char **problem, uplink_smoother **out) {
  uplink::Smoothing config;
  set(s->slow, &config.slow);
  set(s->fast, &config.fast);
  set(s->small_error, &config.small_error);
  set(s->large_error, &config.large_error);
  set(s->small_turn, &config.small_turn);
  set(s->large_turn, &config.large_turn);
  set(s->snap, &config.snap);
  *out = nullptr;
  uplink::Smoother smoother;
  *problem = smoother.configure(config);
  if (*problem != nullptr) return UPLINK_INVALID;
  const uplink::Allocator allocator = uplink::detail::c_api::of(a);
  auto *held = uplink::detail::create<HeldSmoother>(allocator, HeldSmoother{allocator, smoother});
  if (held == nullptr) return UPLINK_NO_MEMORY;
  *out = as<uplink_smoother>(held);
  return UPLINK_OK;
}
void uplink_smoother_destroy(uplink_smoother *s) {
  auto *held = as<HeldSmoother>(s);
  if (held != nullptr) uplink::detail::destroy(uplink::Allocator(held->allocator), held);
}
void uplink_smoother_correct(uplink_smoother *s, const uplink_pose *from, const uplink_pose *to) {
  as<HeldSmoother>(s)->smoother.correct(*as<const uplink::Pose>(from), *as<const uplink::Pose>(to));
}
void uplink_smoother_reset(uplink_smoother *s) {
  as<HeldSmoother>(s)->smoother.reset();
}
void uplink_smoother_step(uplink_smoother *s, double seconds) {
  as<HeldSmoother>(s)->smoother.step(seconds);
}
int32_t uplink_smoother_settled(const uplink_smoother *s) {
  return as<const HeldSmoother>(s)->smoother.settled() ? 1 : 0;
}
void uplink_smoother_drawn(const uplink_smoother *s, const uplink_pose *p, uplink_pose *drawn) {
  *as<uplink::Pose>(drawn) = as<const HeldSmoother>(s)->smoother.drawn(*as<const uplink::Pose>(p));
}
