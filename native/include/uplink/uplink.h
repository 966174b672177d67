/* The C interface of uplink, for C and all languages that can call C: the codec of RPCs, and the client
 * if the library was built with it. The functions are those of uplink/codec.hpp and uplink/client.hpp,
 * whose comments state units, ranges and rules for threads.
 *
 * Functions that can fail return an uplink_error. Handles are created by _create, end by _destroy,
 * and may be null there.
 *
 * Structures begin with struct_size, so that a program that was built with an older header works with a
 * newer library. UPLINK_INIT sets all other members to 0, which is their default. A structure without its
 * size is UPLINK_INVALID; functions without a result do nothing. Of an array the first structure has the
 * size of all. Structures without the member never change. */
#ifndef UPLINK_UPLINK_H
#define UPLINK_UPLINK_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Define UPLINK_SHARED if the program links the shared library. UPLINK_BUILDING is defined while the
 * shared library itself is compiled. */
#if defined(UPLINK_SHARED) && defined(_WIN32) && defined(UPLINK_BUILDING)
#define UPLINK_API __declspec(dllexport)
#elif defined(UPLINK_SHARED) && defined(_WIN32)
#define UPLINK_API __declspec(dllimport)
#elif defined(__EMSCRIPTEN__)
#define UPLINK_API __attribute__((used, visibility("default"))) /* exported to JavaScript */
#elif defined(__GNUC__) && !defined(_WIN32)
#define UPLINK_API __attribute__((visibility("default")))
#else
#define UPLINK_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* UPLINK_INIT sets a structure to zeros and its struct_size. UPLINK_INIT_ARRAY does the same for an array of
 * structures. */
#define UPLINK_INIT(structure)                                                                               \
  (memset(&(structure), 0, sizeof(structure)), (void)((structure).struct_size = sizeof(structure)))
#define UPLINK_INIT_ARRAY(array)                                                                             \
  (memset((array), 0, sizeof(array)), (void)((array)[0].struct_size = sizeof((array)[0])))

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
  UPLINK_NO_BASELINE = 5,     /* the payload refers to a call that this end does not have */
  UPLINK_DUPLICATE = 6,       /* the payload was decoded before */
  UPLINK_STALE = 7,           /* the payload is late */
  UPLINK_FULL = 8,            /* a limit is reached */
  UPLINK_CLOSED = 9,          /* the session has ended */
  UPLINK_REFUSED = 10,        /* the peer refused */
  UPLINK_AUTHENTICATION = 11, /* a token, a key or a tag is wrong */
  UPLINK_DESYNC = 12,         /* the peer's state differs from this one */
  UPLINK_BACKLOG = 13,        /* too much reliable data waits, see uplink_client_reliable_room */
  UPLINK_TOO_FAST = 14,       /* the client would send more in a second than the server accepts */
  UPLINK_UNBOUND = 15         /* the RPC is not bound in the session yet: wait for UPLINK_BOUND */
};

/* uplink_error_text returns a description in English. It is never null. */
UPLINK_API const char *uplink_error_text(uplink_error e);

/* uplink_version returns the version of the library as "major.minor.patch". */
UPLINK_API const char *uplink_version(void);

/* uplink_allocator provides memory. Null, or a null allocate, means malloc and free. A null release means
 * that blocks are not released individually. */
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
  uint32_t struct_size;
  const char *name;
  uplink_kind kind;
  int32_t count;     /* 0 means 1 */
  double resolution; /* for vec2, vec3, scalar */
  int32_t bits;      /* for angle, quat, unitvec; 0 means the default */
  int32_t width;     /* for uint, int, bits */
  int32_t size;      /* for fixed and bytes */
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

/* After UPLINK_INVALID, *field is the index of the invalid field, or n if it is the schema. field may be
 * null. */
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
/* *data points to memory of the frame. */
UPLINK_API uplink_error uplink_frame_get_bytes(const uplink_frame *f, size_t field, const uint8_t **data,
                                               size_t *n);
UPLINK_API const int32_t *uplink_frame_components(const uplink_frame *f);
UPLINK_API uplink_error uplink_frame_set_components(uplink_frame *f, const int32_t *components, size_t n);

UPLINK_API uplink_error uplink_prior_create(const uplink_allocator *a, const uint8_t *file, size_t n,
                                            uplink_prior **out);
