// The client's end of a session, below the layer of messages: handshake, encryption, heartbeats,
// path migration, close, path size, reports. datagrams.md, 2 to 8 and 11. Times are microseconds.
#pragma once

#include <algorithm>

#include "src/client/channel.hpp"
#include "src/client/datagram.hpp"
#include "src/client/parts.hpp"
#include "src/client/path.hpp"
#include "src/client/path_rate.hpp"
#include "src/client/path_size.hpp"
#include "src/client/token.hpp"
#include "uplink/client.hpp"

namespace uplink::detail::client {

constexpr uint64_t never = UINT64_MAX;
constexpr uint64_t ms = 1000, second = 1000000;

// Bucket is a token bucket.
struct Bucket {
  uint64_t level = 0, at = 0;
  // take removes n tokens if there are that many. The bucket gains rate tokens per second, up to
  // burst.
  bool take(uint64_t n, uint64_t rate, uint64_t burst, uint64_t now);
};

enum class State : uint8_t { idle, connecting, open, closing };

class Session {
public:
  // configure must be called first. The allocator is used for received parts.
  void configure(const Allocator &a, const Crypto &c, uint8_t offered, uint64_t timeout);
  // start starts a handshake. It sends at most hellos hellos while the server has not answered; 0
  // means no limit.
  Error start(const Token &t, uint64_t now, unsigned hellos = 0);
  State state() const { return state_; }
  // answered reports whether the server has answered. A server that has not answered has not
  // received the token.
  bool answered() const { return message_size_ > 0; }
  // reason returns the reason for the end of the session. It is set when the state becomes idle.
  Reason reason() const { return reason_; }
  uint64_t connection() const { return connection_; }
  // accepted_number returns the packet number of the last accepted datagram.
  uint64_t accepted_number() const { return accepted_number_; }
  size_t overhead() const { return sealer_.overhead(); }
  uint64_t rtt() const { return path_.rtt(); }
  // silence returns the time since the last datagram of the server.
  uint64_t silence(uint64_t now) const { return now - served_; }
  // ask requests an answer from the server.
  void ask() {
    if (state_ == State::open) beat(true);
  }

  // receive handles a datagram and reports whether it belongs to this session. The body of kind
  // data or reliable is valid until the next call; its size is 0 if there is none.
  bool receive(Bytes datagram, uint64_t now, uint8_t *kind, Bytes *body);
  // advance handles timers that are due.
  void advance(uint64_t now);
  // next writes the next datagram that contains no messages and returns its size, or 0. to has room
  // for max_sent bytes. Probes are sent only if it has room for max_datagram bytes.
  size_t next(Buffer to, uint64_t now);
  // send writes a datagram and returns its size, or 0. A body of kind data has at most max_data
  // bytes, one of kind reliable at most max_body. If the path may not carry the datagram, send
  // writes the first part, and next writes the others. next must have returned 0 before.
  size_t send(uint8_t *to, uint8_t kind, Bytes body, uint64_t now);
  // next_report writes a datagram with a report alone, if it should not wait any longer for a message,
  // and returns its size, or 0.
  size_t next_report(uint8_t *to, uint64_t now) { return now >= report_at() ? send_report(to, {}, now) : 0; }
  // path_rate returns the rate that the path carries as far as is known, in bytes/s with all headers.
  double path_rate() const { return rate_.rate(); }
  // streams returns what streams may send now: what all other traffic leaves of the path.
  Allowance streams(uint64_t now);
  // max_data returns the maximum size of a body of kind data.
  size_t max_data() const { return std::max<size_t>(size_.size(), max_sent) - (max_sent - max_body); }
  uint64_t timeout() const;
  void close(uint8_t code, Reason reason, uint64_t now);
  // unreachable handles a report that there is no server. here reports whether the server's address
  // is on this machine.
  void unreachable(bool here, uint64_t now);
  void rebind(uint64_t now);
  // take_deaf reports once that the client should continue from another socket.
  bool take_deaf();
  void fill(Stats *s) const;

private:
  void end(Reason r);
  bool handshake(Bytes datagram, uint64_t now);
  bool on_welcome(Bytes message, uint64_t now);
  bool on_unknown(Bytes header, uint64_t now);
  void on_heartbeat(Bytes body, uint64_t now);
  void on_close(Bytes body);
  void accepted(uint8_t kind, uint64_t now);
  void extend(uint64_t now, uint64_t time);
  void beat(bool request) {
    if (request || beat_ == 0) beat_ = request ? 2 : 1;
  }
  // idle reports whether the session is idle: it sends heartbeats less often.
  bool idle() const;
  uint64_t interval() const;
  // around returns the size of the header and tag of the next datagram.
  size_t around(uint8_t kind) const {
    return (long_ ? max_datagram_header : kind == data ? 2U : 3U) + sealer_.overhead();
  }
  // report_at returns when a report is to be sent alone.
  uint64_t report_at() const { return long_ ? never : arrivals_.deadline(); }
  // reports reports whether a message of n bytes is sent with a report.
  bool reports(size_t n, uint64_t now) const {
    return !long_ && now >= arrivals_.due() && around(heartbeat) + report_size + n <= min_datagram;
  }
  // forget_path forgets what was measured, because the path has changed.
  void forget_path() {
    size_ = {};
    rate_.restart();
  }
  size_t seal(uint8_t *to, uint8_t kind, Bytes body, uint64_t now);
  // finish encrypts the body of n bytes after a header, and counts the datagram.
  size_t finish(uint8_t *to, size_t header, size_t n, uint64_t now);
  size_t send_report(uint8_t *to, Bytes message, uint64_t now);
  size_t send_part(uint8_t *to, uint64_t now);
  size_t send_probe(Buffer to, uint64_t now);
  size_t send_hello(uint8_t to[max_sent], uint64_t now);
  size_t send_heartbeat(uint8_t to[max_sent], uint64_t now);

