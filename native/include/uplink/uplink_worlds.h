/* Worlds for C: subscriptions of the client, decoders of snapshots with and without areas, and
 * interpolation. uplink_state.h contains state synchronization. The functions are those of
 * uplink/world.hpp, clock.hpp, objects.hpp, snapshot.hpp, interpolate.hpp, smoother.hpp and
 * snapshot_world.hpp, whose comments state units, ranges and how long results are valid. */
#ifndef UPLINK_WORLDS_H
#define UPLINK_WORLDS_H

#include "uplink/uplink.h"

#ifdef __cplusplus
extern "C" {
#endif

#define UPLINK_MAX_WORLD_TYPES 16

/* The clock of a server. */

typedef struct uplink_server_clock uplink_server_clock;

UPLINK_API uplink_error uplink_server_clock_create(const uplink_allocator *a, uplink_server_clock **out);
UPLINK_API void uplink_server_clock_destroy(uplink_server_clock *c);
UPLINK_API void uplink_server_clock_observe(uplink_server_clock *c, uint64_t now, uint64_t server);
/* The result is 0 before the first packet, otherwise 1. */
UPLINK_API int32_t uplink_server_clock_server(uplink_server_clock *c, uint64_t now, uint64_t one_way,
                                              uint64_t *time);

/* uplink_ticks is a client's estimate of the ticks of a world's server. */
typedef struct uplink_ticks {
  uint32_t struct_size;
  double server;
  double hz;        /* nominal ticks per second */
  double rate;      /* measured rate of the ticks relative to hz */
  uint64_t one_way; /* ns */
  uint64_t rtt;     /* ns */
} uplink_ticks;

/* uplink_ticks_input returns the tick in which the server will use a call that is sent now. p is the result
 * of uplink_client_pace for the RPC. uplink_ticks_shown returns the tick that interpolation with the given
 * delay in ns shows now. */
UPLINK_API double uplink_ticks_input(const uplink_ticks *t, const uplink_pace *p);
UPLINK_API double uplink_ticks_shown(const uplink_ticks *t, uint64_t delay);

/* Worlds of the client, received as snapshots or as state. */

typedef struct uplink_world uplink_world;

UPLINK_API double uplink_world_ticks(const uplink_world *w);
/* min_rtt and rtt are those of uplink_stats. The result is 0 before the first message of a session,
 * otherwise 1. */
UPLINK_API int32_t uplink_world_clock(uplink_world *w, uint64_t now, uint64_t min_rtt, uint64_t rtt,
                                      uplink_ticks *t);
/* The result is 1 if the newest message contains the number of processed calls of the RPC, otherwise 0. */
UPLINK_API int32_t uplink_world_processed(const uplink_world *w, int32_t rpc, uint64_t *next);

/* *world is the number of the world in events. */
UPLINK_API uplink_error uplink_client_subscribe(uplink_client *c, const char *name, uplink_world *w,
                                                int32_t ack_hz, int32_t *world);
UPLINK_API uplink_error uplink_client_unsubscribe(uplink_client *c, int32_t world);

/* Snapshots. */

typedef struct uplink_object {
  uint16_t id;
  uint8_t generation;
} uplink_object;

/* uplink_objects lists objects of one type by ascending id. The row of object i begins at
 * rows[i * components]. ages contains the age of each object's state relative to the snapshot, in ticks,
 * or in snapshots if the objects come from an area decoder. It is null if all ages are 0, which is always
 * the case without areas. */
typedef struct uplink_objects {
  uint32_t struct_size;
  size_t n;
  size_t components;
  const uplink_object *objects;
  const int32_t *rows;
  const uint64_t *ages;
} uplink_objects;

typedef int32_t uplink_object_class;
enum {
  UPLINK_CLASS_NUMBER = 0,
  UPLINK_CLASS_ANGLE = 1,
  UPLINK_CLASS_QUAT = 2,
  UPLINK_CLASS_INTEGER = 3,
  UPLINK_CLASS_BYTES = 4
};

typedef struct uplink_object_field {
  uint32_t struct_size;
  uplink_object_class type;
  int32_t components;
  int32_t lo;
  int32_t hi;
} uplink_object_field;

typedef struct uplink_object_type uplink_object_type;

UPLINK_API uplink_error uplink_object_type_create(const uplink_allocator *a, const uplink_schema *s,
                                                  uplink_object_type **out);
/* uplink_object_type_of_fields creates a type without a schema. */
UPLINK_API uplink_error uplink_object_type_of_fields(const uplink_allocator *a,
                                                     const uplink_object_field *fields, size_t n,
                                                     uplink_object_type **out);
UPLINK_API void uplink_object_type_destroy(uplink_object_type *t);
UPLINK_API size_t uplink_object_type_components(const uplink_object_type *t);
UPLINK_API uplink_error uplink_object_type_restore(const uplink_object_type *t, const int32_t *row,
                                                   uplink_frame *f);

typedef struct uplink_snapshot_info {
  uint32_t struct_size;
  int32_t number;
  int32_t distance;
} uplink_snapshot_info;

typedef struct uplink_snapshot_decoder uplink_snapshot_decoder;
typedef struct uplink_area_decoder uplink_area_decoder;

/* max_objects 0 means the default. */
UPLINK_API uplink_error uplink_snapshot_decoder_create(const uplink_allocator *a, const uplink_object_type *t,
                                                       const uint8_t *initial, size_t n, size_t max_objects,
                                                       uplink_snapshot_decoder **out);
UPLINK_API void uplink_snapshot_decoder_destroy(uplink_snapshot_decoder *d);
UPLINK_API uplink_error uplink_snapshot_decoder_decode(uplink_snapshot_decoder *d, const uint8_t *payload,
                                                       size_t n, uplink_snapshot_info *info,
                                                       uplink_objects *objects);
/* to has room for UPLINK_MAX_ACK bytes. The result is the size of the ack. */
UPLINK_API size_t uplink_snapshot_decoder_ack(const uplink_snapshot_decoder *d, uint8_t *to);

UPLINK_API uplink_error uplink_area_decoder_create(const uplink_allocator *a,
                                                   const uplink_object_type *const *types, size_t n,
                                                   size_t max_objects, uplink_area_decoder **out);
UPLINK_API void uplink_area_decoder_destroy(uplink_area_decoder *d);
UPLINK_API uplink_error uplink_area_decoder_decode(uplink_area_decoder *d, const uint8_t *message, size_t n,
                                                   uplink_snapshot_info *info);
UPLINK_API void uplink_area_decoder_shown(const uplink_area_decoder *d, size_t type, uplink_objects *objects);
UPLINK_API size_t uplink_area_decoder_ack(const uplink_area_decoder *d, uint8_t *to);

typedef int32_t uplink_interpolation;
enum { UPLINK_LINEAR = 0, UPLINK_HERMITE = 1, UPLINK_NEAREST = 2 };

/* Zeros mean the defaults. */
typedef struct uplink_interpolator_config {
  uint32_t struct_size;
  uint64_t interval; /* ns */
  uplink_interpolation method;
  int32_t adaptive;     /* 0 or 1 */
  const char *position; /* names of fields; null: none */
  const char *velocity;
  const char *orientation;
  const char *teleports;
  const char *blended[8];
  uint64_t delay;
  uint64_t jitter;
  double loss;
  double late;
  uint64_t max_delay;
  uint64_t extrapolate;
  uint64_t gap;
} uplink_interpolator_config;

typedef struct uplink_pose {
  double position[3];
  double velocity[3];
  double orientation[4];
  uint32_t teleports;
  uint32_t reserved;
  double angles[4]; /* degrees */
  double numbers[8];
} uplink_pose;

typedef struct uplink_sample {
  uint32_t struct_size;
  int32_t starved;
  uint64_t time; /* server time in ns */
  uplink_objects objects;
  const uplink_pose *poses;
} uplink_sample;

typedef struct uplink_interpolator_stats {
  uint32_t struct_size;
  uint64_t added;
  uint64_t late;
  uint64_t duplicate;
  uint64_t restarts;
  uint64_t hitches;
  uint64_t starved;
  uint64_t delay;
} uplink_interpolator_stats;

/* The functions of smoother.hpp. Zeros of the configuration mean the defaults. */
typedef struct uplink_smoothing {
  uint32_t struct_size;
  double slow, fast;
  double small_error, large_error;
  double small_turn, large_turn;
  double snap;
} uplink_smoothing;

typedef struct uplink_smoother uplink_smoother;

/* After UPLINK_INVALID, *problem is the name of the member that is out of range; otherwise it is null. */
UPLINK_API uplink_error uplink_smoother_create(const uplink_allocator *a, const uplink_smoothing *s,
                                               const char **problem, uplink_smoother **out);
UPLINK_API void uplink_smoother_destroy(uplink_smoother *s);
UPLINK_API void uplink_smoother_correct(uplink_smoother *s, const uplink_pose *from, const uplink_pose *to);
UPLINK_API void uplink_smoother_reset(uplink_smoother *s);
UPLINK_API void uplink_smoother_step(uplink_smoother *s, double seconds);
/* The result is 1 if the error is zero, otherwise 0. */
UPLINK_API int32_t uplink_smoother_settled(const uplink_smoother *s);
UPLINK_API void uplink_smoother_drawn(const uplink_smoother *s, const uplink_pose *p, uplink_pose *drawn);

typedef struct uplink_interpolator uplink_interpolator;

/* The result is 1 if a field of the configuration does not exist or has the wrong kind: then to contains a
 * text that names it and the possible fields. Otherwise the result is 0. */
UPLINK_API int32_t uplink_interpolation_problem(const uplink_schema *s, const uplink_interpolator_config *c,
                                                char *to, size_t capacity);
UPLINK_API uplink_error uplink_interpolator_create(const uplink_allocator *a, const uplink_object_type *t,
                                                   const uplink_interpolator_config *c,
                                                   uplink_interpolator **out);
UPLINK_API void uplink_interpolator_destroy(uplink_interpolator *i);
UPLINK_API uplink_error uplink_interpolator_add(uplink_interpolator *i, uint64_t now, uint64_t time,
                                                const uplink_objects *objects);
/* The result is 1 if *s was set, 0 before the first snapshot. */
UPLINK_API int32_t uplink_interpolator_sample(uplink_interpolator *i, uint64_t now, uplink_sample *s);
UPLINK_API void uplink_interpolator_reset(uplink_interpolator *i);
UPLINK_API void uplink_interpolator_get_stats(const uplink_interpolator *i, uplink_interpolator_stats *s);

typedef struct uplink_snapshot {
  uint32_t struct_size;
  uint64_t tick;
  uint64_t received; /* ns */
} uplink_snapshot;

typedef struct uplink_snapshot_world uplink_snapshot_world;

/* interpolation is null, or contains n configurations, which may be null. The first type is the type of
 * the world. */
UPLINK_API uplink_error uplink_snapshot_world_create(const uplink_allocator *a,
                                                     const uplink_schema *const *types,
                                                     const uplink_interpolator_config *const *interpolation,
                                                     size_t n, size_t max_objects,
                                                     uplink_snapshot_world **out);
UPLINK_API void uplink_snapshot_world_destroy(uplink_snapshot_world *w);
/* The result is the same world, for the functions of all worlds. */
UPLINK_API uplink_world *uplink_snapshot_world_base(uplink_snapshot_world *w);
/* The result is 0 before the first snapshot of a session, otherwise 1. */
UPLINK_API int32_t uplink_snapshot_world_newest(const uplink_snapshot_world *w, uplink_snapshot *s);
UPLINK_API void uplink_snapshot_world_objects(const uplink_snapshot_world *w, size_t type,
                                              uplink_objects *objects);
UPLINK_API uplink_error uplink_snapshot_world_restore(const uplink_snapshot_world *w, size_t type,
                                                      const int32_t *row, uplink_frame *f);
/* The result is 1 if *s was set, 0 before the first snapshot. */
UPLINK_API int32_t uplink_snapshot_world_sample(uplink_snapshot_world *w, size_t type, uint64_t now,
                                                uplink_sample *s);
UPLINK_API void uplink_snapshot_world_interpolation(const uplink_snapshot_world *w, size_t type,
                                                    uplink_interpolator_stats *s);

#ifdef __cplusplus
}
#endif

#endif
