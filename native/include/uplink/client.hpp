// The client of an uplink server, without sockets and without a clock: the program, or the socket
// driver of socket.hpp, passes datagrams and the time. docs/spec/datagrams.md and messages.md
// specify the protocol.
//
//   connect(token, now); then, in the program's loop:
//     receive(datagram, now) for each datagram from the server's address
//     call and the functions named send
//     next_datagram(buffer, now) until it returns 0; send each to the server
//     poll_event until it returns false
//   again at next_timeout() at the latest.
//
// Times are nanoseconds of a monotonic clock. A Client is for one thread at a time. It allocates
// memory in create and bind, and an Encoder when the server has bound an RPC.
#pragma once

#include "uplink/codec.hpp"
#include "uplink/crypto.hpp"

namespace uplink {

// Address is an IP address and a UDP port.
struct Address {
  uint8_t family = 0;  // 4 or 6
  uint8_t ip[16] = {}; // in network order; of IPv4 the first 4 bytes
  uint16_t port = 0;
};

// IssuerKey issues connect tokens. A game's client has none; backends, tests and tools do.
struct IssuerKey {
  uint8_t public_key[32] = {};
  uint8_t token_key[32] = {};
};

// parse_key parses the text of a server's or an issuer's key. Error::authentication: it is none.
Error parse_key(const Crypto &c, const char *text, IssuerKey *key);
// development_key returns the public key that servers accept on loopback addresses.
Error development_key(const Crypto &c, IssuerKey *key);

// Claims are what a token says. Times are milliseconds since 1970-01-01 00:00 UTC.
struct Claims {
  uint64_t client_id = 0;
  uint64_t issued = 0;
  uint64_t expires = 0; // at most 24 h after issued
  Address servers[8];
  size_t n = 0;    // servers, 1 to 8
  Bytes user_data; // at most 256 bytes
};

// token_text is the room for the text of a token, with its final zero.
constexpr size_t token_text = 779;

// issue_token writes the text of a token, with a final zero. Error::invalid: claims out of range.
Error issue_token(const Crypto &c, const IssuerKey &key, const Claims &claims, char *text, size_t capacity);

struct ClientConfig {
  Crypto crypto;             // sodium_crypto()
  uint8_t offered = 0;       // suites that the client offers, bit i for suite i; 0: all but none
  uint64_t timeout = 0;      // ns without a datagram that end a session; 0: 15 s; at least 2 s
  uint16_t bindings = 16;    // RPCs that can be bound, 1 to 256
  size_t event_bytes = 0;    // memory of events; 0: 128 KiB; at least 64 KiB
  uint16_t send_queue = 128; // segments of 1,149 bytes that reliable messages can wait in, 16 to 256
  bool replication = false;  // pass replication messages of the server to the program
};

// Reason is why a session ended, or did not begin.
enum class Reason : uint8_t {
  none,
  timeout,       // nothing arrived from the server
  lost,          // the server does not know the session any more
  token_expired, // codes of a welcome
  token_used,
  token_invalid, // altered, or issued with another key
  token_server,  // for another server or route
  token_early,   // issued before the server started
  server_full,
  no_suite,  // no common cipher suite
  version,   // the server does not support this version
  busy,      // too many handshakes
  key,       // the server does not have the token's key
  quit,      // the server, or the program by close, ended the session
  shutdown,  // the server shuts down
  replaced,  // the client id has a new session
  violation, // one end violated the protocol
  limit,     // the client exceeded a limit of the server
  refused    // the server refuses the session for the time being
};

// text returns a description in English. It is never null.
const char *text(Reason r);

enum class EventType : uint8_t {
  connected,    // the session is open; value is 1 if there was one before
  reconnecting, // the session ended: call connect with a new token; value is the wait in ns
  disconnected, // the session ended, or could not begin; reconnecting is no use
  bound,        // calls of rpc are sent from now on
  bind_failed,  // value is the reason of messages.md, 2; data the server's description
  message,      // of the game; reliable is set if it came on the reliable channel
  answer,       // to request value: status 2 answer, 3 refused by the game, 4 not handled
  shutdown,     // the server shuts down soon: finish, then close
  handover,     // the server names another one: connect there with the token in data
  replication,  // a message of worlds, with ClientConfig::replication
  quality,      // once a second: see stats
  new_socket    // nothing arrives: continue from another local port, then call rebind
};

struct Event {
  EventType type = EventType::quality;
  Reason reason = Reason::none;
  bool reliable = false;
  uint8_t status = 0;
  uint8_t rpc = 0;
  uint64_t value = 0;
  // data is a view that is valid until the next call of a function of the client.
  Bytes data;
};

// Handover is the content of an event of this type.
struct Handover {
  uint8_t stream = 255;  // replication stream, or 255
  uint64_t tick = 0;     // of its world
  uint32_t size = 0;     // of the data that follows as a byte stream
  uint8_t hash[32] = {}; // of the data, if size is not 0
  Address servers[8];
  size_t n = 0;
  Bytes token; // text
};

// parse_handover parses the data of an event. Error::malformed: it is none.
Error parse_handover(const Crypto &c, Bytes message, Handover *h);

// Stats counts since create, but for the round-trip time.
struct Stats {
  uint64_t rtt = 0;  // ns, smoothed; 0: not measured
  uint64_t sent = 0; // datagrams
  uint64_t sent_bytes = 0;
  uint64_t received = 0; // accepted datagrams
  uint64_t dropped = 0;  // datagrams that were not accepted
  uint64_t missing = 0;  // datagrams of the server that did not arrive, or not yet
  uint64_t calls = 0;
  uint64_t acks = 0; // acks of RPCs
  uint8_t suite = 0;
};

struct BindConfig {
  Codec codec = Codec::adaptive;
  bool reliable = false;
  uint16_t ring = 64;           // frames that this end keeps, 2 to 256
  uint8_t copies = 0;           // see EncoderConfig
  uint8_t batch = 0;            // calls that a call may wait for, 0 to 7: they share a payload
  const Prior *prior = nullptr; // null: the built-in one
};

class Client {
public:
  static Error create(const Allocator &a, const ClientConfig &c, Client **out);
  static void destroy(Client *c);