UPLINK_API void uplink_prior_destroy(uplink_prior *p);
/* uplink_prior_hash returns the hash of a prior; null means the built-in one. */
UPLINK_API uint64_t uplink_prior_hash(const uplink_prior *p);

typedef int32_t uplink_codec;
enum { UPLINK_RLE = 0, UPLINK_ADAPTIVE = 1 };

/* Zeros mean the defaults, except that the codec 0 is UPLINK_RLE. */
typedef struct uplink_encoder_config {
  uint32_t struct_size;
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
  uint32_t struct_size;
  uplink_codec codec;
  int32_t rpc;
  int32_t ring;
  int32_t peer_ring;
  int32_t reliable;
  int32_t deliver_late; /* 0 or 1 */
  const uplink_prior *prior;
} uplink_decoder_config;

typedef struct uplink_call {
  uint32_t struct_size;
  int32_t late; /* 0 or 1 */
  uint64_t sequence;
  uint64_t missed;           /* missing calls before this one */
  const uplink_frame *frame; /* valid until the next decode */
} uplink_call;

#define UPLINK_MAX_CALLS 16
#define UPLINK_MAX_ACK 15

UPLINK_API uplink_error uplink_decoder_create(const uplink_allocator *a, const uplink_schema *s,
                                              const uplink_decoder_config *c, uplink_decoder **out);
UPLINK_API void uplink_decoder_destroy(uplink_decoder *d);
/* calls has room for UPLINK_MAX_CALLS calls; *count is the number of new ones. */
UPLINK_API uplink_error uplink_decoder_decode(uplink_decoder *d, const uint8_t *payload, size_t n,
                                              uplink_call *calls, size_t *count);
/* to has room for UPLINK_MAX_ACK bytes. uplink_decoder_ack returns the size of the ack. */
UPLINK_API size_t uplink_decoder_ack(const uplink_decoder *d, uint8_t *to);
UPLINK_API void uplink_decoder_ask_reset(uplink_decoder *d);

/* uplink_rpc_of returns the number of the RPC of a payload, or -1 if it has no valid header. */
UPLINK_API int32_t uplink_rpc_of(const uint8_t *payload, size_t n);

/* The cryptographic functions of a client. */

typedef struct uplink_bytes {
  const uint8_t *data;
  size_t size;
} uplink_bytes;

/* uplink_crypto contains the functions of crypto.hpp, which states the sizes of their arguments. Results are
 * 1, or 0 after a failure. The functions for AES are null if AES is not supported. */
typedef struct uplink_crypto {
  uint32_t struct_size;
  void *context;
  int32_t (*x25519)(void *context, uint8_t *out, const uint8_t *private_key, const uint8_t *public_key);
  void (*chacha20)(void *context, uint8_t *data, size_t size, const uint8_t *key, const uint8_t *nonce,
                   uint32_t block);
  void (*poly1305)(void *context, uint8_t *tag, const uint8_t *key, const uplink_bytes *parts, size_t n);
  void (*sha256)(void *context, uint8_t *hash, const uplink_bytes *parts, size_t n);
  int32_t (*random)(void *context, uint8_t *out, size_t size);
  int32_t (*aes128_gcm_seal)(void *context, uint8_t *data, size_t size, uint8_t *tag, const uint8_t *key,
                             const uint8_t *nonce, uplink_bytes associated);
  int32_t (*aes128_gcm_open)(void *context, uint8_t *data, size_t size, const uint8_t *tag,
                             const uint8_t *key, const uint8_t *nonce, uplink_bytes associated);
  int32_t (*aes128_ctr)(void *context, uint8_t *data, size_t size, const uint8_t *key, const uint8_t *block);
} uplink_crypto;

/* uplink_library_crypto returns the functions of libsodium or Mbed TLS, for which the library was built. It
 * returns null if the library was built without them: then the program must provide its own. */
UPLINK_API const uplink_crypto *uplink_library_crypto(void);

/* The client. Times are nanoseconds of a monotonic clock. */

typedef struct uplink_client uplink_client;

typedef int32_t uplink_log_level;
enum { UPLINK_LOG_DEBUG = 0, UPLINK_LOG_INFO = 1, UPLINK_LOG_WARNING = 2 };

/* uplink_log gets lines of text, without line feed, in functions of the client: it must not call the client.
 */
