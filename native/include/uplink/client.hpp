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
// memory in create, bind and handle, an Encoder when the server has bound an RPC, a Decoder when the
// server binds one of the program's, and what ClientConfig::worlds says. Reliable data takes memory while
// it waits: ClientConfig::reliable_queue bounds what is sent, and what arrives is at most 64 segments of
// 1,149 bytes on each of two channels. During a handover it takes the memory of a second session, 64 KiB for
// the data of the handover, and what arrives from the other server before the switch, at most 256 KiB.
#pragma once

#include "uplink/codec.hpp"
#include "uplink/crypto.hpp"
#include "uplink/world.hpp"

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
  uint16_t bindings = 8;     // RPCs that can be bound, 1 to 256
  uint8_t handlers = 0;      // RPCs of the program that the server can call, at most 32
  size_t event_bytes = 0;    // memory of events; 0: 18,944 bytes, the minimum
  size_t datagram_bytes = 0; // memory of calls and messages that wait for a datagram; 0: 3,072, the minimum
  // Bytes of reliable data that wait to be sent or acknowledged, each message with its size of 1 or 2
  // bytes; 32 KiB to 64 MiB. Beyond them, the functions that send return Error::backlog.
  uint32_t reliable_queue = 262144;
  // Byte streams of the server are passed to the program, and it may open some, which send at most
  // stream_rate bytes a second together.
  bool streams = false;
  uint32_t stream_rate = 262144;
  // Worlds that the program can subscribe to at a time, at most 16. Each offer of the server takes the
  // memory of its message, at most 16 KiB for each of 16. A world takes up to 300 KB for messages that
  // are larger than a datagram, up to 272 KiB for messages for a tick, and up to 1 MiB for the initial
  // state, while it arrives.
  uint8_t worlds = 0;
  // The server may hand the client over to public addresses, and to loopback, private and link-local ones
  // if it has one of the same kind, or with local_handovers. server is the address of connect, if known.
  Address server;
  bool local_handovers = false;
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
  no_suite,    // no common cipher suite
  token_ahead, // issued by a clock that is over a minute ahead of the server's
  version,     // the server does not support this version
  busy,        // too many handshakes
  key,         // the server does not have the token's key
  quit,        // the server, or the program by close, ended the session
  shutdown,    // the server shuts down
  replaced,    // the client id has a new session
  violation,   // one end violated the protocol
  limit,       // the client exceeded a limit of the server
  refused,     // the server refuses the session for the time being
  // Why a client stays at its server.
  handover_data, // the data of the handover is not that of its notice
  not_bound,     // the other server has not answered the requests to bind in time
  superseded,    // another handover has begun
  answers,       // the server answers again
  no_memory,     // there is no memory for another session, or too many sessions end
  address,       // of a handover: see ClientConfig::local_handovers; or less has arrived than hellos take
  unreleased,    // the server that has handed the client over has not released it: it reconnects
  no_server      // the system reports that no program receives at the server's address
};

// text returns a description in English. It is never null.
const char *text(Reason r);

enum class EventType : uint8_t {
  connected,    // the session is open; value is 1 if there was one before
  reconnecting, // the session ended: call connect with a new token; value is the wait in ns
  disconnected, // the session ended, or could not begin; reconnecting is no use
  bound,        // calls of rpc are sent from now on
  bind_failed,  // value is the reason of messages.md, 2; data is a text that states it, or empty
  message,      // of the game; reliable is set if it came on the reliable channel
  answer,       // to request value: status 2 answer, 3 refused by the game, 4 not handled, 5 none will come
  shutdown,     // the server shuts down soon: finish, then close
  handover, // to the server whose address is data: status 0 it begins, 1 the client has switched, 2 it stays
  world,    // of subscribe: status 0 its messages arrive from now on, 1 the offer was refused, data is a
            // text that tells why, 2 it ended, 3 it is shown although objects of the view are missing: the
            // former view was shown for 100 messages of the new server, at least 3 s and at most 20 s
  quality,  // once a second: see stats
  new_socket,  // nothing arrives: continue from another local port, then call rebind
  server_call, // the server called an RPC: rpc is the number of handle, value the sequence from 0
  // Byte streams of the server; value is the stream, and differs in all streams of a client.
  stream_open,    // data is the name
  stream_data,    // data are the next bytes
  stream_end,     // all data came
  stream_aborted, // it is over, and not complete; data is the reason
  stream_done,    // an own stream is over: status 0 the server read all, 1 not, 2 it reads no such streams
  world_update,   // the receiver of a world decoded messages; value is the newest tick
  tick_message,   // of the game, which counts from tick value of a world on
  silent,         // the server has not answered for 1.25 s of calls: assign can be called. It comes again
                  // while those that were assigned do not answer either
  mismatch, // both ends differ, and play on without what only one of them has: data is a text that tells
            // what. status 1: in a world. Each text comes once
  tick_rate // the ticks of a world run at value millionths of their nominal rate at the server, which has
            // left 1 ± 0.05 (status 1) or returned (status 0): interpolation and the clock follow
};

