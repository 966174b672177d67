// The client of an uplink server, without sockets and without a clock: the program, or the socket
// driver of socket.hpp, passes datagrams and the time. docs/spec/datagrams.md and messages.md
// specify the protocol.
//
//   connect(token, now); then, in the program's loop:
//     receive(datagram, now) for each datagram of a server
//     call and the functions named send
//     next_datagram(buffer, &server, now) until it returns 0; send each to that server
//     poll_event until it returns false
//   again at next_timeout() at the latest.
//
// Times are nanoseconds of a monotonic clock. A Client is for one thread at a time. It allocates
// memory in create, bind and handle, for an Encoder when the server has bound an RPC, for a Decoder
// when the server binds an RPC of the program, and for worlds as described at ClientConfig::worlds.
// Waiting reliable data takes memory: sent data up to ClientConfig::reliable_queue, and received
// data up to 64 segments of 1,149 bytes on each of two channels. A handover takes the memory of a
// second session, 64 KiB for the data of the handover, and up to 256 KiB for the data that the
// other server sends before the switch.
#pragma once

#include "uplink/codec.hpp"
#include "uplink/crypto.hpp"
#include "uplink/world.hpp"

namespace uplink {

// Address is an IP address and a UDP port.
struct Address {
  uint8_t family = 0;  // 4 or 6
  uint8_t ip[16] = {}; // in network byte order; IPv4 uses the first 4 bytes
  uint16_t port = 0;
};

// parse_address parses an IPv4 address with a port, such as 127.0.0.1:7777, or an IPv6 address in
// brackets with one. Names are not resolved. Error::invalid: it is neither.
Error parse_address(const char *text, Address *a);

// IssuerKey issues connect tokens. Backends, tests and tools have one, but a game's client must
// not.
struct IssuerKey {
  uint8_t public_key[32] = {};
  uint8_t token_key[32] = {};
};

// parse_key parses the text of a server's or an issuer's key. Error::authentication: the text is no
// valid key.
Error parse_key(const Crypto &c, const char *text, IssuerKey *key);
// development_key returns the public key that servers accept on loopback addresses.
Error development_key(const Crypto &c, IssuerKey *key);

// Claims are the contents of a token. Times are milliseconds since 1970-01-01 00:00 UTC.
struct Claims {
  uint64_t client_id = 0;
  uint64_t issued = 0;
  uint64_t expires = 0; // at most 24 h after issued
  Address servers[8];
  size_t n = 0;    // servers, 1 to 8
  Bytes user_data; // at most 256 bytes
};

// token_text is the maximum size of the text of a token in bytes, including its final zero.
constexpr size_t token_text = 779;

// issue_token writes the text of a token, with a final zero. Error::invalid: claims out of range.
Error issue_token(const Crypto &c, const IssuerKey &key, const Claims &claims, char *text, size_t capacity);

// LogLevel is how important a line of a log is: debug is about single messages.
enum class LogLevel : uint8_t { debug, info, warning };

// Log gets lines of text, without line feed, in functions of the client: it must not call the client. A null
// function means no log.
struct Log {
  void *context = nullptr;
  void (*write)(void *context, LogLevel level, const char *text) = nullptr;
};

struct ClientConfig {
  Log log;                // each event when it is polled, attempts to connect, and datagrams that are dropped
  Crypto crypto;          // such as library_crypto()
  uint8_t offered = 0;    // suites that the client offers, bit i for suite i; 0: all but none
  uint64_t timeout = 0;   // ns without a datagram that end a session; 0: 15 s; at least 2 s
  uint16_t bindings = 8;  // RPCs that can be bound, 1 to 256
  uint8_t handlers = 0;   // RPCs of the program that the server can call, at most 32
  size_t event_bytes = 0; // memory of events; 0: 18,944 bytes, the minimum
  size_t datagram_bytes = 0; // memory of calls and messages that wait for a datagram; 0: 3,072, the minimum
  // Maximum size of the reliable data that waits to be sent or acknowledged, in bytes, 32 KiB to 64
  // MiB. Each message counts with 1 or 2 bytes more. If there is no room, the functions that send
  // return Error::backlog.
  uint32_t reliable_queue = 262144;
  // Enables byte streams: the program receives those of the server, and can open streams itself,
  // which together send at most stream_rate bytes a second.
  bool streams = false;
  uint32_t stream_rate = 262144;
  // Maximum number of simultaneous subscriptions to worlds, at most 16. Each of up to 16 offers of
  // the server takes the memory of its message, at most 16 KiB. A subscribed world takes up to 300
  // KB for messages that are larger than a datagram, up to 272 KiB for tick messages, and up to 1
  // MiB for the initial state while that is received.
  uint8_t worlds = 0;
  // The server may hand the client over to public addresses. Loopback, private and link-local
  // addresses are accepted only if the server itself has an address of the same kind, or if
  // local_handovers is set. server is the address of the server of connect; its family is 0 if it
  // is unknown.
  Address server;
  bool local_handovers = false;
};

// Reason is the reason why a session ended or could not begin.
enum class Reason : uint8_t {
  none,
  timeout,       // no datagram was received from the server in time
  lost,          // the server has no such session any more
  token_expired, // codes of a welcome
  token_used,
  token_invalid, // altered, or issued with another key
  token_server,  // issued for another server or route
  token_early,   // issued before the server started
  server_full,
  no_suite,    // no common cipher suite
  token_ahead, // issued by a clock that is over a minute ahead of the server's
  version,     // the server does not support this version
  busy,        // too many handshakes
  key,         // the server does not have the token's key
  quit,        // the server, or the program by close, ended the session
  shutdown,    // the server shuts down
  replaced,    // the client id has opened another session
  violation,   // one end violated the protocol
  limit,       // the client exceeded a limit of the server
  refused,     // the server refuses the session for the time being
  // Reasons why a handover failed, so that the client stays at its server.
  handover_data, // the data of the handover differs from its announcement
  not_bound,     // the other server did not answer the requests to bind in time
  superseded,    // another handover replaced this one
  answers,       // the current server answers again
  no_memory,     // there is no memory for another session, or too many sessions are ending
  // The address is not permitted, see ClientConfig::local_handovers, or the client has received fewer
  // bytes than the hellos to the address would have.
  address,
  unreleased, // the former server did not release the client, which reconnects
  no_server   // the system reports that no program receives at the server's address
};

// text returns a description in English. It is never null.
const char *text(Reason r);

// EventType is the type of an Event. The comments state the members of Event that it sets.
enum class EventType : uint8_t {
  connected,    // the session is open; value is 1 if there was one before
  reconnecting, // the session ended: call connect with a new token after value ns
  disconnected, // the session ended or could not begin, and connect would fail again; see reason
  bound,        // rpc is bound: its calls are sent from now on
  bind_failed,  // value is the reason of messages.md, 2; data is a text that describes it, or empty
  message,      // message of the game in data; reliable is set if it came on the reliable channel
  answer,       // answer to request value: status 2 answered, 3 refused by the game, 4 not handled,
                // 5 no answer will arrive
  shutdown,     // the server shuts down soon: finish, then close
  handover,     // handover to the server whose address is in data: status 0 it begins, 1 the client has
                // switched, 2 the client stays, see reason
  world,        // world of subscribe: status 0 its messages arrive from now on, 1 the client refused the
                // offer, data is the text of the cause, 2 the stream ended, 3 it is shown although
                // objects of the view are missing, because they did not arrive within 100 messages of
                // the new server, which take at least 3 s and at most 20 s
  quality,      // once a second: read stats
  new_socket,   // no datagrams arrive: open a socket with another local port, then call rebind
  server_call,  // the server called RPC rpc of handle; value is the sequence number, from 0
  // Byte streams of the server. value identifies the stream among all streams of the client.
  stream_open,    // data is the name of the stream
  stream_data,    // data contains the next bytes
  stream_end,     // all data was received
  stream_aborted, // the stream ended early; data is the reason
  stream_done,    // a stream of the client ended: status 0 the server read all data, 1 it did not, 2 it
                  // does not accept streams with this name
  world_update,   // the receiver of a world decoded messages; value is the newest tick
  tick_message,   // message of the game for tick value of a world
  silent,         // the server has not answered for 1.25 s although the client called RPCs: assign can be
                  // called. The event is repeated while the servers of assign do not answer either
  mismatch,       // the ends differ, and continue without the parts that only one of them has: data is
                  // a text that describes them. status 1: in a world. Each text is reported once
  tick_rate       // the rate of a world's ticks at the server has left 1 ± 0.05 (status 1) or returned
                  // (status 0). value is the rate in millionths of the nominal one, which interpolation
                  // and the clock follow
};

// Statuses of the events world, handover, answer and stream_done, as Event::status has them.
enum class WorldStatus : uint8_t { received, refused, ended, partial };
enum class HandoverStatus : uint8_t { begins, switched, stays };
enum class AnswerStatus : uint8_t { answered = 2, refused, unhandled, none };
enum class StreamStatus : uint8_t { read, stopped, unread };

// text returns the name of a type of events, status_text the description of a status in English, which is
// empty if the type has none. They are never null.
const char *text(EventType t);
const char *status_text(EventType t, uint8_t status);

struct Event {
  EventType type = EventType::quality;
  Reason reason = Reason::none;
  bool reliable = false;
  uint8_t status = 0;
  uint8_t rpc = 0;
  uint8_t world = 0; // number that subscribe returned
  uint64_t value = 0;
  uint64_t missed = 0; // server_call: number of calls that were lost since the previous event of the RPC
  // frame and data are valid until the next call of a function of the client.
  const Frame *frame = nullptr; // server_call: the arguments
  Bytes data;
};

// describe writes what an event says, in English: its type, number, status, reason and text. It writes at
// most capacity bytes with a final zero, and returns the number of characters.
size_t describe(const Event &e, char *to, size_t capacity);

// Stats are counts since create, and the current round-trip times and datagram size.
struct Stats {
  uint64_t rtt = 0;     // ns, the mean of the middle third of the last 9 measurements; 0: none
  uint64_t min_rtt = 0; // ns, the lowest of the last 30 to 40 s
  uint64_t sent = 0;    // datagrams
  uint64_t sent_bytes = 0;
  uint64_t received = 0; // accepted datagrams
  uint64_t dropped = 0;  // datagrams that were not accepted
  uint64_t missing = 0;  // datagrams of the server that have not arrived so far
  uint64_t calls = 0;
  uint64_t acks = 0; // acks of RPCs
  uint64_t server_calls = 0;
  uint64_t server_calls_dropped = 0; // late or damaged payloads, and calls for which there was no memory
  uint8_t suite = 0;
  // Size of the largest datagram that is known to reach the server, in bytes, or 0 if it is
  // unknown. If it is below 1,200, larger datagrams are sent in parts.
  uint16_t datagram_size = 0;
  // Rate of the path to the server as far as is known, in bytes/s with all headers down to IP, and
  // the time that the last measured datagram waited in its queue, in ns. Reports of the server show
  // both. Byte streams use what other traffic leaves of the rate.
  uint64_t path_rate = 0;
  uint64_t path_queue = 0;
};

struct BindConfig {
  Codec codec = Codec::adaptive;
  bool reliable = false;
  uint16_t ring = 64; // number of frames that this end stores, 2 to 256
  uint8_t copies = 0; // see EncoderConfig
  // Number of later calls that a call waits for, to share a payload with them; 0 to 7.
  uint8_t batch = 0;
  const Prior *prior = nullptr; // null: the built-in one
};

class Client {
public:
  static Error create(const Allocator &a, const ClientConfig &c, Client **out);
  static void destroy(Client *c);

