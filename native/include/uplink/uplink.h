/* The codec of RPCs for C, and for every language that calls C. The functions are those of
 * uplink/codec.hpp, whose comments have units, ranges and rules for threads.
 *
 * Functions that can fail return an uplink_error. Handles are created by _create, end by _destroy,
 * and may be null there. Structures begin with zeros: `uplink_field f = {0};` */
#ifndef UPLINK_UPLINK_H
#define UPLINK_UPLINK_H

#include <stddef.h>
#include <stdint.h>

#if defined(UPLINK_SHARED) && defined(_WIN32)
#define UPLINK_API __declspec(dllexport)
#elif defined(__GNUC__)
#define UPLINK_API __attribute__((visibility("default")))
#else
#define UPLINK_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define UPLINK_VERSION_MAJOR 0
#define UPLINK_VERSION_MINOR 1
#define UPLINK_VERSION_PATCH 0

typedef int32_t uplink_error;
enum {
  UPLINK_OK = 0,
  UPLINK_NO_MEMORY = 1,       /* the allocator returned null */
  UPLINK_INVALID = 2,         /* an argument, a schema or a configuration is not valid */
  UPLINK_TOO_SMALL = 3,       /* the buffer is too small */
  UPLINK_MALFORMED = 4,       /* bytes that no correct implementation sends */
  UPLINK_NO_BASELINE = 5,     /* the payload refers to a call that is not known here */
  UPLINK_DUPLICATE = 6,       /* the payload was decoded before */
  UPLINK_STALE = 7,           /* the payload is late */
  UPLINK_FULL = 8,            /* a fixed limit is reached */
  UPLINK_CLOSED = 9,          /* the session has ended */
  UPLINK_REFUSED = 10,        /* the peer refused */
  UPLINK_AUTHENTICATION = 11, /* a token, a key or a tag is wrong */
  UPLINK_DESYNC = 12          /* the payload was coded from another state */
};

/* uplink_error_text returns a description in English. It is never null. */
UPLINK_API const char *uplink_error_text(uplink_error e);

/* uplink_version returns the version of the library as "major.minor.patch". */
UPLINK_API const char *uplink_version(void);

/* uplink_allocator is where memory comes from. Null, or a null allocate, means malloc and free. */
typedef struct uplink_allocator {
  void *context;
  void *(*allocate)(void *context, size_t size);
  void (*release)(void *context, void *memory);
} uplink_allocator;

typedef int32_t uplink_kind;
enum {
  UPLINK_VEC2 = 0,
  UPLINK_VEC3 = 1,
  UPLINK_SCALAR = 2,
  UPLINK_ANGLE = 3,
  UPLINK_QUAT = 4,
  UPLINK_UNITVEC = 5,
  UPLINK_UINT = 6,
  UPLINK_INT = 7,
  UPLINK_BITS = 8,
  UPLINK_BOOL = 9,
  UPLINK_FIXED = 10,
  UPLINK_BYTES = 11
};

typedef struct uplink_field {
  const char *name;
  uplink_kind kind;
  int32_t count;     /* 0 means 1 */
  double resolution; /* of vec2, vec3, scalar */
  int32_t bits;      /* of angle, quat, unitvec; 0 means the default */
  int32_t width;     /* of uint, int, bits */
  int32_t size;      /* of fixed and bytes */
  int32_t has_min;   /* 0 or 1 */
  int32_t has_max;
  double min;
  double max;
  const char *velocity;  /* null: none */
  double velocity_scale; /* 0 means 1 */
} uplink_field;

typedef struct uplink_schema uplink_schema;
typedef struct uplink_frame uplink_frame;
typedef struct uplink_prior uplink_prior;
typedef struct uplink_encoder uplink_encoder;
typedef struct uplink_decoder uplink_decoder;

/* uplink_schema_create: *field is the index of a field that is not valid, or n; it may be null. */
UPLINK_API uplink_error uplink_schema_create(const uplink_allocator *a, const char *rpc, double rate_hz,
                                             const uplink_field *fields, size_t n, uplink_schema **out,
                                             size_t *field);
UPLINK_API void uplink_schema_destroy(uplink_schema *s);
UPLINK_API size_t uplink_schema_components(const uplink_schema *s);
UPLINK_API uint64_t uplink_schema_fingerprint(const uplink_schema *s);
UPLINK_API uint16_t uplink_schema_field_hash(const uplink_schema *s, size_t field);
UPLINK_API size_t uplink_schema_description(const uplink_schema *s, size_t field, char *to, size_t capacity);
UPLINK_API size_t uplink_schema_velocity_factors(const uplink_schema *s);
UPLINK_API int64_t uplink_schema_velocity_factor(const uplink_schema *s, size_t i);
UPLINK_API uplink_error uplink_schema_set_velocity_factors(uplink_schema *s, const int64_t *factors,
                                                           size_t n);