struct Event {
  EventType type = EventType::quality;
  Reason reason = Reason::none;
  bool reliable = false;
  uint8_t status = 0;
  uint8_t rpc = 0;
  uint8_t world = 0; // of subscribe
  uint64_t value = 0;
  uint64_t missed = 0; // server_call: calls before it, after the previous event, that were lost
  // frame and data are valid until the next call of a function of the client.
  const Frame *frame = nullptr; // server_call: the arguments
  Bytes data;
};

// Stats counts since create, but for the round-trip times of the session.
struct Stats {
  uint64_t rtt = 0;     // ns, the mean of the middle third of the last 9 measurements; 0: none
  uint64_t min_rtt = 0; // ns, the lowest of the last 30 to 40 s
  uint64_t sent = 0;    // datagrams
  uint64_t sent_bytes = 0;
  uint64_t received = 0; // accepted datagrams
  uint64_t dropped = 0;  // datagrams that were not accepted
  uint64_t missing = 0;  // datagrams of the server that did not arrive, or not yet
  uint64_t calls = 0;
  uint64_t acks = 0; // acks of RPCs
  uint64_t server_calls = 0;
  uint64_t server_calls_dropped = 0; // payloads that were late or damaged, and calls without room
  uint8_t suite = 0;
  // The largest datagram that the path is known to carry to the server, in bytes; 0 while that is not
  // known. Below 1,200, larger datagrams are sent in parts.
  uint16_t datagram_size = 0;
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
  // ones. *rpc is its number. Error::full: there are too many. Error::invalid: the RPC is bound already,
  // since a session binds each once, or the configuration is invalid.
  Error bind(const Schema &s, const BindConfig &c, uint8_t *rpc);

  // handle registers an RPC that the server calls by the name of the schema, whose fields must be
  // those of the server. The schema must outlive the client. *handler is Event::rpc of its calls. Call
  // it before connect. Error::full: ClientConfig::handlers are registered. Error::invalid: the name is
  // registered, or ClientConfig::event_bytes is too small for a frame.
  Error handle(const Schema &s, uint8_t *handler);

  // connect begins a session with the token's text of n characters, after the wait of the last
  // reconnecting event. It ends a session that is open. Error::authentication: it is no token.
  Error connect(const char *token, size_t n, uint64_t now);
  // assign continues at the server that the backend has assigned to the player, with its token. After
  // reconnecting it is like connect, but at another address without another socket. While the session is
  // open, as after silent, it connects there beside the session and switches when it is ready; if the
  // current server answers before, the client stays. Events are then those of a handover. While none has
  // answered, it tries up to three servers at the same time, those that were assigned last, and chooses the
  // first that answers.
  // Error::full: a handover has begun. Error::authentication: it is no token.
  Error assign(const Address &server, const char *token, size_t n, uint64_t now);
  // close ends the session: three datagrams with the code, 0 or 1, leave.
  void close(uint8_t code, uint64_t now);
  // connected reports whether the session is open.
  bool connected() const;

