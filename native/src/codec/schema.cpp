#include "src/codec/schema.hpp"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "src/base/text.hpp"

namespace uplink {

using namespace detail;

namespace {

constexpr int32_t default_bound = (1 << 23) - 1;
constexpr double max_bound = 2147483647.0;
constexpr int64_t max_factor = (INT64_C(1) << 40) - 1;

// steps converts a value to a number of steps, rounded.
bool steps(double v, double resolution, int32_t *out) {
  double x = std::floor(v * (1 / resolution) + 0.5);
  if (!(x >= -max_bound && x <= max_bound)) return false;
  *out = static_cast<int32_t>(x);
  return true;
}

// fill checks a field and sets its defaults.
bool fill(const Field &f, FieldInfo &out) {
  out.kind = f.kind;
  out.velocity_scale = f.velocity_scale;
  bool numbers = f.kind == Kind::vec2 || f.kind == Kind::vec3 || f.kind == Kind::scalar;
  bool has_bits = f.kind == Kind::angle || f.kind == Kind::quat || f.kind == Kind::unitvec;
  bool has_width = f.kind == Kind::uint || f.kind == Kind::int_ || f.kind == Kind::bits;
  bool string = f.kind == Kind::fixed || f.kind == Kind::bytes;
  bool counted = f.kind == Kind::scalar || f.kind == Kind::angle || has_width || f.kind == Kind::boolean;
  if (f.count < 1 || f.count > max_components) return false;
  if (numbers != (f.resolution != 0) || (!numbers && (f.has_min || f.has_max)) ||
      (!has_bits && f.bits != 0) || has_width != (f.width != 0) || string != (f.size != 0))
    return false;
  if (f.velocity == nullptr ? f.velocity_scale != 1 : !std::isfinite(f.velocity_scale)) return false;
  if (f.velocity != nullptr && !numbers && f.kind != Kind::quat) return false;
  switch (f.kind) {
  case Kind::vec2:
  case Kind::vec3:
  case Kind::scalar:
    out.values = f.kind == Kind::scalar ? f.count : f.kind == Kind::vec2 ? 2 : 3;
    out.resolution = f.resolution;
    if (!(f.resolution > 0) || !std::isfinite(f.resolution) || !std::isfinite(1 / f.resolution)) return false;
    out.lo = -default_bound;
    out.hi = default_bound;
    out.bounded = f.has_min || f.has_max;
    if (f.has_min && !steps(f.min, f.resolution, &out.lo)) return false;
    if (f.has_max && !steps(f.max, f.resolution, &out.hi)) return false;
    if (out.lo > out.hi) return false;
    break;
  case Kind::angle:
    out.values = f.count;
    out.bits = f.bits == 0 ? 16 : f.bits;
    if (out.bits < 2 || out.bits > 24) return false;
    out.hi = (1 << out.bits) - 1;
    break;
  case Kind::quat:
  case Kind::unitvec:
    out.values = f.kind == Kind::quat ? 4 : 3;
    out.bits = f.bits == 0 ? 12 : f.bits;
    if (out.bits < 3 || out.bits > 20) return false;
    out.hi = (1 << (out.bits - 1)) - 1;
    out.lo = -out.hi;
    break;
  case Kind::uint:
  case Kind::int_:
  case Kind::bits:
    out.values = f.count;
    out.width = f.width;
    if (f.width > 64) return false;
    break;
  case Kind::boolean:
    out.values = f.count;
    out.width = 1;
    break;
  case Kind::fixed:
  case Kind::bytes:
    if (f.size > max_bytes) return false;
    out.max_length = f.size;
    out.min_length = f.kind == Kind::fixed ? f.size : 0;
    break;
  default:
    return false;
  }
  if (!counted && f.count != 1 && f.count != out.values) return false;
  out.components = f.kind == Kind::unitvec ? 2 : static_cast<uint16_t>(out.values * out.parts());
  return true;
}

// link resolves the velocities. It returns the index of the invalid field, or n.
size_t link(const Field *fields, SchemaImpl &s) {
  size_t n = s.infos.size();
  for (size_t i = 0; i < n; i++) {
    if (fields[i].velocity == nullptr) continue;
    FieldInfo &f = s.infos[i];
    for (size_t k = 0; k < n; k++) {
      if (std::strcmp(s.infos[k].name, fields[i].velocity) == 0) f.velocity = static_cast<int16_t>(k);
    }
    size_t wanted = f.kind == Kind::quat ? 3 : f.values;
    if (f.velocity < 0 || !s.infos[static_cast<size_t>(f.velocity)].is_vector() ||
        s.infos[static_cast<size_t>(f.velocity)].values != wanted)
      return i;
  }
  for (size_t i = 0; i < n; i++) { // a cycle would not end
    size_t length = 0;
    for (int k = s.infos[i].velocity; k >= 0; k = s.infos[static_cast<size_t>(k)].velocity) {
      if (++length > n) return i;
    }
  }
  return n;
}

int64_t factor_of(const SchemaImpl &s, const FieldInfo &f) {
  double change = s.infos[static_cast<size_t>(f.velocity)].resolution * f.velocity_scale / s.rate;
  double x = f.kind == Kind::quat ? change * 68719476736.0 : change / f.resolution * 524288.0;
  if (!(std::fabs(x) < 2e12)) return 0;
  int64_t v = std::llround(x);
  return v > max_factor || v < -max_factor ? 0 : v;
}

// number writes the fewest digits that parse to v, as V-8 of values.md requires.
void number(Text &t, const char *name, double v) {
  t.add(name);
  char b[40];
  int digits = 0;
  for (; digits < 17; digits++) {
    std::snprintf(b, sizeof b, "%.*e", digits, v);
    if (std::strtod(b, nullptr) == v) break;
  }
  char d[20] = {};
  size_t n = 0;
  const char *p = b;
  if (*p == '-') t.add("-"), p++;
  for (; *p != 'e' && *p != 0; p++) {
    if (*p >= '0' && *p <= '9' && n < sizeof d - 1) d[n++] = *p;
  }
  int exponent = *p == 'e' ? std::atoi(p + 1) : 0;
  char out[64] = {};
  size_t k = 0;
  auto put = [&](char c) { out[k++] = c; };
  if (exponent < -4 || exponent > 5) {
    put(d[0]);
    if (n > 1) put('.');
    for (size_t i = 1; i < n; i++) put(d[i]);
    char e[16];
    std::snprintf(e, sizeof e, "e%c%02d", exponent < 0 ? '-' : '+', std::abs(exponent));
    for (const char *q = e; *q != 0; q++) put(*q);
  } else if (exponent < 0) {
    put('0');
    put('.');
    for (int i = -1; i > exponent; i--) put('0');
    for (size_t i = 0; i < n; i++) put(d[i]);
  } else {
    for (size_t i = 0; i <= static_cast<size_t>(exponent) || i < n; i++) {
      if (i == static_cast<size_t>(exponent) + 1) put('.');
      put(i < n ? d[i] : '0');
    }
  }
  t.add(out);
}

void describe(const SchemaImpl &s, const FieldInfo &f, Text &t) {
  t.add(f.name);
  t.add(" ");
  t.add(kind_name(f.kind));
  bool counted = f.kind == Kind::scalar || f.kind == Kind::angle || f.is_integer();
  if (counted && f.values > 1) t.number(" count=", static_cast<long long>(f.values));
  if (f.is_vector()) number(t, " resolution=", f.resolution);
  if (f.bits != 0) t.number(" bits=", static_cast<long long>(f.bits));
  if (f.is_integer() && f.kind != Kind::boolean) t.number(" width=", static_cast<long long>(f.width));
  if (f.kind == Kind::fixed) t.number(" size=", static_cast<long long>(f.max_length));
  if (f.kind == Kind::bytes) t.number(" max=", static_cast<long long>(f.max_length));
  if (f.bounded) {
    t.number(" steps=", static_cast<long long>(f.lo));
    t.number("..", static_cast<long long>(f.hi));
  }
  if (f.velocity >= 0) {
    t.add(" velocity=");
    t.add(s.infos[static_cast<size_t>(f.velocity)].name);
    if (f.velocity_scale != 1) number(t, " velocity_scale=", f.velocity_scale);
  }
}

size_t varint_size(uint64_t v) {
  size_t n = 1;
  for (; v >= 0x80; v >>= 7) n++;
  return n;
}

// bound sets the bounds of component i of a field.
void bound(const FieldInfo &f, size_t i, int32_t *lo, int32_t *hi) {
  *lo = f.lo;
  *hi = f.hi;
  if (f.kind == Kind::quat && i == 0) {
    *lo = 0;
    *hi = 3;
  }
  if (!f.is_integer()) return;
  int w = f.part_width(i);
  bool has_sign = f.kind == Kind::int_ && (f.width <= 32 || i % 2 == 1);
  *lo = w == 32 ? INT32_MIN : has_sign ? -(INT32_C(1) << (w - 1)) : 0;
  *hi = w == 32 ? INT32_MAX : static_cast<int32_t>((INT64_C(1) << (has_sign ? w - 1 : w)) - 1);
}

// lay_out assigns components and byte strings to fields, and checks the limits of the schema.
bool lay_out(SchemaImpl &s) {
  size_t components = 0, strings = 0, factors = 0, binary = 0;
  for (FieldInfo &f : s.infos) {
    if (components + f.components > max_components) return false;
    f.first = static_cast<uint16_t>(components);
    components += f.components;
    if (f.is_string()) f.string = static_cast<int16_t>(strings++);
    if (f.velocity >= 0) factors++;
    if (f.is_integer()) binary += f.values * ((f.width + 7u) / 8u);
    binary += f.max_length;
    if (f.kind == Kind::bytes) binary += varint_size(f.max_length);
  }
  if (binary > max_bytes) return false;
  s.component_count = components;
  s.binary = binary;
  if (!s.strings.create(s.allocator, strings) || !s.offsets.create(s.allocator, strings) ||
      !s.factors.create(s.allocator, factors) || !s.lowest.create(s.allocator, components) ||
      !s.highest.create(s.allocator, components))
    return false;
  strings = factors = 0;
  for (size_t i = 0; i < s.infos.size(); i++) {
    FieldInfo &f = s.infos[i];
    if (f.velocity >= 0) {
      s.factors[factors++] = static_cast<uint16_t>(i);
      f.factor = factor_of(s, f);
    }
    for (size_t k = 0; k < f.components; k++) bound(f, k, &s.lowest[f.first + k], &s.highest[f.first + k]);
    if (!f.is_string()) continue;
    s.strings[strings] = static_cast<uint16_t>(i);
    s.offsets[strings++] = static_cast<uint32_t>(s.bytes);
    s.bytes += f.max_length;
  }
  return true;
}

// name copies a name and returns the copy.
const char *name(char *&at, const char *from) {
  size_t n = std::strlen(from) + 1;
  std::memcpy(at, from, n);
  char *out = at;
  at += n;
  return out;
}

template <typename T> bool copy_array(const Allocator &a, Array<T> &to, const Array<T> &from) {
  if (!to.create(a, from.size())) return false;
  for (size_t i = 0; i < from.size(); i++) to[i] = from[i];
  return true;
}

} // namespace

const char *detail::kind_name(Kind k) {
  static const char *const names[] = {"vec2", "vec3", "scalar", "angle", "quat",  "unitvec",
                                      "uint", "int",  "bits",   "bool",  "fixed", "bytes"};
  return names[static_cast<size_t>(k)];
}

Error detail::clone(const Allocator &a, const Schema &from, Schema **out) {
  const SchemaImpl &s = impl(from);
  SchemaImpl *c = detail::create<SchemaImpl>(a);
  if (c == nullptr) return Error::no_memory;
  c->allocator = a;
  if (!copy_array(a, c->names, s.names) || !copy_array(a, c->infos, s.infos) ||
      !copy_array(a, c->factors, s.factors) || !copy_array(a, c->strings, s.strings) ||
      !copy_array(a, c->offsets, s.offsets) || !copy_array(a, c->lowest, s.lowest) ||
      !copy_array(a, c->highest, s.highest)) {
    Schema::destroy(c);
    return Error::no_memory;
  }
  const char *text = s.names.data();
  for (FieldInfo &f : c->infos) f.name = c->names.data() + (f.name - text);
  c->rpc_name = c->names.data() + (s.rpc_name - text);
  c->rate = s.rate;
  c->component_count = s.component_count;
  c->bytes = s.bytes;
  c->binary = s.binary;
  c->print = s.print;
  *out = c;
  return Error::ok;
}

Error Schema::create(const Allocator &a, const char *rpc, double rate_hz, const Field *fields, size_t n,
                     Schema **out, size_t *field) {
  size_t ignored;
  size_t &wrong = field == nullptr ? ignored : *field;
  wrong = n;
  if (rate_hz == 0) rate_hz = 60;
  if (rpc == nullptr || std::strlen(rpc) > max_name || n < 1 || n > max_fields ||
      !(rate_hz > 0 && rate_hz <= 1000))
    return Error::invalid;
  size_t text = std::strlen(rpc) + 1;
  for (size_t i = 0; i < n; i++) {
    wrong = i;
    const char *own = fields[i].name;
    if (own == nullptr || *own == 0 || std::strlen(own) > max_name) return Error::invalid;
    for (size_t k = 0; k < i; k++) {
      if (std::strcmp(fields[k].name, own) == 0) return Error::invalid;
    }
    text += std::strlen(own) + 1;
  }
  wrong = n;
  SchemaImpl *s = detail::create<SchemaImpl>(a);
  if (s == nullptr) return Error::no_memory;
  s->allocator = a;
  s->rate = rate_hz;
  Error e = Error::ok;
  if (!s->names.create(a, text) || !s->infos.create(a, n)) e = Error::no_memory;
  if (e == Error::ok) {
    char *at = s->names.data();
    s->rpc_name = name(at, rpc);
    for (size_t i = 0; e == Error::ok && i < n; i++) {
      s->infos[i].name = name(at, fields[i].name);
      if (!fill(fields[i], s->infos[i])) e = Error::invalid, wrong = i;
    }
  }
  if (e == Error::ok && (wrong = link(fields, *s)) != n) e = Error::invalid;
  if (e == Error::ok && !lay_out(*s)) e = Error::invalid;
  if (e != Error::ok) {
    destroy(s);
    return e;
  }
  Fnv h;
  h.put(s->rpc_name);
  for (size_t i = 0; i < n; i++) {
    char b[1024];
    s->description(i, b, sizeof b);
    h.put("\n");
    h.put(b);
  }
  s->print = h.sum();
  *out = s;
  return Error::ok;
}

void Schema::destroy(Schema *s) {
  if (s == nullptr) return;
  Allocator a = static_cast<SchemaImpl *>(s)->allocator;
  detail::destroy(a, static_cast<SchemaImpl *>(s));
}

const char *Schema::rpc() const {
  return impl(*this).rpc_name;
}
double Schema::rate_hz() const {
  return impl(*this).rate;
}
size_t Schema::fields() const {
  return impl(*this).infos.size();
}
size_t Schema::components() const {
  return impl(*this).component_count;
}
uint64_t Schema::fingerprint() const {
  return impl(*this).print;
}

size_t Schema::description(size_t field, char *to, size_t capacity) const {
  Text t(to, capacity);
  if (field < fields()) describe(impl(*this), impl(*this).infos[field], t);
  t.end();
  return t.size();
}

uint16_t Schema::field_hash(size_t field) const {
  char b[1024];
  size_t n = description(field, b, sizeof b);
  uint32_t h = 2166136261u;
  for (size_t i = 0; i < n && i < sizeof b; i++) h = (h ^ static_cast<uint8_t>(b[i])) * 16777619u;
  return static_cast<uint16_t>(h ^ h >> 16);
}

size_t Schema::velocity_factors() const {
  return impl(*this).factors.size();
}

int64_t Schema::velocity_factor(size_t i) const {
  const SchemaImpl &s = impl(*this);
  return i < s.factors.size() ? s.infos[s.factors[i]].factor : 0;
}

Error Schema::set_velocity_factors(const int64_t *factors, size_t n) {
  SchemaImpl &s = static_cast<SchemaImpl &>(*this);
  if (n != s.factors.size()) return Error::invalid;
  for (size_t i = 0; i < n; i++) {
    if (factors[i] > max_factor || factors[i] < -max_factor) return Error::invalid;
  }
  for (size_t i = 0; i < n; i++) s.infos[s.factors[i]].factor = factors[i];
  return Error::ok;
}

} // namespace uplink