UPLINK_API uplink_error uplink_frame_create(const uplink_allocator *a, const uplink_schema *s,
                                            uplink_frame **out);
UPLINK_API void uplink_frame_destroy(uplink_frame *f);
UPLINK_API uplink_error uplink_frame_set(uplink_frame *f, size_t field, const double *values, size_t n);
UPLINK_API uplink_error uplink_frame_set_integers(uplink_frame *f, size_t field, const uint64_t *values,
                                                  size_t n);
UPLINK_API uplink_error uplink_frame_set_bytes(uplink_frame *f, size_t field, const uint8_t *data, size_t n);
UPLINK_API uplink_error uplink_frame_get(const uplink_frame *f, size_t field, double *values, size_t n);
UPLINK_API uplink_error uplink_frame_get_integers(const uplink_frame *f, size_t field, uint64_t *values,
                                                  size_t n);
/* uplink_frame_get_bytes: *data points into the frame. */
UPLINK_API uplink_error uplink_frame_get_bytes(const uplink_frame *f, size_t field, const uint8_t **data,
                                               size_t *n);
UPLINK_API const int32_t *uplink_frame_components(const uplink_frame *f);
UPLINK_API uplink_error uplink_frame_set_components(uplink_frame *f, const int32_t *components, size_t n);

UPLINK_API uplink_error uplink_prior_create(const uplink_allocator *a, const uint8_t *file, size_t n,
                                            uplink_prior **out);
UPLINK_API void uplink_prior_destroy(uplink_prior *p);
/* uplink_prior_hash of null is that of the built-in prior. */
UPLINK_API uint64_t uplink_prior_hash(const uplink_prior *p);

typedef int32_t uplink_codec;
enum { UPLINK_RLE = 0, UPLINK_ADAPTIVE = 1 };

/* Zeros mean the defaults, but for the codec. */
typedef struct uplink_encoder_config {
  uplink_codec codec;
  int32_t rpc;
  int32_t ring;      /* default 64 */
  int32_t peer_ring; /* default 64 */
  int32_t copies;
  int32_t reliable;          /* 0 or 1 */
  int32_t max_payload;       /* default 1197 */
  const uplink_prior *prior; /* null: the built-in one */
} uplink_encoder_config;

UPLINK_API uplink_error uplink_encoder_create(const uplink_allocator *a, const uplink_schema *s,
                                              const uplink_encoder_config *c, uplink_encoder **out);
UPLINK_API void uplink_encoder_destroy(uplink_encoder *e);
UPLINK_API uplink_error uplink_encoder_encode(uplink_encoder *e, const uplink_frame *f, uint8_t *to,
                                              size_t capacity, size_t *size);
UPLINK_API uplink_error uplink_encoder_hold(uplink_encoder *e, const uplink_frame *f);
UPLINK_API uplink_error uplink_encoder_flush(uplink_encoder *e, uint8_t *to, size_t capacity, size_t *size);
UPLINK_API size_t uplink_encoder_waiting(const uplink_encoder *e);
UPLINK_API uplink_error uplink_encoder_ack(uplink_encoder *e, const uint8_t *data, size_t n, size_t *used);
UPLINK_API uint64_t uplink_encoder_next(const uplink_encoder *e);

typedef struct uplink_decoder_config {
  uplink_codec codec;
  int32_t rpc;
  int32_t ring;
  int32_t peer_ring;
  int32_t reliable;
  const uplink_prior *prior;
} uplink_decoder_config;

typedef struct uplink_call {
  uint64_t sequence;
  uint64_t missed;           /* calls before it that did not arrive */
  const uplink_frame *frame; /* valid until the next decode */
} uplink_call;

#define UPLINK_MAX_CALLS 16
#define UPLINK_MAX_ACK 15

UPLINK_API uplink_error uplink_decoder_create(const uplink_allocator *a, const uplink_schema *s,
                                              const uplink_decoder_config *c, uplink_decoder **out);
UPLINK_API void uplink_decoder_destroy(uplink_decoder *d);
/* uplink_decoder_decode: calls has room for UPLINK_MAX_CALLS; *count is the number of new ones. */
UPLINK_API uplink_error uplink_decoder_decode(uplink_decoder *d, const uint8_t *payload, size_t n,
                                              uplink_call *calls, size_t *count);
/* uplink_decoder_ack: to has room for UPLINK_MAX_ACK bytes; the result is the size. */
UPLINK_API size_t uplink_decoder_ack(const uplink_decoder *d, uint8_t *to);
UPLINK_API void uplink_decoder_ask_reset(uplink_decoder *d);

/* uplink_rpc_of returns the number of the RPC of a payload, or -1 if it has no valid header. */
UPLINK_API int32_t uplink_rpc_of(const uint8_t *payload, size_t n);

#ifdef __cplusplus
}
#endif

#endif
