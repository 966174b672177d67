// The codec of RPCs: the caller's Encoder and the receiver's Decoder, for programs with a
// connection of their own. docs/spec/values.md and frames.md specify it.
//
// What it requires of the connection: payloads arrive unchanged or not at all. Each has to be
// authenticated, or protected by a checksum, because a changed payload can decode to other values, and so
// can the calls after it. Order, loss and duplicates do not matter, but a payload that arrives after a
// newer one is dropped, unless DecoderConfig::deliver_late is set. A payload must not arrive after one that
// is 64 or more calls newer: headers have 7 bits of a call's number.
//
// A program describes an RPC by a Schema, sets a Frame to the arguments of a call, and passes it to
// Encoder::encode. It sends the resulting payload in an unreliable message. The receiver passes
// payloads to Decoder::decode, and sends the result of Decoder::ack back about ten times a second.
// The encoder codes calls as differences from acknowledged calls.
//
// Only the functions named create allocate memory. A Schema and a Prior are immutable and can be
// used by any thread. An Encoder, Decoder or Frame is for one thread at a time.
#pragma once

#include "uplink/base.hpp"

namespace uplink {

// Kind is the type of the values of a field.
enum class Kind : uint8_t {
  vec2,    // 2 numbers
  vec3,    // 3 numbers
  scalar,  // numbers
  angle,   // angles in degrees, which wrap
  quat,    // an orientation: x, y, z, w
  unitvec, // a direction: x, y, z
  uint,    // unsigned integers
  int_,    // signed integers
  bits,    // sets of bits, such as buttons
  boolean, // 0 or 1
  fixed,   // a byte string of constant length
  bytes    // a byte string
};

// Field describes one argument of an RPC, or several of the same kind. Leave members that the kind
// does not use at 0.
struct Field {
  const char *name = nullptr; // not empty, and unique in the schema
  Kind kind = Kind::scalar;
  uint16_t count = 1;    // number of values, for scalar, angle, uint, int_, bits and boolean; at most 1024
  double resolution = 0; // quantization step, for vec2, vec3 and scalar; above 0
  uint8_t bits = 0;      // for angle 2 to 24, default 16; for quat and unitvec 3 to 20, default 12
  uint8_t width = 0;     // for uint, int_ and bits: bits of a value, 1 to 64
  uint16_t size = 0;     // for fixed the length, for bytes the maximum length, in bytes; 1 to 16384
  bool has_min = false;  // min bounds the values, for vec2, vec3 and scalar
  bool has_max = false;
  double min = 0;
  double max = 0;
  // Name of the field that contains the change of this field per second; null: none.
  const char *velocity = nullptr;
  double velocity_scale = 1; // factor from the unit of the velocity to that of this field
};

// Schema describes the arguments of an RPC. It is immutable.
class Schema {
public:
  // create returns a schema of an RPC that is called rate_hz times a second, above 0 and at most
  // 1000; 0 means 60. Error::invalid means that a field or the schema exceeds its limits. *field,
  // if field is not null, is then the index of the invalid field, or n if it is the schema.
  static Error create(const Allocator &a, const char *rpc, double rate_hz, const Field *fields, size_t n,
                      Schema **out, size_t *field = nullptr);
  static void destroy(Schema *s);

  const char *rpc() const;
  double rate_hz() const;
  size_t fields() const;
  // components returns the number of integers of a frame.
  size_t components() const;
  // fingerprint returns a hash that is equal at both ends if their schemas are equal.
  uint64_t fingerprint() const;
  // description writes the description of a field, with a final zero, truncated to capacity bytes.
  // It returns the length of the complete description.
  size_t description(size_t field, char *to, size_t capacity) const;
  // field_hash returns the hash of the description of a field, which requests to bind contain.
  uint16_t field_hash(size_t field) const;
  // velocity_factors returns the number of velocity factors. The caller's end computes them from
  // the rate; the receiver's end must use the same factors.
  size_t velocity_factors() const;
  int64_t velocity_factor(size_t i) const;
  // set_velocity_factors replaces the factors, before a Frame, Encoder or Decoder is created.
  // Error::invalid: n is not velocity_factors(), or the magnitude of a factor exceeds 2^40 - 1.
  Error set_velocity_factors(const int64_t *factors, size_t n);

protected:
  Schema() = default;
  ~Schema() = default;
};

// Frame contains the quantized arguments of one call.
class Frame {
public:
  // create returns a frame of a schema, which must outlive it. All components and byte strings are
  // 0 or, if their bounds exclude that, the nearest permitted value.
  static Error create(const Allocator &a, const Schema &s, Frame **out);
  static void destroy(Frame *f);

  // set quantizes the n values of a field of numbers, in the order of its kind. Error::invalid: the
  // field has another kind or another number of values, or a value is not finite or out of range;
  // the frame is unchanged.
  Error set(size_t field, const double *values, size_t n);
  // set_integers is set for the kinds uint, int_ (in two's complement), bits and boolean.
  Error set_integers(size_t field, const uint64_t *values, size_t n);
  // set_bytes is set for the kinds fixed and bytes.
  Error set_bytes(size_t field, Bytes value);

  // get restores the n values of a field. Error::invalid: as for set.
  Error get(size_t field, double *values, size_t n) const;
  Error get_integers(size_t field, uint64_t *values, size_t n) const;
  // get_bytes returns a view of the frame's memory.
  Error get_bytes(size_t field, Bytes *value) const;