typedef struct uplink_log {
  uint32_t struct_size;
  void *context;
  void (*write)(void *context, uplink_log_level level, const char *text);
} uplink_log;

/* Zeros mean the defaults. crypto is required. */
typedef struct uplink_client_config {
  uint32_t struct_size;
  const uplink_log *log; /* each event when it is polled, attempts to connect, and datagrams that are dropped;
                          * it must outlive the client; null: no log */
  const uplink_crypto *crypto; /* for example uplink_library_crypto(); it must outlive the client */
  uint64_t timeout;            /* ns; default 15 s */
  size_t event_bytes;          /* default 18,944 */
  size_t datagram_bytes;       /* default 3,072 */
  int32_t offered;             /* suites that the client offers, bit i for suite i */
  int32_t bindings;            /* default 8 */
  int32_t handlers;            /* RPCs that the server can call */
  int32_t reliable_queue;      /* maximum size of waiting reliable data in bytes; default 262,144 */
  int32_t streams;             /* 0 or 1 */
  int32_t stream_rate;         /* bytes a second; default 262,144 */
  int32_t worlds;              /* maximum number of subscriptions to worlds */
  /* The server may hand the client over to public addresses. Loopback, private and link-local addresses
   * are accepted only if the server itself has an address of the same kind, or if local_handovers is 1.
   * server is the address of the server of uplink_client_connect, such as 127.0.0.1:7777, or null. */
  int32_t local_handovers;
  const char *server;
} uplink_client_config;

typedef struct uplink_bind_config {
  uint32_t struct_size;
  uplink_codec codec;
  int32_t reliable; /* 0 or 1 */
  int32_t ring;     /* default 64 */
  int32_t copies;
  int32_t batch;
  const uplink_prior *prior; /* null: the built-in one */
} uplink_bind_config;

typedef int32_t uplink_event_type;
enum {
  UPLINK_CONNECTED = 0,
  UPLINK_RECONNECTING = 1,
  UPLINK_DISCONNECTED = 2,
  UPLINK_BOUND = 3,
  UPLINK_BIND_FAILED = 4,
  UPLINK_MESSAGE = 5,
  UPLINK_ANSWER = 6,
  UPLINK_SHUTDOWN = 7,
  UPLINK_HANDOVER = 8,
  UPLINK_WORLD = 9,
  UPLINK_QUALITY = 10,
  UPLINK_NEW_SOCKET = 11,
  UPLINK_SERVER_CALL = 12,
  UPLINK_STREAM_OPEN = 13,
  UPLINK_STREAM_DATA = 14,
  UPLINK_STREAM_END = 15,
  UPLINK_STREAM_ABORTED = 16,
  UPLINK_STREAM_DONE = 17,
  UPLINK_WORLD_UPDATE = 18,
  UPLINK_TICK_MESSAGE = 19,
  UPLINK_SILENT = 20,
  UPLINK_MISMATCH = 21,
  UPLINK_TICK_RATE = 22
};

/* Statuses of UPLINK_WORLD, UPLINK_HANDOVER, UPLINK_ANSWER and UPLINK_STREAM_DONE: see client.hpp. */
enum {
  UPLINK_WORLD_RECEIVED = 0,
  UPLINK_WORLD_REFUSED = 1,
  UPLINK_WORLD_ENDED = 2,
  UPLINK_WORLD_PARTIAL = 3,
  UPLINK_HANDOVER_BEGINS = 0,
  UPLINK_HANDOVER_SWITCHED = 1,
  UPLINK_HANDOVER_STAYS = 2,
  UPLINK_ANSWERED = 2,
  UPLINK_ANSWER_REFUSED = 3,
  UPLINK_ANSWER_UNHANDLED = 4,
  UPLINK_ANSWER_NONE = 5,
  UPLINK_STREAM_READ = 0,
  UPLINK_STREAM_STOPPED = 1,
  UPLINK_STREAM_UNREAD = 2
};

/* An IP address and a UDP port. IPv4 uses the first 4 bytes of ip. */
typedef struct uplink_address {
  int32_t family; /* 4 or 6; 0 means the server of uplink_client_connect */
  int32_t port;
  uint8_t ip[16];
} uplink_address;

