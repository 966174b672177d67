// The session with one server, and all that ends with it. A client has one, and during handovers more.
#pragma once

#include "src/client/bind.hpp"
#include "src/client/channel.hpp"
#include "src/client/events.hpp"
#include "src/client/session.hpp"
#include "src/client/streams.hpp"
#include "src/client/worlds.hpp"

namespace uplink::detail::client {

// Rpc is an RPC of the server, as the program has bound it, and what was reported of its jitter buffer.
struct Rpc {
  const Schema *schema = nullptr;
  BindConfig config;
  int16_t slack = 0;     // 0.1 ms
  uint16_t target = 0;   // 0.1 ms
  bool told = false;     // the program knows in what the fields differ from those of the server
  uint16_t rate = 10000; // of the server's ticks, in 1/10,000
  uint64_t reported = 0; // when; 0: not at this server
  uint64_t missing = 0, late = 0;
};

enum class Phase : uint8_t { requesting, bound, failed };

// Binding is an RPC in one session.
struct Binding {
  Phase phase = Phase::requesting;
  uint8_t reason = 0; // of phase failed
  bool any_described = false;
  uint8_t asked = 0;              // requests, up to 255
  uint16_t missing = 0, late = 0; // of the last report on the jitter buffer
  Encoder *encoder = nullptr;
  uint64_t session = 0; // differs in all bindings of a client
  uint64_t ask_at = 0;
  Array<uint8_t> described;
};

// Incoming is an RPC of the program that the server has bound.
struct Incoming {
  Schema *schema = nullptr;   // with the server's factors
  Decoder *decoder = nullptr; // null if it was refused
  uint8_t handler = 0;
  bool reliable = false;
  bool due = false;     // an ack
  uint64_t newest = 0;  // packet number with a frame
  uint64_t dropped = 0; // calls without room, before the next event
};
constexpr size_t max_incoming = 32;

// Notice is a server to which the client may switch.
struct Notice {
  uint8_t stream = 255;  // of the current server, or 255
  uint64_t tick = 0;     // of its world
  uint32_t size = 0;     // of the data
  uint8_t hash[32] = {}; // of the data, if size is not 0
  Address servers[8];
  size_t n = 0;
  bool asked = false; // by the program, because its server is silent: this is no handover
  Token token;
  Array<uint8_t> data;
};

// parse_notice parses a message. It reports whether a server sends it.
bool parse_notice(const Crypto &c, Bytes message, Notice *n);

// Message is a reliable message that waits; its bytes follow.
struct Message {
  Message *next;
  size_t size;
};

// Parting is what a handover still needs of a former server.
enum class Parting : uint8_t {
  none,      // nothing
  switching, // it is to be told that the client has switched
  asked,     // it is to release the client
  released   // the release is to be passed to the other server
};

enum class Role : uint8_t {
  playing,  // the session of the program
  standby,  // the client may switch to it
  seeking,  // as standby, but its server has not answered, and the program has assigned a later one
  former,   // the client has switched to another one
  abandoned // it ends
};

// Times are microseconds.
class Link final : public CallCounter {
public:
  Link(const Allocator &a, Events &e, uint32_t &streams_id)
      : allocator(a), streams(a, bulk, e, streams_id), worlds(a, reliable, e, *this) {}
  Link(const Link &) = delete;
  Link &operator=(const Link &) = delete;
  ~Link();
  // create allocates memory. rpcs are n RPCs that are bound.
  bool create(const ClientConfig &c, uint8_t offered, const Rpc *rpcs, size_t n);
  bool add(const Rpc &r, size_t rpc);
  // begin begins with what a session has.
  void begin(uint64_t timeout, uint64_t now);
  bool is_open() const { return session.state() == State::open; }

  void release_encoders();
  void release_decoders();
  void release_held();
  // bound reports whether the server has answered all of the first n requests to bind.
  bool bound(size_t n) const;
  bool next_call(uint8_t rpc, uint64_t *next) const override;

  // queue queues a message for a datagram. It reports whether there was room.
  bool queue(Bytes head, Bytes body = {});
  // flush codes the calls that an encoder holds, and queues them.
  Error flush(size_t rpc, bool reliably);
  size_t next_messages(Buffer to, uint64_t now);
  size_t next_acks(uint8_t *to, uint64_t now);
  uint64_t acks_due() const;
  // hold keeps a reliable message until the switch.
  bool hold(Bytes message);

  Allocator allocator;
  Link *next = nullptr;
  Address server; // of family 0: that of Client::connect
  Session session;
  Channel reliable, bulk;
  Array<Binding> bindings;
  Array<uint8_t> waiting; // datagrams: sizes in front of messages; payloads share bundles
  size_t waiting_n = 0;
  Streams streams;
  Worlds worlds;
  Array<Incoming> incoming;
  uint64_t acked_at = 0;
  uint32_t server_binds = 0;
  uint32_t requests[64] = {};
  uint32_t requests_n = 0;
  Role role = Role::playing;
  bool shutdown_told = false;
  bool opened = false; // the session was open
  Parting parting = Parting::none;
  uint8_t release[33] = {}; // message
  uint32_t spent = 0;       // bytes of hellos for which the server's answer is due
  uint64_t follower = 0;    // of a former one: the connection to the server that it has handed over to
  uint64_t since = 0;       // it is dialed, the session is open, the client has switched to another one

  // A handover of the server that is not complete yet, and messages that wait for the switch.
  Notice *notice = nullptr;
  Message *first = nullptr;
  Message *last = nullptr;
  size_t held = 0;
};

} // namespace uplink::detail::client
