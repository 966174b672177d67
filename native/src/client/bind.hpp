// Requests to bind and their answers: arrays of msgpack. messages.md, 2.
#pragma once

#include "src/client/bytes.hpp"
#include "uplink/codec.hpp"

namespace uplink::detail::client {

// Unpacker reads msgpack. After an element of another type, ok is false and all results are 0.
class Unpacker {
public:
  explicit Unpacker(Bytes b) : r_(b) {}
  bool ok() const { return ok_ && r_.ok(); }
  bool end() const { return ok() && r_.left() == 0; }
  size_t left() const { return r_.left(); }
  // array returns the number of elements, at most the number of bytes left.
  size_t array();
  uint64_t number();
  int64_t integer();
  double real();
  bool boolean();
  Bytes string();

private:
  uint64_t fail() {
    ok_ = false;
    return 0;
  }
  // whole reads an integer. *negative reports whether the integer is below 0.
  uint64_t whole(bool *negative);

  Reader r_;
  bool ok_ = true;
};

class Packer {
public:
  explicit Packer(Buffer b) : w_(b) {}
  ByteWriter &writer() { return w_; }
  void array(size_t n);
  void integer(uint64_t v); // in the fewest bytes
  void fixed(uint8_t type, uint64_t v, size_t bytes);
  void real(double v);
  void string(Bytes s);

private:
  ByteWriter w_;
};

struct BindRequest {
  uint8_t rpc = 0;
  const Schema *schema = nullptr;
  uint16_t ring = 64;
  Codec codec = Codec::adaptive;
  bool reliable = false;
  uint8_t frames = 1;
  uint64_t prior = 0;
  uint8_t batch = 0;
  // Bit f % 8 of byte f / 8 is 1 if field f is to be described.
  const uint8_t *described = nullptr;
};

// format_bind writes a message, or returns 0 if it does not fit.
size_t format_bind(Buffer to, const BindRequest &r);

// Names is an array of strings in msgpack.
struct Names {
  size_t n = 0;
  Bytes items;
};

// BindAnswer is an answer to a request to bind. asking are fields that only the sender of the
// request has, answering fields that only the other end has.
struct BindAnswer {
  uint64_t rpc = 0, ring = 0, reason = 0, prior = 0;
  uint64_t field = 0;
  Bytes theirs;
  double limit = 0;
  Bytes ask; // the fields to describe, an array in msgpack
  Names known, asking, answering;
};

// max_differences is the maximum number of names in asking and answering.
constexpr size_t max_differences = 32;

// parse_answer parses a message. It reports whether it is well-formed.
bool parse_answer(Bytes message, BindAnswer *a);
// mark_described sets the bits of the fields in an answer's ask, and reports whether one was not
// set before.
bool mark_described(const BindAnswer &a, uint8_t *described, size_t fields);

// ServerBind is a request of the server.
struct ServerBind {
  uint8_t rpc = 0;
  bool reliable = false;
  Bytes name, codec;
  uint64_t fingerprint = 0, ring = 0, prior = 0;
  double rate = 0;
  size_t factors_n = 0;
  int64_t factors[256] = {};
};

// parse_server_bind reports whether the message is well-formed.
bool parse_server_bind(Bytes message, ServerBind *r);

// ServerBindAnswer answers a ServerBind. It also explains the answer to the offer of a world.
struct ServerBindAnswer {
  uint8_t rpc = 0, reason = 0; // number of the RPC in the request, or of the world in the offer
  uint16_t ring = 0;
  uint64_t prior = 0;
  Bytes theirs;        // at most 512 bytes
  Bytes known;         // the nearest name that the client has, or none
  size_t asking_n = 0; // names of object types, which get a slash
  Bytes asking[16];    // at most 64 bytes each
};

// format_answer writes the answer without its type, and returns its size, at most max_answer.
constexpr size_t max_answer = 2048;
size_t format_answer(Buffer to, const ServerBindAnswer &a);

} // namespace uplink::detail::client