/* frame and data are valid until the next call of a function of the client. */
typedef struct uplink_event {
  uint32_t struct_size;
  uplink_event_type type;
  int32_t reason; /* see uplink_reason_text */
  int32_t reliable;
  int32_t status;
  int32_t rpc;
  int32_t world;
  uint64_t value;
  uint64_t missed;
  const uplink_frame *frame;
  const uint8_t *data;
  size_t size;
} uplink_event;

typedef struct uplink_stats {
  uint32_t struct_size;
  uint64_t rtt;
  uint64_t min_rtt;
  uint64_t sent;
  uint64_t sent_bytes;
  uint64_t received;
  uint64_t dropped;
  uint64_t missing;
  uint64_t calls;
  uint64_t acks;
  uint64_t server_calls;
  uint64_t server_calls_dropped;
  int32_t suite;
  int32_t datagram_size;
  uint64_t path_rate;
  uint64_t path_queue;
} uplink_stats;

/* uplink_pace is the state of an RPC's jitter buffer at the server, and the rate at which to call the
 * RPC. */
typedef struct uplink_pace {
  uint32_t struct_size;
  double rate;
  int64_t slack;   /* ns */
  uint64_t target; /* ns */
  uint64_t missing;
  uint64_t late;
} uplink_pace;

/* uplink_reason_text returns a description in English. It is never null. */
UPLINK_API const char *uplink_reason_text(int32_t reason);
/* uplink_status_text returns a description of the status of an event, empty if its type has none. */
UPLINK_API const char *uplink_status_text(uplink_event_type type, int32_t status);
/* uplink_event_text writes what happened, in English, with a final zero, and returns the length of what fits.
 */
UPLINK_API size_t uplink_event_text(const uplink_event *e, char *to, size_t capacity);

UPLINK_API uplink_error uplink_client_create(const uplink_allocator *a, const uplink_client_config *c,
                                             uplink_client **out);
UPLINK_API void uplink_client_destroy(uplink_client *c);
/* uplink_client_bind binds an RPC, and stores its number in *rpc. */
UPLINK_API uplink_error uplink_client_bind(uplink_client *c, const uplink_schema *s,
                                           const uplink_bind_config *b, int32_t *rpc);
UPLINK_API uplink_error uplink_client_handle(uplink_client *c, const uplink_schema *s, int32_t *handler);
UPLINK_API uplink_error uplink_client_connect(uplink_client *c, const char *token, size_t n, uint64_t now);
/* server is an IP address with a port, such as 127.0.0.1:7777. */
UPLINK_API uplink_error uplink_client_assign(uplink_client *c, const char *server, const char *token,
                                             size_t n, uint64_t now);
UPLINK_API void uplink_client_close(uplink_client *c, int32_t code, uint64_t now);
UPLINK_API int32_t uplink_client_connected(const uplink_client *c);
UPLINK_API void uplink_client_receive(uplink_client *c, const uint8_t *data, size_t n, uint64_t now);
/* uplink_client_receive_at is for a datagram that arrived before now. */
UPLINK_API void uplink_client_receive_at(uplink_client *c, const uint8_t *data, size_t n, uint64_t arrived,
                                         uint64_t now);
/* uplink_client_next_datagram returns the size of the datagram, or 0. to has room for 1,200 or 1,472
 * bytes. *server is the destination. */
UPLINK_API size_t uplink_client_next_datagram(uplink_client *c, uint8_t *to, size_t capacity,
                                              uplink_address *server, uint64_t now);
/* uplink_client_uses returns 1 if there is a session with a server, otherwise 0. */
UPLINK_API int32_t uplink_client_uses(const uplink_client *c, const uplink_address *server);
UPLINK_API uint64_t uplink_client_next_timeout(const uplink_client *c);
UPLINK_API void uplink_client_unreachable(uplink_client *c, const uplink_address *server, uint64_t now);
UPLINK_API void uplink_client_rebind(uplink_client *c, uint64_t now);
/* uplink_client_poll_event returns 1 if there was an event, otherwise 0. */
UPLINK_API int32_t uplink_client_poll_event(uplink_client *c, uplink_event *e);
UPLINK_API uplink_error uplink_client_call(uplink_client *c, int32_t rpc, const uplink_frame *f,
                                           uint64_t now);
/* uplink_client_next_call returns 1 if an RPC is bound, otherwise 0. */
UPLINK_API int32_t uplink_client_next_call(const uplink_client *c, int32_t rpc, uint64_t *session,
                                           uint64_t *sequence);
