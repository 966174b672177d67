// The codec of RPCs, both roles: the caller's Encoder and the receiver's Decoder, over a connection
// that the program owns. docs/spec/values.md and frames.md specify it.
//
// A program describes an RPC by a Schema, puts the arguments of a call into a Frame, and passes it
// to Encoder::encode, whose payload it sends in an unreliable message. The receiver passes payloads
// to Decoder::decode, and sends Decoder::ack back, some ten times a second. The encoder codes calls
// as differences from those that acks show as received.
//
// Nothing allocates memory but the functions named create. A Schema and a Prior do not change and
// can be used by any thread. An Encoder, Decoder or Frame is for one thread at a time.
#pragma once

#include "uplink/base.hpp"

namespace uplink {

// Kind is what the values of a field are, and how they are coded.
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

// Field is one argument of an RPC, or several of a kind. Members that a kind does not use stay 0.
struct Field {
  const char *name = nullptr; // not empty, different from the others of the schema
  Kind kind = Kind::scalar;
  uint16_t count = 1;    // values: of scalar, angle, uint, int_, bits, boolean; at most 1024
  double resolution = 0; // size of a step: of vec2, vec3, scalar; above 0
  uint8_t bits = 0;      // of angle 2 to 24, default 16; of quat and unitvec 3 to 20, default 12
  uint8_t width = 0;     // of uint, int_, bits: bits of a value, 1 to 64
  uint16_t size = 0;     // of fixed: the length; of bytes: the maximum length; 1 to 16384
  bool has_min = false;  // min and max bound the values of vec2, vec3 and scalar
  bool has_max = false;
  double min = 0;
  double max = 0;
  const char *velocity = nullptr; // name of the field that is the change of this one per second
  double velocity_scale = 1;      // factor from the unit of the velocity to that of this field
};

// Schema describes the arguments of an RPC. It is immutable.
class Schema {
public:
  // create returns a schema of an RPC that is called rate_hz times a second, above 0 and at most
  // 1000; 0 means 60. Error::invalid means that a field, or the whole, is out of its limits;
  // *field, if it is not null, is then the index of the field, or n.
  static Error create(const Allocator &a, const char *rpc, double rate_hz, const Field *fields, size_t n,
                      Schema **out, size_t *field = nullptr);
  static void destroy(Schema *s);

  const char *rpc() const;
  double rate_hz() const;
  size_t fields() const;
  // components returns the number of integers of a frame.
  size_t components() const;
  // fingerprint is equal at both ends if their schemas are.
  uint64_t fingerprint() const;
  // description writes the description of a field, with a final zero. It returns its length, of
  // which capacity may hold only the first part.
  size_t description(size_t field, char *to, size_t capacity) const;
  // field_hash is that of the description, as requests to bind have it.
  uint16_t field_hash(size_t field) const;
  // velocity_factors returns the number of factors. The caller's end computes them from the rate;
  // the receiver's end must have the same.
  size_t velocity_factors() const;
  int64_t velocity_factor(size_t i) const;
  // set_velocity_factors replaces the factors, before a Frame, Encoder or Decoder is created.
  // Error::invalid: another number of them, or one above 2^40 - 1 in magnitude.
  Error set_velocity_factors(const int64_t *factors, size_t n);

protected:
  Schema() = default;
  ~Schema() = default;
};

// Frame is the quantized arguments of one call.
class Frame {
public:
  // create returns a frame of a schema, which must outlive it. All components and byte strings are 0,
  // or the nearest to it that their bounds permit.
  static Error create(const Allocator &a, const Schema &s, Frame **out);
  static void destroy(Frame *f);

  // set quantizes the values of a field that are no integers, in the order of the kind. n is their
  // number. Error::invalid: the field has another number of values, or of another kind, or a value is
  // not finite or out of range; the frame is unchanged.
  Error set(size_t field, const double *values, size_t n);
  // set_integers is set of uint, int_ (as two's complement), bits and boolean.
  Error set_integers(size_t field, const uint64_t *values, size_t n);
  // set_bytes is set of fixed and bytes.
  Error set_bytes(size_t field, Bytes value);

  // get restores the values of a field; n is their number. Error::invalid as in set.
  Error get(size_t field, double *values, size_t n) const;
  Error get_integers(size_t field, uint64_t *values, size_t n) const;
  // get_bytes returns a view of the frame's memory.
  Error get_bytes(size_t field, Bytes *value) const;

