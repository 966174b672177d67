/* State synchronization and client-side prediction for C. The functions are those of uplink/state.hpp,
 * state_world.hpp and predict.hpp, whose comments state units, ranges and how long results are valid. */
#ifndef UPLINK_STATE_H
#define UPLINK_STATE_H

#include "uplink/uplink_worlds.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Zeros mean the defaults. */
typedef struct uplink_state_config {
  uint32_t struct_size;
  int32_t objects;
  int32_t updates;
  int32_t input_bytes;
  const char *rest; /* name of a field; null: none */
} uplink_state_config;

typedef struct uplink_state_update {
  uint32_t struct_size;
  uint64_t number;
  int64_t tick;
  size_t objects;
  size_t inputs;
  int32_t late;  /* 0 or 1 */
  int32_t first; /* 0 or 1 */
} uplink_state_update;

typedef struct uplink_state_object {
  uint32_t struct_size;
  int32_t id;
  int32_t generation;
  int32_t removed;           /* 0 or 1 */
  const int32_t *components; /* null if it was removed */
} uplink_state_object;

typedef struct uplink_tick_inputs {
  uint32_t struct_size;
  int32_t missing; /* 0 or 1 */
  int64_t tick;
  const uint8_t *data; /* inputs of all players, see uplink_next_input */
  size_t size;
} uplink_tick_inputs;

typedef struct uplink_state_stats {
  uint32_t struct_size;
  uint64_t packets;
  uint64_t reordered;
  uint64_t duplicate;
  uint64_t late;
  uint64_t no_baseline;
  uint64_t desync;
  uint64_t malformed;
  uint64_t full;
  uint64_t lost;
} uplink_state_stats;

typedef struct uplink_state_receiver uplink_state_receiver;

UPLINK_API uplink_error uplink_state_receiver_create(const uplink_allocator *a, const uplink_schema *objects,
                                                     const uplink_state_config *c,
                                                     uplink_state_receiver **out);
UPLINK_API void uplink_state_receiver_destroy(uplink_state_receiver *r);
UPLINK_API uplink_error uplink_state_receiver_receive(uplink_state_receiver *r, const uint8_t *packet,
                                                      size_t n, uplink_state_update *u);
UPLINK_API void uplink_state_receiver_object(const uplink_state_receiver *r, size_t i,
                                             uplink_state_object *o);
UPLINK_API uplink_error uplink_state_receiver_get(const uplink_state_receiver *r, size_t i, uplink_frame *f);
UPLINK_API void uplink_state_receiver_inputs(const uplink_state_receiver *r, size_t i, uplink_tick_inputs *t);
/* to has room for UPLINK_MAX_ACK bytes. The result is the size of the ack. */
UPLINK_API size_t uplink_state_receiver_ack(const uplink_state_receiver *r, uint8_t *to);
UPLINK_API void uplink_state_receiver_stats(const uplink_state_receiver *r, uplink_state_stats *s);
UPLINK_API void uplink_state_receiver_reset(uplink_state_receiver *r);

/* uplink_next_input removes the first input of a tick. The result is 1 if there was one, otherwise 0. */
UPLINK_API int32_t uplink_next_input(uplink_tick_inputs *t, int32_t *player, const uint8_t **data, size_t *n);

/* A world of the client. */

typedef struct uplink_state_world uplink_state_world;

/* uplink_state_updated is called in uplink_client_receive for each decoded packet. It must not call the
 * client. */
typedef void (*uplink_state_updated)(void *context, const uplink_state_world *w,
                                     const uplink_state_update *u);

UPLINK_API uplink_error uplink_state_world_create(const uplink_allocator *a, const uplink_schema *objects,
                                                  const uplink_state_config *c, uplink_state_updated updated,
                                                  void *context, uplink_state_world **out);
UPLINK_API void uplink_state_world_destroy(uplink_state_world *w);
/* The result is the same world, for the functions of all worlds. */
UPLINK_API uplink_world *uplink_state_world_base(uplink_state_world *w);
/* The receiver belongs to the world. */
UPLINK_API const uplink_state_receiver *uplink_state_world_receiver(const uplink_state_world *w);
/* Prediction. */

/* uplink_input_history tracks the sequence numbers of the inputs that the server has not processed. The
 * program stores the inputs and the states:
 *
 *   uplink_input_history_apply(h, sequence, &slot); inputs[slot] = input; step(&state, &input);
 *
 *   if (uplink_input_history_correct(h, processed)) {
 *     before = state, state = state of the server;
 *     for (i = 0; i < uplink_input_history_waiting(h); i++)
 *       step(&state, &inputs[uplink_input_history_slot(h, i)]);
 *     if (uplink_input_history_corrected(h, distance(&before, &state))) smooth(&before, &state);
 *   }
 */
typedef struct uplink_input_history uplink_input_history;

typedef struct uplink_prediction_stats {
  uint32_t struct_size;
  uint64_t inputs;
  uint64_t replayed;
  uint64_t states;
  uint64_t late;
  uint64_t corrections;
  double sum;
  double largest;
  uint64_t dropped;
} uplink_prediction_stats;

/* max_inputs is the number of slots, 1 to 65,536. */
UPLINK_API uplink_error uplink_input_history_create(const uplink_allocator *a, int32_t max_inputs,
                                                    double tolerance, uplink_input_history **out);
UPLINK_API void uplink_input_history_destroy(uplink_input_history *h);
UPLINK_API uplink_error uplink_input_history_apply(uplink_input_history *h, uint64_t sequence, size_t *slot);
/* The result is 1 if the program should use the state, otherwise 0. */
UPLINK_API int32_t uplink_input_history_correct(uplink_input_history *h, uint64_t processed);
UPLINK_API size_t uplink_input_history_waiting(const uplink_input_history *h);
UPLINK_API size_t uplink_input_history_slot(const uplink_input_history *h, size_t i);
/* The result is 1 if the distance exceeds the tolerance, otherwise 0. */
UPLINK_API int32_t uplink_input_history_corrected(uplink_input_history *h, double distance);
UPLINK_API void uplink_input_history_reset(uplink_input_history *h);
UPLINK_API void uplink_input_history_stats(const uplink_input_history *h, uplink_prediction_stats *s);

#ifdef __cplusplus
}
#endif

#endif