  Crypto crypto_;
  uint64_t timeout_ = 15000000;

  // The handshake.
  Token token_;
  Exchange exchange_;
  uint64_t nonce_ = 0;
  uint64_t hello_at_ = 0, hello_sent_ = 0, hello_wait_ = 0, started_ = 0, fail_at_ = never;
  uint8_t message_[max_message] = {};
  uint8_t ephemeral_[32] = {};
  uint8_t cookie_[24] = {};
  Reason refusal_ = Reason::none;
  uint8_t offered_ = 0;
  State state_ = State::idle;
  Reason reason_ = Reason::none;
  uint16_t message_size_ = 0;
  uint16_t hellos_ = 0;               // hellos with a message sent
  uint8_t early_ = 0, max_early_ = 0; // hellos without a message: number sent, maximum number

  // Heartbeats.
  uint64_t sent_ = 0, calm_ = 0, received_ = 0, served_ = 0;
  uint64_t long_until_ = 0, asked_ = never, loss_at_ = never;
  uint32_t wait_ = 2000000; // maximum wait for an answer
  PathEstimator path_;
  uint32_t peer_ = 0; // ask in the server's last heartbeat, received at peer_at_; 0: none
  uint64_t peer_at_ = 0;
  Bucket answers_, challenges_;

  // Reports in both directions.
  Arrivals arrivals_;
  PathRate rate_;

  // The path size.
  PathSize size_;
  Assembly parts_;
  Splitter splitter_;
  uint16_t largest_ = 0;      // size of the largest datagram received since the last heartbeat was sent
  bool probe_ = false;        // a probe is due
  uint16_t probe_answer_ = 0; // size of a probe to answer; 0: none

  // The session.
  uint64_t connection_ = 0;
  uint64_t number_ = 0;
  uint64_t accepted_number_ = 0;
  Window window_;
  Sealer sealer_;
  Opener opener_;
  Stats stats_;
  uint8_t responses_n_ = 0, responses_[4][9] = {};
  uint8_t forms_[256] = {}; // first bytes of the last datagrams, without bits of the packet number
  uint8_t body_[max_datagram] = {};
  uint8_t suite_ = 0, generation_ = 0, closes_ = 0, close_code_ = 0;
  uint8_t beat_ = 0; // 1: a heartbeat is due; 2: one that requests an answer
  bool busy_ = false, first_ = true, long_ = true, deaf_ = false;
};

} // namespace uplink::detail::client
