// The forms of datagrams. datagrams.md, 1 to 3.
#pragma once

#include "src/client/bytes.hpp"

namespace uplink::detail::client {

enum class Form : uint8_t { brief, extended, handshake, data }; // short, long, handshake, data

enum DatagramKind : uint8_t { data, reliable, heartbeat, close, challenge, response, probe, part };

constexpr size_t max_datagram = 1472;
constexpr size_t max_sent = 1200;    // maximum size on ordinary paths
constexpr size_t min_datagram = 548; // maximum size that every path carries
constexpr size_t max_body = max_sent - 27;
constexpr size_t max_datagram_header = 11;
constexpr size_t ip_size = 28; // headers of IPv4 and UDP

struct DatagramHeader {
  Form form = Form::brief;
  uint8_t kind = 0;
  uint8_t size = 0;
  uint32_t low = 0; // low bits of the packet number: 14 in the form data, otherwise 19
  uint64_t connection = 0;

  unsigned width() const { return form == Form::data ? 14 : 19; }
};

// form_of returns the form of datagrams of a kind without a report.
constexpr Form form_of(bool extended, uint8_t kind) {
  return extended ? Form::extended : kind == data ? Form::data : Form::brief;
}

// parse_header parses an encrypted datagram's header. It reports whether the header is valid.
bool parse_header(Bytes datagram, DatagramHeader *h);
// format_header writes a header of any form but handshake, and returns its size.
size_t format_header(uint8_t *to, Form form, uint8_t kind, uint64_t connection, uint64_t number);

// Window is the set of accepted packet numbers.
class Window {
public:
  uint64_t next() const { return next_; }
  // complete finds the number with the given low bits. It reports whether the number is new.
  bool complete(uint32_t low, unsigned width, uint64_t *number) const;
  bool accepted(uint64_t number) const;
  void accept(uint64_t number);

private:
  uint64_t next_ = 0;
  uint64_t bits_[16] = {};
};

enum HandshakeType : uint8_t { hello, retry, welcome, refuse, unknown };

struct Hello {
  uint64_t nonce = 0;
  uint8_t cookie[24] = {};
  uint8_t key_id[4] = {};
  Bytes route;
  Bytes message;
};

constexpr size_t max_message = 1 + 528 + 48; // size of the key exchange's message

// format_hello writes a hello and returns its size.
size_t format_hello(uint8_t to[max_sent], const Hello &h);

// Handshake is a retry, welcome or refuse that a client receives, or an unknown. data of an unknown
// is a header.
struct Handshake {
  HandshakeType type = retry;
  uint64_t nonce = 0;
  Bytes data; // cookie, Noise message, reason
};

bool parse_handshake(Bytes datagram, Handshake *h);

struct Heartbeat {
  uint32_t ask = 0;    // a random number, not 0
  uint32_t echo = 0;   // newest ask that the sender has received; 0: none
  uint32_t hold = 0;   // microseconds since it received that ask, below 2^24
  bool answer = false; // requests an immediate heartbeat
  uint8_t largest = 0; // excess of the largest datagram received since the sender's previous heartbeat
};

// excess returns the number of bytes by which a datagram exceeds min_datagram, in units of 8 bytes.
constexpr uint8_t excess(size_t size) {
  return size <= min_datagram ? 0 : static_cast<uint8_t>((size - min_datagram + 7) / 8);
}

constexpr size_t heartbeat_size = 12;
bool parse_heartbeat(Bytes body, Heartbeat *h);
void format_heartbeat(uint8_t to[heartbeat_size], const Heartbeat &h);

// Report tells the sender of datagrams which of them have arrived. It precedes the message in a body
// of kind data with a short header.
struct Report {
  uint16_t newest = 0;  // low bits of the newest packet number that has arrived
  uint16_t arrived = 0; // when it arrived, by any clock, in units of report_unit, modulo 2^16
  uint16_t count = 0;   // number of datagrams that have arrived so far, modulo 2^16
};

constexpr size_t report_size = 6;
constexpr uint64_t report_unit = 100; // microseconds
// parse_report parses a report and sets *message to what follows it, which may be empty.
bool parse_report(Bytes body, Report *r, Bytes *message);
void format_report(uint8_t to[report_size], const Report &r);

// DatagramPart is a part of the body of a datagram of kind data or reliable.
struct DatagramPart {
  bool reliable = false;
  uint8_t count = 0, index = 0;
  uint16_t offset = 0;
  Bytes data;
};

constexpr size_t part_header = 2;
bool parse_part(Bytes body, DatagramPart *p);
// format_part writes a part and returns its size.
size_t format_part(uint8_t *to, const DatagramPart &p);

} // namespace uplink::detail::client