  // components are the integers that are coded, Schema::components of them.
  const int32_t *components() const;
  // set_components replaces all of them. Error::invalid: one is out of its bounds; nothing changes.
  Error set_components(const int32_t *components, size_t n);

protected:
  Frame() = default;
  ~Frame() = default;
};

// Codec is how payloads are coded: rle is the simple one, adaptive learns the calls.
enum class Codec : uint8_t { rle, adaptive };

// Prior is what adaptive knows before the first call. It is immutable.
class Prior {
public:
  // generic returns the built-in prior, for schemas of all kinds.
  static const Prior &generic();
  // create parses a file of "uplink train". Error::malformed: it is none, or damaged.
  static Error create(const Allocator &a, Bytes file, Prior **out);
  static void destroy(Prior *p);
  // hash is the name of the prior in requests to bind.
  uint64_t hash() const;

protected:
  Prior() = default;
  ~Prior() = default;
};

// max_payload is the size in bytes for which payloads are coded unless a program asks for less.
constexpr size_t max_payload = 1197;

struct EncoderConfig {
  Codec codec = Codec::adaptive;
  uint8_t rpc = 0;              // number of the RPC in headers; 0 to 10 take the least bits
  uint16_t ring = 64;           // frames that this end keeps, 2 to 256
  uint16_t peer_ring = 64;      // frames that the decoder keeps, 2 to 256
  uint8_t copies = 0;           // earlier payloads whose frames each payload repeats, 0 to 8; of adaptive
  bool reliable = false;        // payloads arrive all and in order; there are no acks
  const Prior *prior = nullptr; // null: the built-in one; it must outlive the encoder
  uint16_t max_payload = uplink::max_payload; // in bytes
};

// Encoder codes the calls of one RPC.
class Encoder {
public:
  // create allocates all memory that the encoder ever needs. The schema must outlive it.
  static Error create(const Allocator &a, const Schema &s, const EncoderConfig &c, Encoder **out);
  static void destroy(Encoder *e);

  // encode is hold and then flush.
  Error encode(const Frame &f, Buffer to, size_t *size);
  // hold keeps a call for the next payload. Error::full: 8 calls wait already, or with rle or
  // EncoderConfig::reliable one; the call is not kept.
  Error hold(const Frame &f);
  // flush codes calls that wait, the oldest first, into one payload; *size is 0 if none waits. If
  // not all fit, waiting is above 0 afterwards. Error::too_small: the oldest call alone does not fit
  // into to or EncoderConfig::max_payload; it is dropped.
  Error flush(Buffer to, size_t *size);
  // waiting returns the number of calls that wait.
  size_t waiting() const;
  // ack takes the first ack of b, of which it uses *used bytes; others may follow. Error::malformed:
  // no decoder sends it; if *used is 0, nothing after it can be read. Error::invalid: it is of
  // another RPC. In both cases it has no effect.
  Error ack(Bytes b, size_t *used);
  // next returns the sequence of the next call, from 0.
  uint64_t next() const;

protected:
  Encoder() = default;
  ~Encoder() = default;
};

struct DecoderConfig {
  Codec codec = Codec::adaptive;
  uint8_t rpc = 0;         // number of the RPC in headers
  uint16_t ring = 64;      // frames that this end keeps, 2 to 256
  uint16_t peer_ring = 64; // frames that the encoder keeps
  bool reliable = false;
  const Prior *prior = nullptr;
};

// Call is one decoded call.
struct Call {
  uint64_t sequence = 0;        // of the first call 0
  uint64_t missed = 0;          // calls before it, after the previous delivered one, that did not arrive
  const Frame *frame = nullptr; // valid until the next decode
};

// max_calls is the maximum number of calls of a payload.
constexpr size_t max_calls = 16;

// Decoder decodes the calls of one RPC, whatever the network loses, duplicates, reorders or forges.
class Decoder {
public:
  static Error create(const Allocator &a, const Schema &s, const DecoderConfig &c, Decoder **out);
  static void destroy(Decoder *d);

  // decode decodes a payload. calls has room for max_calls calls; *n is the number of new ones,
  // the oldest first. Error::malformed, Error::no_baseline, Error::duplicate, Error::stale (late),
  // Error::desync: the payload was dropped, and nothing has changed but what the next ack says.
  // Error::invalid: it is of another RPC.
  Error decode(Bytes payload, Call *calls, size_t *n);
  // ack writes an ack of everything decoded to to, which has room for max_ack bytes, and returns its
  // size. Send one after payloads were decoded or dropped, some ten times a second. With
  // DecoderConfig::reliable there are none.
  size_t ack(uint8_t *to) const;
  // ask_reset makes the encoder begin anew.
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