  // bind requests to bind the RPC of a schema, in this session and in later ones, and stores its
  // number in *rpc. The schema must outlive the client. Error::full: ClientConfig::bindings RPCs
  // are bound. Error::invalid: the configuration is invalid, or the RPC is bound already.
  Error bind(const Schema &s, const BindConfig &c, uint8_t *rpc);

  // handle registers an RPC that the server can call by the name of the schema. The schema must
  // have the fields of the server and outlive the client. *handler is the Event::rpc of its calls.
  // Call handle before connect. Error::full: ClientConfig::handlers RPCs are registered.
  // Error::invalid: the name is registered already, or ClientConfig::event_bytes is too small for a
  // frame.
  Error handle(const Schema &s, uint8_t *handler);

  // connect begins a session with the token's text of n characters, after the wait of the last
  // reconnecting event. It ends an open session. Error::authentication: the text is no valid token.
  Error connect(const char *token, size_t n, uint64_t now);
  // assign connects to a server that the backend has assigned to the player, with its token. After
  // a reconnecting event it replaces connect, and uses the same socket for another address. If the
  // session is open, for example after silent, the client connects to the server at the same time
  // and switches when the new session is ready, with the events of a handover; if the current
  // server answers first, the client stays. The client tries up to three servers at the same time,
  // the ones assigned last, and chooses the first that answers. Error::full: a handover is in
  // progress. Error::authentication: the text is no valid token.
  Error assign(const Address &server, const char *token, size_t n, uint64_t now);
  // close ends the session, and sends three datagrams with the code, which is 0 or 1.
  void close(uint8_t code, uint64_t now);
  // connected reports whether the session is open.
  bool connected() const;