  // receive takes a datagram of a server, at most 1,472 bytes.
  void receive(Bytes datagram, uint64_t now);
  // next_datagram writes the next datagram to send and returns its size, or 0. to has room for
  // 1,200 bytes; if it has 1,472, the client searches for the largest datagram of the path. Send them
  // with the "don't fragment" flag to *server. Its family is 0 for the server for which the program has
  // called connect; during a handover, after it, and after assign, it is 4 or 6.
  size_t next_datagram(Buffer to, Address *server, uint64_t now);
  // uses reports whether there is a session with a server, as next_datagram names it.
  bool uses(const Address &server) const;
  // next_timeout returns when next_datagram is to be called again, if nothing else happens.
  uint64_t next_timeout() const;
  // unreachable tells that the system reports that no program receives at a server's address, as
  // next_datagram names it: ECONNREFUSED of its socket. Before the server has answered, an attempt to connect
  // then ends with Reason::no_server: at once if ClientConfig::server is a loopback address, otherwise unless
  // an answer follows within 500 ms, since such reports can be forged. Later reports have no effect.
  void unreachable(const Address &server, uint64_t now);
  // rebind continues the session from another local address: the program has opened a new socket.
  void rebind(uint64_t now);
  // poll_event returns the next event and reports whether there was one.
  bool poll_event(Event *e);

  // call codes and sends one call of an RPC. Error::closed: the RPC is not bound now. Error::full: too
  // much waits for a datagram. Error::backlog, of a reliable RPC: ClientConfig::reliable_queue is full, or
  // 256 reliable messages wait; the server would get all of them at once, and limits the rate of calls.
  Error call(uint8_t rpc, const Frame &f, uint64_t now);
  // next_call reports whether an RPC is bound. *sequence is the number that its next call has at the server,
  // from 0 in each session, and *session differs in all sessions of the client and is not 0.
  bool next_call(uint8_t rpc, uint64_t *session, uint64_t *sequence) const;
  // pace returns the state of an RPC's jitter buffer at the server. Call it each tick, and start the next
  // tick after Pace::interval. Of several RPCs that are called in the same tick, one is enough.
  Pace pace(uint8_t rpc, uint64_t now) const;
  // send sends a message of the game: reliable up to 8,192 bytes, otherwise 28 less than
  // Stats::datagram_size, or than 1,200 if that is more. Error::full: ClientConfig::datagram_bytes wait for
  // a datagram. Error::backlog: ClientConfig::reliable_queue has no room. Error::too_fast: messages and
  // requests exceed 64 KiB a second with bursts of 128 KiB, each with 64 bytes more.
  Error send(Bytes message, bool reliable, uint64_t now);
  // reliable_room returns the size of the largest reliable message or request that can be sent now, at most
  // 8,192: what the limits of Error::backlog and Error::too_fast leave. It is 0 without an open session.
  size_t reliable_room(uint64_t now) const;
  // request sends a request of at most 8,192 bytes, whose answer is an event with *id as value. Error::full:
  // 64 requests have no answer. Error::backlog and Error::too_fast are those of send.
  Error request(Bytes body, uint32_t *id, uint64_t now);
  Error cancel(uint32_t id);

  // open_stream opens a byte stream with a name of 1 to 128 bytes, which does not begin with
  // "uplink.". It ends with stream_done or with the session. Error::full: 8 are open, or too many were
  // opened: 16 a second. Error::invalid: the name, or there is no ClientConfig::streams.
  Error open_stream(Bytes name, uint32_t *stream, uint64_t now);
  // write_stream sends the first *written bytes. Error::full: none; try later.
  Error write_stream(uint32_t stream, Bytes data, size_t *written, uint64_t now);
  // end_stream tells that all was written; abort_stream that the stream is over before, with a reason
  // of at most 256 bytes. Error::full: try again. Error::closed: the stream is not open.
  Error end_stream(uint32_t stream);
  Error abort_stream(uint32_t stream, Bytes reason);
  // stop_stream ends the reading of a stream of the server; data that is on its way is ignored.
  Error stop_stream(uint32_t stream);

  // subscribe subscribes to a world by its name, in this session and in later ones. The receiver must
  // outlive the client, or the subscription. *world is its number, of Event::world. Acks leave alone at
  // most ack_hz times a second, 1 to 1000; 0 means 30. Error::full: there are ClientConfig::worlds.
  // Error::invalid: the name, or the name or the receiver has a subscription.
  Error subscribe(const char *name, WorldReceiver &r, uint16_t ack_hz, uint8_t *world);
  // unsubscribe ends a subscription. Error::backlog: try again.
  Error unsubscribe(uint8_t world);

  Stats stats() const;

protected:
  Client() = default;
  ~Client() = default;
};

} // namespace uplink
