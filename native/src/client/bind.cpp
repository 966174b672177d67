#include "src/client/bind.hpp"

#include <algorithm>

namespace uplink::detail::client {

uint64_t Unpacker::whole(bool *negative) {
  const uint64_t t = r_.little(1);
  *negative = false;
  if (t < 0x80) return t;
  if (t >= 0xcc && t <= 0xcf) return r_.big(size_t{1} << (t - 0xcc));
  uint64_t v = 0;
  if (t >= 0xe0) {
    v = t | ~uint64_t{0xff};
  } else if (t >= 0xd0 && t <= 0xd3) {
    static const uint64_t signs[4] = {0x80, 0x8000, 0x80000000, uint64_t{1} << 63};
    const uint64_t sign = signs[t - 0xd0];
    v = (r_.big(size_t{1} << (t - 0xd0)) ^ sign) - sign;
  } else {
    return fail();
  }
  *negative = v >> 63 != 0;
  return v;
}

uint64_t Unpacker::number() {
  bool negative = false;
  const uint64_t v = whole(&negative);
  return negative ? fail() : v;
}

int64_t Unpacker::integer() {
  bool negative = false;
  const uint64_t v = whole(&negative);
  if (!negative && v >> 63 != 0) return static_cast<int64_t>(fail());
  int64_t s = 0;
  std::memcpy(&s, &v, 8);
  return s;
}

size_t Unpacker::array() {
  const uint64_t t = r_.little(1);
  uint64_t n = 0;
  if (t >= 0x90 && t <= 0x9f)
    n = t & 15;
  else if (t == 0xdc || t == 0xdd)
    n = r_.big(t == 0xdc ? 2 : 4);
  else if (t != 0xc0)
    fail();
  if (n > r_.left()) fail();
  return ok() ? static_cast<size_t>(n) : 0;
}

double Unpacker::real() {
  Reader ahead = r_;
  const uint64_t t = ahead.little(1);
  if (t == 0xca) {
    r_ = ahead;
    const uint32_t bits = static_cast<uint32_t>(r_.big(4));
    float f = 0;
    std::memcpy(&f, &bits, 4);
    return static_cast<double>(f);
  }
  if (t == 0xcb) {
    r_ = ahead;
    const uint64_t bits = r_.big(8);
    double d = 0;
    std::memcpy(&d, &bits, 8);
    return d;
  }
  return static_cast<double>(integer());
}

bool Unpacker::boolean() {
  const uint64_t t = r_.little(1);
  if (t != 0xc2 && t != 0xc3) fail();
  return t == 0xc3;
}

Bytes Unpacker::string() {
  const uint64_t t = r_.little(1);
  uint64_t n = 0;
  if (t >= 0xa0 && t <= 0xbf)
    n = t & 31;
  else if (t >= 0xd9 && t <= 0xdb)
    n = r_.big(size_t{1} << (t - 0xd9));
  else
    fail();
  if (n > r_.left()) fail();
  return ok() ? r_.bytes(static_cast<size_t>(n)) : Bytes{};
}

void Packer::array(size_t n) {
  if (n == 0)
    w_.little(0xc0, 1);
  else if (n < 16)
    w_.little(0x90 | n, 1);
  else
    fixed(0xdc, n, 2);
}

void Packer::integer(uint64_t v) {
  if (v < 128)
    w_.little(v, 1);
  else if (v < 256)
    fixed(0xcc, v, 1);
  else
    fixed(0xcd, v, 2);
}

void Packer::fixed(uint8_t type, uint64_t v, size_t bytes) {
  w_.little(type, 1);
  w_.big(v, bytes);
}

void Packer::real(double v) {
  uint64_t bits = 0;
  std::memcpy(&bits, &v, 8);
  fixed(0xcb, bits, 8);
}

void Packer::string(Bytes s) {
  if (s.size < 32)
    w_.little(0xa0 | s.size, 1);
  else if (s.size < 256)
    fixed(0xd9, s.size, 1);
  else
    fixed(0xda, s.size, 2);
  w_.bytes(s);
}

size_t format_bind(Buffer to, const BindRequest &r) {
  const Schema &s = *r.schema;
  Packer p(to);
  p.writer().little(0xc2, 1);
  p.array(14);
  p.fixed(0xcc, r.rpc, 1);
  p.string({reinterpret_cast<const uint8_t *>(s.rpc()), std::strlen(s.rpc())});
  p.fixed(0xcf, s.fingerprint(), 8);
  p.array(s.fields());
  for (size_t f = 0; f < s.fields(); f++) p.fixed(0xcd, s.field_hash(f), 2);
  p.real(s.rate_hz());
  p.integer(r.ring);
  const char *codec = r.codec == Codec::rle ? "rle" : "adaptive";
  p.string({reinterpret_cast<const uint8_t *>(codec), std::strlen(codec)});
  p.writer().little(r.reliable ? 0xc3 : 0xc2, 1);
  p.integer(r.frames);
  p.fixed(0xcf, r.prior, 8);
  p.integer(r.batch);
  p.integer(0);
  p.array(s.velocity_factors());
  for (size_t i = 0; i < s.velocity_factors(); i++)
    p.fixed(0xd3, static_cast<uint64_t>(s.velocity_factor(i)), 8);
  size_t n = 0;
  for (size_t f = 0; r.described != nullptr && f < s.fields(); f++) n += r.described[f / 8] >> f % 8 & 1;
  p.array(n);
  for (size_t f = 0; n > 0 && f < s.fields(); f++) {
    if ((r.described[f / 8] >> f % 8 & 1) == 0) continue;
    char text[1174];
    const size_t size = s.description(f, text, sizeof(text));
    if (size >= sizeof(text)) return 0;
    p.array(2);
    p.integer(f);
    p.string({reinterpret_cast<const uint8_t *>(text), size});
  }
  return p.writer().ok() ? p.writer().size() : 0;
}

namespace {

// names reads an array of strings. m ends at the position of u.
Names names(Unpacker *u, Bytes m) {
  Names out;
  out.n = u->array();
  const size_t left = u->left();
  for (size_t i = 0; i < out.n && u->ok(); i++) u->string();
  out.items = {m.data + (m.size - left), left - u->left()};
  return out;
}

} // namespace

bool parse_answer(Bytes m, BindAnswer *a) {
  if (m.size < 2) return false;
  Unpacker u({m.data + 1, m.size - 1});
  if (u.array() != 11) return false;
  a->rpc = u.number();
  a->ring = u.number();
  a->reason = u.number();
  a->field = u.number();
  a->theirs = u.string();
  a->known = names(&u, m);
  a->prior = u.number();
  a->limit = u.real();
  const size_t left = u.left();
  for (size_t n = u.array(); n > 0 && u.ok(); n--) u.number();
  a->ask = {m.data + (m.size - left), left - u.left()};
  a->asking = names(&u, m);
  a->answering = names(&u, m);
  if (!u.end() || a->asking.n > max_differences || a->answering.n > max_differences) return false;
  return a->rpc < 256 && a->reason < 256 && a->ring <= 256;
}

bool mark_described(const BindAnswer &a, uint8_t *described, size_t fields) {
  bool changed = false;
  Unpacker u(a.ask);
  for (size_t n = u.array(); n > 0 && u.ok(); n--) {
    const uint64_t f = u.number();
    if (f >= fields) continue;
    const uint8_t bit = static_cast<uint8_t>(1U << f % 8);
    changed = changed || (described[f / 8] & bit) == 0;
    described[f / 8] = static_cast<uint8_t>(described[f / 8] | bit);
  }
  return changed;
}

bool parse_server_bind(Bytes m, ServerBind *r) {
  if (m.size < 2) return false;
  Unpacker u({m.data + 1, m.size - 1});
  if (u.array() != 14) return false;
  const uint64_t rpc = u.number();
  r->rpc = static_cast<uint8_t>(rpc);
  r->name = u.string();
  r->fingerprint = u.number();
  for (size_t n = u.array(); n > 0 && u.ok(); n--) u.number();
  r->rate = u.real();
  const int64_t ring = u.integer();
  r->ring = ring < 0 ? 0 : static_cast<uint64_t>(ring);
  r->codec = u.string();
  r->reliable = u.boolean();
  u.integer();
  r->prior = u.number();
  u.integer();
  u.integer();
  r->factors_n = u.array();
  if (r->factors_n > 256) return false;
  for (size_t i = 0; i < r->factors_n; i++) r->factors[i] = u.integer();
  uint64_t field = 0;
  bool in_order = true;
  for (size_t n = u.array(); n > 0 && u.ok(); n--) {
    if (u.array() != 2) return false;
    in_order = u.number() == field++ && in_order;
    u.string();
  }
  return u.end() && rpc < 256 && (in_order && field <= 256);
}

size_t format_answer(Buffer to, const ServerBindAnswer &a) {
  Packer p(to);
  p.array(11);
  p.fixed(0xcc, a.rpc, 1);
  p.integer(a.ring);
  p.fixed(0xcc, a.reason, 1);
  p.integer(0);
  p.string(a.theirs);
  p.array(a.known.size > 0 ? 1 : 0);
  if (a.known.size > 0) p.string(a.known);
  p.fixed(0xcf, a.prior, 8);
  p.real(0);
  p.array(0);
  p.array(a.asking_n);
  for (size_t i = 0; i < a.asking_n; i++) {
    uint8_t name[65];
    const size_t n = a.asking[i].size < sizeof(name) ? a.asking[i].size : sizeof(name) - 1;
    copy(name, a.asking[i].data, n);
    name[n] = '/';
    p.string({name, n + 1});
  }
  p.array(0);
  return p.writer().ok() ? p.writer().size() : 0;
}

} // namespace uplink::detail::client