  // receive processes a datagram from a server, at most 1,472 bytes.
  void receive(Bytes datagram, uint64_t now);
  // receive_at is receive for a datagram that arrived before now, in the order of arrival: the round-trip
  // time and the clocks of worlds then do not contain how long it waited in the program. The time of
  // arrival is that of the clock of now.
  void receive_at(Bytes datagram, uint64_t arrived, uint64_t now);
  // next_datagram writes the next datagram to send and returns its size, or 0. to has room for at
  // least 1,200 bytes; if it has 1,472, the client searches for the largest datagram that reaches
  // the server. Send each datagram to *server, with the "don't fragment" flag. The family of
  // *server is 0 for the server of connect, and 4 or 6 during and after a handover and after
  // assign.
  size_t next_datagram(Buffer to, Address *server, uint64_t now);
  // uses reports whether there is a session with a server, whose address is one that next_datagram
  // returned.
  bool uses(const Address &server) const;
  // next_timeout returns the time at which to call next_datagram again at the latest.
  uint64_t next_timeout() const;
  // unreachable passes on the system's report (ECONNREFUSED) that no program receives at a server's
  // address, which is one that next_datagram returned. If the server has not answered yet, the
  // attempt to connect ends with Reason::no_server: at once if ClientConfig::server is a loopback
  // address, otherwise after 500 ms without an answer, because such reports can be forged. Once the
  // server has answered, reports have no effect.
  void unreachable(const Address &server, uint64_t now);
  // rebind continues the session from another local address, after the program has opened a new
  // socket.
  void rebind(uint64_t now);
  // poll_event returns the next event and reports whether there was one.
  bool poll_event(Event *e);

