// The flat C interface of decoders and interpolators.
#include "src/downlink/c_downlink.hpp"

#include "src/base/memory.hpp"
#include "uplink/smoother.hpp"
#include "uplink/snapshot.hpp"

using namespace uplink::detail::c_api;

bool uplink::detail::c_api::config_of(const uplink_interpolator_config *from, InterpolatorConfig *to) {
  uplink_interpolator_config c;
  if (!load(from, &c)) return false;
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

uplink_error uplink_object_type_create(const uplink_allocator *a, const uplink_schema *s,
                                       uplink_object_type **out) {
  uplink::ObjectType *t = nullptr;
  const uplink_error e = code(uplink::ObjectType::create(uplink::detail::c_api::of(a), *in(s), &t));
  *out = made<uplink_object_type>(t);
  return e;
}
uplink_error uplink_object_type_of_fields(const uplink_allocator *a, const uplink_object_field *fields,
                                          size_t n, uplink_object_type **out) {
  uplink::ObjectField own[32];
  *out = nullptr;
  if (n > 32) return UPLINK_INVALID;
  for (size_t i = 0; i < n; i++) {
    uplink_object_field f;
    if (!load(fields, i, &f)) return UPLINK_INVALID;
    if (f.type < UPLINK_CLASS_NUMBER || f.type > UPLINK_CLASS_BYTES) return UPLINK_INVALID;
    own[i].type = static_cast<uplink::ObjectClass>(f.type);
    if (!number(f.components, 0, &own[i].components)) return UPLINK_INVALID;
    own[i].lo = f.lo;
    own[i].hi = f.hi;
  }
  uplink::ObjectType *t = nullptr;
  const uplink_error e = code(uplink::ObjectType::create(uplink::detail::c_api::of(a), own, n, &t));
  *out = made<uplink_object_type>(t);
  return e;
}
void uplink_object_type_destroy(uplink_object_type *t) {
  uplink::ObjectType::destroy(gone<uplink::ObjectType>(t));
}
size_t uplink_object_type_components(const uplink_object_type *t) {
  return in(t)->components();
}
uplink_error uplink_object_type_restore(const uplink_object_type *t, const int32_t *row, uplink_frame *f) {
  return code(in(t)->restore(row, &*in(f)));
}

uplink_error uplink_snapshot_decoder_create(const uplink_allocator *a, const uplink_object_type *t,
                                            const uint8_t *initial, size_t n, size_t max_objects,
                                            uplink_snapshot_decoder **out) {
  uplink::SnapshotDecoder *d = nullptr;
  const uplink_error e =
      code(uplink::SnapshotDecoder::create(uplink::detail::c_api::of(a), *in(t), {initial, n}, &d,
                                           max_objects == 0 ? uplink::max_objects : max_objects));
  *out = made<uplink_snapshot_decoder>(d);
  return e;
}
void uplink_snapshot_decoder_destroy(uplink_snapshot_decoder *d) {
  uplink::SnapshotDecoder::destroy(gone<uplink::SnapshotDecoder>(d));
}
uplink_error uplink_snapshot_decoder_decode(uplink_snapshot_decoder *d, const uint8_t *payload, size_t n,
                                            uplink_snapshot_info *info, uplink_objects *objects) {
  uplink::SnapshotInfo i;
  uplink::Objects o;
  const uplink_error e = code(in(d)->decode({payload, n}, &i, &o));
  store({0, i.number, i.distance}, info);
  store(uplink::detail::c_api::of(o), objects);
  return e;
}
size_t uplink_snapshot_decoder_ack(const uplink_snapshot_decoder *d, uint8_t *to) {
  return in(d)->ack(to);
}

uplink_error uplink_area_decoder_create(const uplink_allocator *a, const uplink_object_type *const *types,
                                        size_t n, size_t max_objects, uplink_area_decoder **out) {
  const uplink::ObjectType *of[UPLINK_MAX_WORLD_TYPES] = {};
  *out = nullptr;
  if (n > UPLINK_MAX_WORLD_TYPES) return UPLINK_INVALID;
  for (size_t i = 0; i < n; i++) of[i] = &*in(types[i]);
  uplink::AreaDecoder *d = nullptr;
  const uplink_error e = code(uplink::AreaDecoder::create(
      uplink::detail::c_api::of(a), of, n, &d, max_objects == 0 ? 16 * uplink::max_objects : max_objects));
  *out = made<uplink_area_decoder>(d);
  return e;
}
void uplink_area_decoder_destroy(uplink_area_decoder *d) {
  uplink::AreaDecoder::destroy(gone<uplink::AreaDecoder>(d));
}
uplink_error uplink_area_decoder_decode(uplink_area_decoder *d, const uint8_t *message, size_t n,
                                        uplink_snapshot_info *info) {
  uplink::SnapshotInfo i;
  const uplink_error e = code(in(d)->decode({message, n}, &i));
  store({0, i.number, i.distance}, info);
  return e;
}
void uplink_area_decoder_shown(const uplink_area_decoder *d, size_t type, uplink_objects *objects) {
  store(uplink::detail::c_api::of(in(d)->shown(type)), objects);
}
size_t uplink_area_decoder_ack(const uplink_area_decoder *d, uint8_t *to) {
  return in(d)->ack(to);
}

uplink_error uplink_interpolator_create(const uplink_allocator *a, const uplink_object_type *t,
                                        const uplink_interpolator_config *c, uplink_interpolator **out) {
  uplink::InterpolatorConfig config;
  uplink::Interpolator *i = nullptr;
  *out = nullptr;
  if (!config_of(c, &config)) return UPLINK_INVALID;
  const uplink_error e = code(uplink::Interpolator::create(uplink::detail::c_api::of(a), *in(t), config, &i));
  *out = made<uplink_interpolator>(i);
  return e;
}
int32_t uplink_interpolation_problem(const uplink_schema *s, const uplink_interpolator_config *c, char *to,
                                     size_t capacity) {
  uplink::InterpolatorConfig config;
  if (!config_of(c, &config)) return 0;
  return uplink::interpolation_problem(*in(s), config, to, capacity) ? 1 : 0;
}
void uplink_interpolator_destroy(uplink_interpolator *i) {
  uplink::Interpolator::destroy(gone<uplink::Interpolator>(i));
}
uplink_error uplink_interpolator_add(uplink_interpolator *i, uint64_t now, uint64_t time,
                                     const uplink_objects *o) {
  uplink_objects own;
  if (!load(o, &own)) return UPLINK_INVALID;
  const uplink::Objects objects = {own.n, own.components, as<const uplink::Object>(own.objects), own.rows,
                                   own.ages};
  return code(in(i)->add(now, time, objects));
}
int32_t uplink_interpolator_sample(uplink_interpolator *i, uint64_t now, uplink_sample *s) {
  uplink::Sample own;
  if (!in(i)->sample(now, &own)) return 0;
  store(uplink::detail::c_api::of(own), s);
  return 1;
}
void uplink_interpolator_reset(uplink_interpolator *i) {
  in(i)->reset();
}
void uplink_interpolator_get_stats(const uplink_interpolator *i, uplink_interpolator_stats *s) {
  store(uplink::detail::c_api::of(in(i)->stats()), s);
}

// HeldSmoother is a smoother with its allocator.
struct uplink::detail::c_api::HeldSmoother {
  uplink::Allocator allocator;
  uplink::Smoother smoother;
};

namespace {

void set(double from, double *to) {
  if (from != 0) *to = from;
}

} // namespace

uplink_error uplink_smoother_create(const uplink_allocator *a, const uplink_smoothing *s,
                                    const char **problem, uplink_smoother **out) {
  uplink_smoothing from;
  uplink::Smoothing config;
  *out = nullptr;
  *problem = nullptr;
  if (!load(s, &from)) return UPLINK_INVALID;
  set(from.slow, &config.slow);
  set(from.fast, &config.fast);
  set(from.small_error, &config.small_error);
  set(from.large_error, &config.large_error);
  set(from.small_turn, &config.small_turn);
  set(from.large_turn, &config.large_turn);
  set(from.snap, &config.snap);
  uplink::Smoother smoother;
  *problem = smoother.configure(config);
  if (*problem != nullptr) return UPLINK_INVALID;
  const uplink::Allocator allocator = uplink::detail::c_api::of(a);
  auto *held = uplink::detail::create<HeldSmoother>(allocator, HeldSmoother{allocator, smoother});
  if (held == nullptr) return UPLINK_NO_MEMORY;
  *out = made<uplink_smoother>(held);
  return UPLINK_OK;
}
void uplink_smoother_destroy(uplink_smoother *s) {
  auto *held = gone<HeldSmoother>(s);
  if (held != nullptr) uplink::detail::destroy(uplink::Allocator(held->allocator), held);
}
void uplink_smoother_correct(uplink_smoother *s, const uplink_pose *from, const uplink_pose *to) {
  in(s)->smoother.correct(*as<const uplink::Pose>(from), *as<const uplink::Pose>(to));
}
void uplink_smoother_reset(uplink_smoother *s) {
  in(s)->smoother.reset();
}
void uplink_smoother_step(uplink_smoother *s, double seconds) {
  in(s)->smoother.step(seconds);
}
int32_t uplink_smoother_settled(const uplink_smoother *s) {
  return in(s)->smoother.settled() ? 1 : 0;
}
void uplink_smoother_drawn(const uplink_smoother *s, const uplink_pose *p, uplink_pose *drawn) {
  *as<uplink::Pose>(drawn) = in(s)->smoother.drawn(*as<const uplink::Pose>(p));
}
