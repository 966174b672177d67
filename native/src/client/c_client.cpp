// The flat C interface of the client.
#include "src/base/c_api.hpp"

#include <cstring>

#include "uplink/client.hpp"

using namespace uplink::detail::c_api;

namespace {

static_assert(UPLINK_TICK_RATE == static_cast<int>(uplink::EventType::tick_rate), "types of events");
static_assert(UPLINK_TOKEN_TEXT == uplink::token_text, "limits");

uplink::Bytes bytes(const char *s) {
  return {reinterpret_cast<const uint8_t *>(s), std::strlen(s)};
}

bool address_of(const uplink_address &server, uplink::Address *a) {
  if (server.family < 0 || server.family > 6 || server.port < 0 || server.port > 65535) return false;
  a->family = static_cast<uint8_t>(server.family);
  a->port = static_cast<uint16_t>(server.port);
  std::memcpy(a->ip, server.ip, sizeof(a->ip));
  return true;
}

const uplink_crypto *host(void *context) {
  return static_cast<const uplink_crypto *>(context);
}

// crypto_of sets the functions of the C++ interface to wrappers of a program's functions, with the
// table as context. It reports whether all required functions are present.
bool crypto_of(const uplink_crypto *c, uplink::Crypto *to) {
  uplink_crypto own;
  if (c == nullptr || !load(c, &own) || own.x25519 == nullptr || own.chacha20 == nullptr ||
      own.poly1305 == nullptr || own.sha256 == nullptr || own.random == nullptr)
    return false;
  to->context = const_cast<uplink_crypto *>(c);
  to->x25519 = [](void *h, uint8_t *out, const uint8_t *private_key, const uint8_t *public_key) {
    return host(h)->x25519(host(h)->context, out, private_key, public_key) != 0;
  };
  to->chacha20 = [](void *h, uint8_t *data, size_t size, const uint8_t *key, const uint8_t *nonce,
                    uint32_t block) { host(h)->chacha20(host(h)->context, data, size, key, nonce, block); };
  to->poly1305 = [](void *h, uint8_t *tag, const uint8_t *key, const uplink::Bytes *parts, size_t n) {
    host(h)->poly1305(host(h)->context, tag, key, as<const uplink_bytes>(parts), n);
  };
  to->sha256 = [](void *h, uint8_t *hash, const uplink::Bytes *parts, size_t n) {
    host(h)->sha256(host(h)->context, hash, as<const uplink_bytes>(parts), n);
  };
  to->random = [](void *h, uint8_t *out, size_t size) {
    return host(h)->random(host(h)->context, out, size) != 0;
  };
  if (own.aes128_gcm_seal == nullptr || own.aes128_gcm_open == nullptr || own.aes128_ctr == nullptr)
    return true;
  to->aes128_gcm_seal = [](void *h, uint8_t *data, size_t size, uint8_t *tag, const uint8_t *key,
                           const uint8_t *nonce, uplink::Bytes a) {
    return host(h)->aes128_gcm_seal(host(h)->context, data, size, tag, key, nonce, {a.data, a.size}) != 0;
  };
  to->aes128_gcm_open = [](void *h, uint8_t *data, size_t size, const uint8_t *tag, const uint8_t *key,
                           const uint8_t *nonce, uplink::Bytes a) {
    return host(h)->aes128_gcm_open(host(h)->context, data, size, tag, key, nonce, {a.data, a.size}) != 0;
  };
  to->aes128_ctr = [](void *h, uint8_t *data, size_t size, const uint8_t *key, const uint8_t *block) {
    return host(h)->aes128_ctr(host(h)->context, data, size, key, block) != 0;
  };
  return true;
}

bool config_of(const uplink_client_config *from, uplink::ClientConfig *to) {
  uplink_client_config c;
  if (!load(from, &c)) return false;
  if (!crypto_of(c.crypto, &to->crypto)) return false;
  if (c.log != nullptr) {
    uplink_log log;
    if (!load(c.log, &log) || log.write == nullptr) return false;
    to->log.context = const_cast<uplink_log *>(c.log);
    to->log.write = [](void *context, uplink::LogLevel level, const char *text) {
      const auto *l = static_cast<const uplink_log *>(context);
      l->write(l->context, static_cast<uplink_log_level>(level), text);
    };
  }
  to->timeout = c.timeout;
  to->event_bytes = c.event_bytes;
  to->datagram_bytes = c.datagram_bytes;
  to->streams = c.streams != 0;
  to->local_handovers = c.local_handovers != 0;
  if (c.server != nullptr && uplink::parse_address(c.server, &to->server) != uplink::Error::ok) return false;
  return number(c.offered, 0, &to->offered) && number(c.bindings, to->bindings, &to->bindings) &&
         number(c.handlers, 0, &to->handlers) && number(c.worlds, 0, &to->worlds) &&
         number(c.reliable_queue, static_cast<int32_t>(to->reliable_queue), &to->reliable_queue) &&
         number(c.stream_rate, static_cast<int32_t>(to->stream_rate), &to->stream_rate);
}

bool config_of(const uplink_bind_config *from, uplink::BindConfig *to) {
  uplink_bind_config b;
  if (!load(from, &b)) return false;
  if (b.codec != UPLINK_RLE && b.codec != UPLINK_ADAPTIVE) return false;
  to->codec = static_cast<uplink::Codec>(b.codec);
  to->reliable = b.reliable != 0;
  to->prior = as<const uplink::Prior>(b.prior);
  return number(b.ring, 64, &to->ring) && number(b.copies, 0, &to->copies) && number(b.batch, 0, &to->batch);
}

} // namespace