  // bind requests an RPC of a schema, which must outlive the client, in this session and in later
  // ones. *rpc is its number. Error::full: there are too many.
  Error bind(const Schema &s, const BindConfig &c, uint8_t *rpc);

  // connect begins a session with the token's text of n characters, after the wait of the last
  // reconnecting event. It ends a session that is open. Error::authentication: it is no token.
  Error connect(const char *token, size_t n, uint64_t now);
  // close ends the session: three datagrams with the code, 0 or 1, leave.
  void close(uint8_t code, uint64_t now);
  // connected reports whether the session is open.
  bool connected() const;

  // receive takes a datagram from the server's address, at most 1,472 bytes.
  void receive(Bytes datagram, uint64_t now);
  // next_datagram writes the next datagram to send and returns its size, or 0. to has room for
  // 1,200 bytes.
  size_t next_datagram(Buffer to, uint64_t now);
  // next_timeout returns when next_datagram is to be called again, if nothing else happens.
  uint64_t next_timeout() const;
  // rebind continues the session from another local address: the program has opened a new socket.
  void rebind(uint64_t now);
  // poll_event returns the next event and reports whether there was one.
  bool poll_event(Event *e);

  // call codes and sends one call of an RPC. Error::closed: the RPC is not bound now. Error::full: too
  // much waits.
  Error call(uint8_t rpc, const Frame &f, uint64_t now);
  // send sends a message of the game: reliable up to 8,192 bytes, otherwise up to 1,172. Error::full:
  // try later.
  Error send(Bytes message, bool reliable, uint64_t now);
  // request sends a request of at most 8,192 bytes, whose answer is an event with *id as value.
  Error request(Bytes body, uint32_t *id, uint64_t now);
  Error cancel(uint32_t id);
  // send_replication sends an answer to an offer (0xc7) or an ack of a replication stream (0xca).
  Error send_replication(Bytes message);

  Stats stats() const;

protected:
  Client() = default;
  ~Client() = default;
};

} // namespace uplink
