// The session with one server, and all state that ends with it. A client has one link, and more
// during handovers.
#pragma once

#include "src/client/bind.hpp"
#include "src/client/channel.hpp"
#include "src/client/events.hpp"
#include "src/client/session.hpp"
#include "src/client/streams.hpp"
#include "src/client/worlds.hpp"

namespace uplink::detail::client {

// Rpc is an RPC of the server that the program has bound, with the last report on its jitter
// buffer.
struct Rpc {
  const Schema *schema = nullptr;
  BindConfig config;
  int16_t slack = 0;     // unit 0.1 ms
  uint16_t target = 0;   // unit 0.1 ms
  bool told = false;     // the differences from the server's fields were reported to the program
  uint16_t rate = 10000; // rate of the server's ticks, in 1/10,000
  uint64_t reported = 0; // time of the report; 0: none from this server
  uint64_t missing = 0, late = 0;
};

enum class Phase : uint8_t { requesting, bound, failed };

// Binding is the state of an RPC in one session.
struct Binding {
  Phase phase = Phase::requesting;
  uint8_t reason = 0; // reason of phase failed
  bool any_described = false;
  uint8_t asked = 0;              // number of requests, at most 255
  uint16_t missing = 0, late = 0; // counts in the last report on the jitter buffer
  Encoder *encoder = nullptr;
  uint64_t session = 0; // id of the session; different for all bindings of a client
  uint64_t ask_at = 0;
  Array<uint8_t> described;
};

// Incoming is a client's RPC that the server has bound.
struct Incoming {
  Schema *schema = nullptr;   // schema with the server's factors
  Decoder *decoder = nullptr; // null: refused
  uint8_t handler = 0;
  bool reliable = false;
  bool due = false;     // an ack is due
  uint64_t newest = 0;  // highest packet number with a frame
  uint64_t dropped = 0; // calls dropped for lack of room since the last event
};
constexpr size_t max_incoming = 32;

// Notice is a server to which the client may switch.
struct Notice {
  uint8_t stream = 255;  // replication stream of the current server, or 255
  uint64_t tick = 0;     // tick of the stream's world
  uint32_t size = 0;     // size of the data
  uint8_t hash[32] = {}; // hash of the data, if size is not 0
  Address servers[8];
  size_t n = 0;
  bool asked = false; // requested by the program because its server is silent; not a handover
  Token token;
  Array<uint8_t> data;
};

// parse_notice parses a message. It reports whether it is a valid message of a server.
bool parse_notice(const Crypto &c, Bytes message, Notice *n);

// Message is a queued reliable message; its bytes follow.
struct Message {
  Message *next;
  size_t size;
};

// Parting is the next step of a handover on the link to the former server.
enum class Parting : uint8_t {
  none,      // nothing
  switching, // tell the server that the client has switched
  asked,     // the server must release the client
  released   // pass the release to the other server
};

enum class Role : uint8_t {
  playing,  // current link
  standby,  // the client may switch to it
  seeking,  // like standby, but the server has not answered, and the program has since assigned another one
  former,   // the client has switched to another server
  abandoned // the link is ending
};

// Link is the session with one server and its state. Times are microseconds.
class Link final : public CallCounter {
public:
  Link(const Allocator &a, Events &e, uint32_t &streams_id)
      : allocator(a), streams(a, bulk, e, streams_id), worlds(a, reliable, e, *this) {}
  Link(const Link &) = delete;
  Link &operator=(const Link &) = delete;
  ~Link();
  // create allocates memory for the n RPCs in rpcs, which are to be bound.
  bool create(const ClientConfig &c, uint8_t offered, const Rpc *rpcs, size_t n);
  bool add(const Rpc &r, size_t rpc);
  // begin resets the state of a session.
  void begin(uint64_t timeout, uint64_t now);
  bool is_open() const { return session.state() == State::open; }

  void release_encoders();
  void release_decoders();
  void release_held();
  // bound reports whether the server has answered the first n requests to bind.
  bool bound(size_t n) const;
  bool next_call(uint8_t rpc, uint64_t *next) const override;

  // queue queues a message for a datagram. It reports whether there was room.
  bool queue(Bytes head, Bytes body = {});
  // flush encodes the calls that an encoder holds, and queues them.
  Error flush(size_t rpc, bool reliably);
  size_t next_messages(Buffer to, uint64_t now);
  size_t next_acks(uint8_t *to, uint64_t now);
  uint64_t acks_due() const;
  // hold stores a reliable message until the switch.
  bool hold(Bytes message);

  Allocator allocator;
  Link *next = nullptr;
  Address server; // family 0: the server of Client::connect
  Session session;
  Channel reliable, bulk;
  Array<Binding> bindings;
  Array<uint8_t> waiting; // queued datagrams: each message after its size; payloads share bundles
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
  bool opened = false; // the session was open once
  Parting parting = Parting::none;
  uint8_t release[33] = {}; // message of the release
  uint32_t spent = 0;       // bytes of hellos sent without an answer of the server
  uint64_t follower = 0; // at a former link: connection id at the server that the client was handed over to
  uint64_t since = 0;    // start of the dial, of the open session, or of the time as former link

  // A handover of the server that is incomplete, and messages that wait for the switch.
  Notice *notice = nullptr;
  Message *first = nullptr;
  Message *last = nullptr;
  size_t held = 0;
};

} // namespace uplink::detail::client