const char *uplink_status_text(uplink_event_type type, int32_t status) {
  return uplink::status_text(static_cast<uplink::EventType>(type < 0 || type > 255 ? 255 : type),
                             static_cast<uint8_t>(status < 0 || status > 255 ? 255 : status));
}

size_t uplink_event_text(const uplink_event *from, char *to, size_t capacity) {
  uplink_event e;
  uplink::Event own;
  if (!load(from, &e)) return 0;
  own.type = static_cast<uplink::EventType>(e.type);
  own.reason = static_cast<uplink::Reason>(e.reason);
  own.status = static_cast<uint8_t>(e.status);
  own.rpc = static_cast<uint8_t>(e.rpc);
  own.world = static_cast<uint8_t>(e.world);
  own.value = e.value;
  own.data = {e.data, e.size};
  return uplink::describe(own, to, capacity);
}

const char *uplink_reason_text(int32_t reason) {
  return uplink::text(static_cast<uplink::Reason>(reason < 0 || reason > 255 ? 255 : reason));
}

uplink_error uplink_client_create(const uplink_allocator *a, const uplink_client_config *c,
                                  uplink_client **out) {
  uplink::ClientConfig config;
  uplink::Client *client = nullptr;
  *out = nullptr;
  if (!config_of(c, &config)) return UPLINK_INVALID;
  const uplink_error e = code(uplink::Client::create(of(a), config, &client));
  *out = made<uplink_client>(client);
  return e;
}
void uplink_client_destroy(uplink_client *c) {
  uplink::Client::destroy(gone<uplink::Client>(c));
}
uplink_error uplink_client_bind(uplink_client *c, const uplink_schema *s, const uplink_bind_config *b,
                                int32_t *rpc) {
  uplink::BindConfig config;
  uint8_t n = 0;
  if (!config_of(b, &config)) return UPLINK_INVALID;
  const uplink_error e = code(in(c)->bind(*in(s), config, &n));
  *rpc = n;
  return e;
}
uplink_error uplink_client_handle(uplink_client *c, const uplink_schema *s, int32_t *handler) {
  uint8_t n = 0;
  const uplink_error e = code(in(c)->handle(*in(s), &n));
  *handler = n;
  return e;
}
uplink_error uplink_client_connect(uplink_client *c, const char *token, size_t n, uint64_t now) {
  return code(in(c)->connect(token, n, now));
}
uplink_error uplink_client_assign(uplink_client *c, const char *server, const char *token, size_t n,
                                  uint64_t now) {
  uplink::Address a;
  const uplink::Error e = uplink::parse_address(server, &a);
  return code(e != uplink::Error::ok ? e : in(c)->assign(a, token, n, now));
}
void uplink_client_close(uplink_client *c, int32_t close_code, uint64_t now) {
  in(c)->close(static_cast<uint8_t>(close_code), now);
}
int32_t uplink_client_connected(const uplink_client *c) {
  return in(c)->connected() ? 1 : 0;
}
void uplink_client_receive(uplink_client *c, const uint8_t *data, size_t n, uint64_t now) {
  in(c)->receive({data, n}, now);
}
void uplink_client_receive_at(uplink_client *c, const uint8_t *data, size_t n, uint64_t arrived,
                              uint64_t now) {
  in(c)->receive_at({data, n}, arrived, now);
}
size_t uplink_client_next_datagram(uplink_client *c, uint8_t *to, size_t capacity, uplink_address *server,
                                   uint64_t now) {
  uplink::Address a;
  const size_t n = in(c)->next_datagram({to, capacity}, &a, now);
  server->family = a.family;
  server->port = a.port;
  std::memcpy(server->ip, a.ip, sizeof(a.ip));
  return n;
}
int32_t uplink_client_uses(const uplink_client *c, const uplink_address *server) {
  uplink::Address a;
  return address_of(*server, &a) && in(c)->uses(a) ? 1 : 0;
}
void uplink_client_unreachable(uplink_client *c, const uplink_address *server, uint64_t now) {
  uplink::Address a;
  if (address_of(*server, &a)) in(c)->unreachable(a, now);
}
uint64_t uplink_client_next_timeout(const uplink_client *c) {
  return in(c)->next_timeout();
}
void uplink_client_rebind(uplink_client *c, uint64_t now) {
  in(c)->rebind(now);
}
int32_t uplink_client_poll_event(uplink_client *c, uplink_event *to) {
  uplink::Event e;
  if (!uplink::detail::has_size(to->struct_size, sizeof(*to)) || !in(c)->poll_event(&e)) return 0;
  uplink_event own = {};
  own.type = static_cast<uplink_event_type>(e.type);
  own.reason = static_cast<int32_t>(e.reason);
  own.reliable = e.reliable ? 1 : 0;
  own.status = e.status;
  own.rpc = e.rpc;
  own.world = e.world;
  own.value = e.value;
  own.missed = e.missed;
  own.frame = as<const uplink_frame>(e.frame);
  own.data = e.data.data;
  own.size = e.data.size;
  store(own, to);
  return 1;
}
uplink_error uplink_client_call(uplink_client *c, int32_t rpc, const uplink_frame *f, uint64_t now) {
  if (rpc < 0 || rpc > 255) return UPLINK_INVALID;
  return code(in(c)->call(static_cast<uint8_t>(rpc), *in(f), now));
}
int32_t uplink_client_next_call(const uplink_client *c, int32_t rpc, uint64_t *session, uint64_t *sequence) {
  return rpc >= 0 && rpc <= 255 && in(c)->next_call(static_cast<uint8_t>(rpc), session, sequence) ? 1 : 0;
}
void uplink_client_pace(const uplink_client *c, int32_t rpc, uint64_t now, uplink_pace *to) {
  const uplink::Pace p = rpc < 0 || rpc > 255 ? uplink::Pace() : in(c)->pace(static_cast<uint8_t>(rpc), now);
  store({0, p.rate, p.slack, p.target, p.missing, p.late}, to);
}
uplink_error uplink_client_send(uplink_client *c, const uint8_t *data, size_t n, int32_t reliable,
                                uint64_t now) {
  return code(in(c)->send({data, n}, reliable != 0, now));
}
size_t uplink_client_reliable_room(const uplink_client *c, uint64_t now) {
  return in(c)->reliable_room(now);
}
uplink_error uplink_client_request(uplink_client *c, const uint8_t *data, size_t n, uint32_t *id,
                                   uint64_t now) {
  return code(in(c)->request({data, n}, id, now));
}
uplink_error uplink_client_cancel(uplink_client *c, uint32_t id) {
  return code(in(c)->cancel(id));
}
uplink_error uplink_client_open_stream(uplink_client *c, const char *name, uint32_t *stream, uint64_t now) {
  return code(in(c)->open_stream(bytes(name), stream, now));
}
uplink_error uplink_client_write_stream(uplink_client *c, uint32_t stream, const uint8_t *data, size_t n,
                                        size_t *written, uint64_t now) {
  return code(in(c)->write_stream(stream, {data, n}, written, now));
}
uplink_error uplink_client_end_stream(uplink_client *c, uint32_t stream) {
  return code(in(c)->end_stream(stream));
}
uplink_error uplink_client_abort_stream(uplink_client *c, uint32_t stream, const char *reason) {
  return code(in(c)->abort_stream(stream, bytes(reason)));
}
uplink_error uplink_client_stop_stream(uplink_client *c, uint32_t stream) {
  return code(in(c)->stop_stream(stream));
}
void uplink_client_stats(const uplink_client *c, uplink_stats *to) {
  const uplink::Stats s = in(c)->stats();
  store({0, s.rtt, s.min_rtt, s.sent, s.sent_bytes, s.received, s.dropped, s.missing, s.calls, s.acks,
         s.server_calls, s.server_calls_dropped, s.suite, s.datagram_size, s.path_rate, s.path_queue},
        to);
}

uplink_error uplink_issue_token(const uplink_crypto *functions, const char *key, uint64_t client_id,
                                uint64_t issued, const char *address, char *to, size_t capacity) {
  uplink::Crypto crypto;
  if (!crypto_of(functions, &crypto)) return UPLINK_INVALID;
  uplink::IssuerKey issuer;
  uplink::Error e =
      key == nullptr ? uplink::development_key(crypto, &issuer) : uplink::parse_key(crypto, key, &issuer);
  if (e != uplink::Error::ok) return code(e);
  uplink::Claims claims;
  claims.client_id = client_id;
  claims.issued = issued;
  claims.expires = issued + 60000;
  claims.n = 1;
  e = uplink::parse_address(address, &claims.servers[0]);
  return code(e != uplink::Error::ok ? e : uplink::issue_token(crypto, issuer, claims, to, capacity));
}
