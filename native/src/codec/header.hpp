// Headers of payloads, and acks. docs/spec/frames.md, 2 to 4 and 8.
#pragma once

#include "src/codec/bits.hpp"

namespace uplink::detail {

struct Header {
  bool is_long = false;
  bool has_hash = false;
  uint8_t rpc = 0;
  uint16_t low = 0;      // low bits of the sequence: 7 in a short header, 16 in a long one
  uint16_t distance = 0; // to the baseline; 0: no baseline
  uint8_t epoch = 0;     // valid without a baseline
  uint16_t hash = 0;
  size_t size = 0;   // in bytes
  int free_bits = 0; // number of free low bits in its last byte
};

constexpr size_t max_header = 7;

// write_header writes the shortest header for a frame, and sets is_long, size and free_bits.
void write_header(Header &h, uint64_t sequence, uint8_t *to);

// parse_header reports false if b does not begin with a valid header.
bool parse_header(const uint8_t *b, size_t n, Header *h);

// unwrap returns the sequence with these low bits: see F-7. It reports false if it is below 0.
bool unwrap(const Header &h, uint64_t newest, uint64_t *sequence);

// AckForm is an ack of an RPC, of snapshots or of state.
struct AckForm {
  uint8_t stream = 0;
  uint8_t epoch = 0;
  uint8_t request = 0;
  bool none = false;
  bool whole = false;
  bool is_long = false; // set for a parsed ack
  uint16_t newest = 0;  // low 10 bits, or 16 in a long ack
  uint8_t length = 0;   // length of the window
  uint64_t window = 0;  // bit i is set if message newest - 1 - i was received
};

// write_ack returns the size, at most 15 bytes.
size_t write_ack(const AckForm &a, uint8_t *to);

// parse_ack returns the number of bytes read, 0 if b does not begin with an ack.
size_t parse_ack(const uint8_t *b, size_t n, AckForm *a);

} // namespace uplink::detail