  // call encodes and sends one call of an RPC. Error::unbound: the RPC is not bound yet.
  // Error::closed: there is no session.
  // Error::full: ClientConfig::datagram_bytes wait for a datagram. Error::backlog, for a reliable
  // RPC only: ClientConfig::reliable_queue is full, or 256 reliable messages wait; after a delay
  // the server receives them all at once, and it limits the rate of calls.
  Error call(uint8_t rpc, const Frame &f, uint64_t now);
  // next_call reports whether an RPC is bound. *sequence is the sequence number of its next call,
  // which starts from 0 in each session. *session identifies the session: it is not 0, and each
  // session of the client has another value.
  bool next_call(uint8_t rpc, uint64_t *session, uint64_t *sequence) const;
  // pace returns the state of an RPC's jitter buffer at the server. Call it each tick, and start the next
  // tick after Pace::interval. Of several RPCs that are called in the same tick, one is enough.
  Pace pace(uint8_t rpc, uint64_t now) const;
  // send sends a message of the game. A reliable message has at most 8,192 bytes; another one has
  // at most 28 bytes less than Stats::datagram_size or 1,200, whichever is larger. Error::full:
  // ClientConfig::datagram_bytes wait for a datagram. Error::backlog: ClientConfig::reliable_queue
  // has no room. Error::too_fast: messages and requests, each counted with 64 bytes more, exceed 64
  // KiB a second with bursts of 128 KiB.
  Error send(Bytes message, bool reliable, uint64_t now);
  // reliable_room returns the size in bytes of the largest reliable message or request that the
  // limits of Error::backlog and Error::too_fast permit now, at most 8,192. It is 0 without an open
  // session.
  size_t reliable_room(uint64_t now) const;
  // request sends a request of at most 8,192 bytes. Its answer is an event whose value is *id.
  // Error::full: 64 requests wait for an answer. Error::backlog and Error::too_fast are those of
  // send.
  Error request(Bytes body, uint32_t *id, uint64_t now);
  Error cancel(uint32_t id);

  // open_stream opens a byte stream with a name of 1 to 128 bytes, which does not begin with
  // "uplink.". It ends with stream_done or with the session. Error::full: 8 streams are open, or
  // more than 16 a second were opened. Error::invalid: the name is invalid, or
  // ClientConfig::streams is not set.
  Error open_stream(Bytes name, uint32_t *stream, uint64_t now);
  // write_stream sends the first *written bytes of data, about what the path carries in 50 ms.
  // Error::full: nothing was written; try later.
  Error write_stream(uint32_t stream, Bytes data, size_t *written, uint64_t now);
  // end_stream ends a stream after its last byte. abort_stream ends it early, with a reason of at
  // most 256 bytes. Error::full: try again later. Error::closed: the stream is not open.
  Error end_stream(uint32_t stream);
  Error abort_stream(uint32_t stream, Bytes reason);
  // stop_stream stops reading a stream of the server; data in flight is ignored.
  Error stop_stream(uint32_t stream);

  // subscribe subscribes to a world by its name, in this session and in later ones. The receiver
  // must outlive the client, or the subscription. *world is its number, the Event::world of its
  // events. The client sends at most ack_hz datagrams a second that contain only acks of the world,
  // 1 to 1000; 0 means 30. Error::full: there are ClientConfig::worlds subscriptions.
  // Error::invalid: the name is invalid, or the name or the receiver already has a subscription.
  Error subscribe(const char *name, WorldReceiver &r, uint16_t ack_hz, uint8_t *world);
  // unsubscribe ends a subscription. Error::backlog: try again later.
  Error unsubscribe(uint8_t world);

  Stats stats() const;

protected:
  Client() = default;
  ~Client() = default;
};

} // namespace uplink