UPLINK_API void uplink_client_pace(const uplink_client *c, int32_t rpc, uint64_t now, uplink_pace *p);
UPLINK_API uplink_error uplink_client_send(uplink_client *c, const uint8_t *data, size_t n, int32_t reliable,
                                           uint64_t now);
/* uplink_client_reliable_room returns the size of the largest reliable message or request that can be sent
 * now, at most 8,192 bytes. */
UPLINK_API size_t uplink_client_reliable_room(const uplink_client *c, uint64_t now);
UPLINK_API uplink_error uplink_client_request(uplink_client *c, const uint8_t *data, size_t n, uint32_t *id,
                                              uint64_t now);
UPLINK_API uplink_error uplink_client_cancel(uplink_client *c, uint32_t id);
UPLINK_API uplink_error uplink_client_open_stream(uplink_client *c, const char *name, uint32_t *stream,
                                                  uint64_t now);
UPLINK_API uplink_error uplink_client_write_stream(uplink_client *c, uint32_t stream, const uint8_t *data,
                                                   size_t n, size_t *written, uint64_t now);
UPLINK_API uplink_error uplink_client_end_stream(uplink_client *c, uint32_t stream);
UPLINK_API uplink_error uplink_client_abort_stream(uplink_client *c, uint32_t stream, const char *reason);
UPLINK_API uplink_error uplink_client_stop_stream(uplink_client *c, uint32_t stream);
UPLINK_API void uplink_client_stats(const uplink_client *c, uplink_stats *s);

/* Sockets, for programs without sockets of their own. */

typedef struct uplink_socket uplink_socket;

/* uplink_now returns the time of a monotonic clock, in ns. */
UPLINK_API uint64_t uplink_now(void);
UPLINK_API uplink_error uplink_socket_create(const uplink_allocator *a, uplink_socket **out);
UPLINK_API void uplink_socket_destroy(uplink_socket *s);
/* uplink_socket_open closes all open sockets of s, and opens a socket for the server of
 * uplink_client_connect. server is its IP address with a port. */
UPLINK_API uplink_error uplink_socket_open(uplink_socket *s, const char *server);
/* uplink_socket_run passes all received datagrams to a client, and sends its datagrams. It does not wait. */
UPLINK_API void uplink_socket_run(uplink_socket *s, uplink_client *c);
/* uplink_socket_wait waits up to ns nanoseconds for a datagram to receive. */
UPLINK_API void uplink_socket_wait(uplink_socket *s, uint64_t ns);
/* uplink_socket_start starts a thread that notes when datagrams arrive, and does the work of
 * uplink_socket_run between uplink_socket_release and the next uplink_socket_run: see Socket in socket.hpp.
 * The client must outlive the socket, or uplink_socket_stop. */
UPLINK_API uplink_error uplink_socket_start(uplink_socket *s, const uplink_allocator *a, uplink_client *c);
UPLINK_API void uplink_socket_stop(uplink_socket *s);
UPLINK_API void uplink_socket_release(uplink_socket *s);

/* uplink_link_conditions are those of one direction of a simulated link. */
typedef struct uplink_link_conditions {
  uint32_t struct_size;
  double loss; /* shares from 0 to 1 */
  double duplicate;
  uint64_t delay;  /* ns */
  uint64_t jitter; /* ns */
  uint64_t seed;
} uplink_link_conditions;

/* uplink_socket_simulate lets datagrams pass simulated links from now on. Call it before
 * uplink_socket_start. */
UPLINK_API uplink_error uplink_socket_simulate(uplink_socket *s, const uplink_allocator *a,
                                               const uplink_link_conditions *to_server,
                                               const uplink_link_conditions *from_server);

/* uplink_issue_token writes the text of a token, with a final zero, which has at most UPLINK_TOKEN_TEXT
 * bytes. The token is valid for one minute from issued, in ms since 1970-01-01 00:00 UTC. key is the text
 * of a server's or an issuer's key; null means the development key, which servers accept on loopback
 * addresses. address is the address of the server, with its port. The function is for tests and tools: a
 * game's client gets its token from a backend. */
#define UPLINK_TOKEN_TEXT 779
UPLINK_API uplink_error uplink_issue_token(const uplink_crypto *crypto, const char *key, uint64_t client_id,
                                           uint64_t issued, const char *address, char *to, size_t capacity);

#ifdef __cplusplus
}
#endif

#endif