  // components returns the integers that are coded. Their number is Schema::components.
  const int32_t *components() const;
  // set_components replaces all components. Error::invalid: a component is out of its bounds; the
  // frame is unchanged.
  Error set_components(const int32_t *components, size_t n);

protected:
  Frame() = default;
  ~Frame() = default;
};

// Codec selects the coding of payloads. rle is simple and needs little time; adaptive learns from
// the calls and needs fewer bits.
enum class Codec : uint8_t { rle, adaptive };

// Prior is the state with which the codec adaptive starts. It is immutable.
class Prior {
public:
  // generic returns the built-in prior, for schemas of all kinds.
  static const Prior &generic();
  // create parses the contents of a file that "uplink train" wrote. Error::malformed: they are not
  // a valid prior.
  static Error create(const Allocator &a, Bytes file, Prior **out);
  static void destroy(Prior *p);
  // hash returns the hash that identifies the prior in requests to bind.
  uint64_t hash() const;

protected:
  Prior() = default;
  ~Prior() = default;
};

// max_payload is the default maximum size of a payload, in bytes.
constexpr size_t max_payload = 1197;

struct EncoderConfig {
  Codec codec = Codec::adaptive;
  uint8_t rpc = 0;         // number of the RPC in headers; 0 to 10 take the fewest bits
  uint16_t ring = 64;      // number of frames that this end stores, 2 to 256
  uint16_t peer_ring = 64; // number of frames that the decoder stores, 2 to 256
  // Number of earlier payloads whose frames each payload repeats, 0 to 8; adaptive only.
  uint8_t copies = 0;
  bool reliable = false;                      // all payloads arrive, and in order; there are no acks
  const Prior *prior = nullptr;               // null: the built-in one; it must outlive the encoder
  uint16_t max_payload = uplink::max_payload; // in bytes
};

// Encoder codes the calls of one RPC.
class Encoder {
public:
  // create allocates all memory that the encoder ever needs. The schema must outlive it.
  static Error create(const Allocator &a, const Schema &s, const EncoderConfig &c, Encoder **out);
  static void destroy(Encoder *e);

  // encode calls hold and then flush.
  Error encode(const Frame &f, Buffer to, size_t *size);
  // hold stores a call for the next payload. Error::full: 8 calls wait already, or 1 call with rle
  // or EncoderConfig::reliable; the call is not stored.
  Error hold(const Frame &f);
  // flush encodes waiting calls into one payload, the oldest first. *size is the size of the
  // payload, or 0 if no call waits. If not all calls fit, the others continue to wait.
  // Error::too_small: the oldest call does not fit into to or EncoderConfig::max_payload; it is
  // dropped.
  Error flush(Buffer to, size_t *size);
  // waiting returns the number of calls that wait.
  size_t waiting() const;
  // ack processes the first ack in b and sets *used to its size; other acks may follow.
  // Error::malformed: the ack is invalid; if *used is 0, the acks after it cannot be read either.
  // Error::invalid: the ack is for another RPC. An ack with an error has no effect.
  Error ack(Bytes b, size_t *used);
  // next returns the sequence number of the next call. The first call has 0.
  uint64_t next() const;

protected:
  Encoder() = default;
  ~Encoder() = default;
};

struct DecoderConfig {
  Codec codec = Codec::adaptive;
  uint8_t rpc = 0;         // number of the RPC in headers
  uint16_t ring = 64;      // number of frames that this end stores, 2 to 256
  uint16_t peer_ring = 64; // number of frames that the encoder stores
  bool reliable = false;
  const Prior *prior = nullptr;
  // Payloads that are up to 64 payloads late are decoded too, if their baseline is known: their calls are
  // delivered with Call::late. With adaptive it takes the memory of 9 more learned states.
  bool deliver_late = false;
};

// Call is one decoded call.
struct Call {
  uint64_t sequence = 0;        // 0 for the first call of the encoder
  uint64_t missed = 0;          // number of missing calls between the previous delivered call and this one
  const Frame *frame = nullptr; // valid until the next decode
  bool late = false;            // later calls were delivered before, in which missed contains this one
};

// max_calls is the maximum number of calls of a payload.
constexpr size_t max_calls = 16;

// Decoder decodes the calls of one RPC, whichever payloads are lost, duplicated or reordered. No payload
// makes it fail, but one that was changed on its way can decode to wrong values.
class Decoder {
public:
  static Error create(const Allocator &a, const Schema &s, const DecoderConfig &c, Decoder **out);
  static void destroy(Decoder *d);

  // decode decodes a payload. calls has room for max_calls calls. *n is the number of new calls,
  // which are stored with the oldest first. Error::malformed, Error::no_baseline, Error::duplicate,
  // Error::stale (late), Error::desync: the payload was dropped, which only affects the next ack.
  // Error::invalid: the payload is for another RPC.
  Error decode(Bytes payload, Call *calls, size_t *n);
  // ack writes an ack of all decoded payloads to the buffer to, which has room for max_ack bytes,
  // and returns its size. Send an ack after payloads were decoded or dropped, about ten times a
  // second, but not with DecoderConfig::reliable.
  size_t ack(uint8_t *to) const;
  // ask_reset requests a reset of the encoder with the next acks.
  void ask_reset();

protected:
  Decoder() = default;
  ~Decoder() = default;
};

// max_ack is the maximum size of an ack, in bytes.
constexpr size_t max_ack = 15;

// rpc_of returns the number of the RPC in a payload, or -1 if the payload has no valid header.
int rpc_of(Bytes payload);

} // namespace uplink
