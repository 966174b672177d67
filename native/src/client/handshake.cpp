// The handshake of a session. datagrams.md, 4.1.
#include <algorithm>

#include "src/client/session.hpp"

namespace uplink::detail::client {
namespace {

Reason reason_of_code(uint64_t code) {
  static const Reason reasons[] = {Reason::none,          Reason::token_expired, Reason::token_used,
                                   Reason::token_invalid, Reason::token_server,  Reason::token_early,
                                   Reason::server_full,   Reason::no_suite,      Reason::token_ahead};
  return code < 9 ? reasons[code] : Reason::violation;
}

// An unauthenticated refusal counts if nothing else arrives within this time.
constexpr uint64_t refusal_wait = 500 * ms;
constexpr uint64_t min_hello_wait = 100 * ms, max_hello_wait = 250 * ms;

// hello_wait returns the wait that follows a wait or a round trip of the given time.
uint64_t hello_wait(uint64_t d) {
  return std::clamp(d * 3 / 2, min_hello_wait, max_hello_wait);
}

} // namespace

Error Session::start(const Token &t, uint64_t now, unsigned hellos) {
  token_ = t;
  early_ = 0;
  max_early_ = static_cast<uint8_t>(hellos);
  uint8_t nonce[8];
  if (!crypto_.random(crypto_.context, ephemeral_, 32) || !crypto_.random(crypto_.context, nonce, 8))
    return Error::no_memory;
  nonce_ = load_little(nonce, 8);
  std::memset(cookie_, 0, sizeof(cookie_));
  message_size_ = 0;
  started_ = hello_at_ = now;
  hello_wait_ = min_hello_wait;
  fail_at_ = never;
  hellos_ = 0;
  refusal_ = reason_ = Reason::none;
  window_ = {};
  number_ = 0;
  busy_ = deaf_ = false;
  first_ = long_ = true;
  long_until_ = 0;
  asked_ = loss_at_ = never;
  wait_ = 2 * second;
  beat_ = 0;
  peer_ = 0;
  path_ = {};
  arrivals_ = {};
  rate_.start(now);
  generation_ = 0;
  responses_n_ = 0;
  closes_ = 0;
  size_ = {};
  parts_.clear();
  splitter_.clear();
  largest_ = probe_answer_ = 0;
  probe_ = false;
  state_ = State::connecting;
  return Error::ok;
}

bool Session::handshake(Bytes d, uint64_t now) {
  Handshake h;
  if (!parse_handshake(d, &h)) return false;
  if (h.type == unknown) return on_unknown(h.data, now);
  if (state_ != State::connecting || h.nonce != nonce_) return false;
  if (h.type == retry) {
    copy(cookie_, h.data.data, 24);
    if (refusal_ == Reason::no_server) { // a server exists and has answered
      refusal_ = Reason::none;
      fail_at_ = never;
    }
    if (message_size_ == 0) {
      uint8_t payload[1 + max_sealed];
      payload[0] = offered_;
      copy(payload + 1, token_.sealed, token_.sealed_size);
      const size_t size = 1 + token_.sealed_size;
      exchange_.start(crypto_, token_.public_key);
      if (!exchange_.write(ephemeral_, token_.public_key, {payload, size}, message_)) {
        end(Reason::token_invalid);
        return true;
      }
      message_size_ = static_cast<uint16_t>(size + 48);
      hello_at_ = now;
      hello_wait_ = hello_wait(now - started_);
    }
  } else if (h.type == welcome) {
    return message_size_ > 0 && on_welcome(h.data, now);
  } else if (h.type == refuse) {
    const uint8_t r = h.data.data[0];
    if (r == 2 || r == 4) {
      if (refusal_ == Reason::none) refusal_ = r == 2 ? Reason::busy : Reason::refused;
    } else if (fail_at_ == never) {
      refusal_ = r == 1 ? Reason::version : Reason::key;
      fail_at_ = now + refusal_wait;
    }
  }
  return true;
}

void Session::unreachable(bool here, uint64_t now) {
  if (state_ != State::connecting || refusal_ != Reason::none || message_size_ > 0) return;
  refusal_ = Reason::no_server;
  fail_at_ = here ? now : now + refusal_wait;
}

bool Session::on_welcome(Bytes message, uint64_t now) {
  uint8_t payload[10], up[32], down[32];
  if (!exchange_.read(ephemeral_, message, payload)) return false;
  suite_ = payload[9];
  if (payload[0] != 0) {
    end(reason_of_code(payload[0]));
    return true;
  }
  if (suite_ >= suites || (offered_ >> suite_ & 1) == 0) {
    end(Reason::violation);
    return true;
  }
  connection_ = load_little(payload + 1, 8);
  exchange_.finish(up, down);
  sealer_.start(crypto_, suite_, up);
  opener_.start(crypto_, suite_, down);
  wipe(up, 32);
  wipe(down, 32);
  wipe(ephemeral_, 32);
  state_ = State::open;
  if (hellos_ == 1) path_.measured(now, now - hello_sent_);
  sent_ = calm_ = received_ = served_ = now;
  beat(true);
  return true;
}

size_t Session::send_hello(uint8_t to[max_sent], uint64_t now) {
  Hello h;
  h.nonce = nonce_;
  copy(h.cookie, cookie_, 24);
  copy(h.key_id, token_.key_id, 4);
  h.route = {token_.route, token_.route_size};
  h.message = {message_, message_size_};
  hello_sent_ = now;
  hello_at_ = now + hello_wait_;
  hello_wait_ = hello_wait(hello_wait_);
  if (message_size_ > 0)
    hellos_++;
  else if (max_early_ != 0 && ++early_ == max_early_)
    hello_at_ = now + timeout_; // no further hello unless the server answers
  return format_hello(to, h);
}

} // namespace uplink::detail::client
