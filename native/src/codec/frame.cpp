// Frames, and the values in them. docs/spec/values.md, 3 to 5.
#include <cmath>
#include <cstring>

#include "src/codec/schema.hpp"

namespace uplink {

namespace detail {

void copy(const SchemaImpl &s, const FrameView &to, const FrameView &from) {
  if (s.component_count > 0) std::memcpy(to.c, from.c, s.component_count * sizeof *to.c);
  for (size_t i = 0; i < s.strings.size(); i++) {
    to.lengths[i] = from.lengths[i];
    std::memcpy(to.bytes + s.offsets[i], from.bytes + s.offsets[i], from.lengths[i]);
  }
}

void reset(const SchemaImpl &s, const FrameView &f) {
  for (const FieldInfo &i : s.infos) {
    if (i.is_string()) {
      f.lengths[i.string] = static_cast<uint16_t>(i.min_length);
      std::memset(f.bytes + s.offsets[static_cast<size_t>(i.string)], 0, i.min_length);
    }
    for (size_t k = 0; k < i.components; k++) {
      bool index = i.kind == Kind::quat && k == 0;
      int32_t v = index ? 3 : 0; // identity
      if (i.is_vector()) v = i.lo > 0 ? i.lo : i.hi < 0 ? i.hi : 0;
      f.c[i.first + k] = v;
    }
  }
}

uint16_t hash(const SchemaImpl &s, const FrameView &f) {
  Fnv h;
  for (size_t i = 0; i < s.component_count; i++) h.put(static_cast<uint32_t>(f.c[i]));
  for (size_t i = 0; i < s.strings.size(); i++) {
    h.put(f.lengths[i]);
    const uint8_t *b = f.bytes + s.offsets[i];
    for (size_t k = 0; k < f.lengths[i]; k++) h.put(b[k]);
  }
  return fold(h.sum());
}

} // namespace detail

using namespace detail;

namespace {

constexpr double root2 = 1.41421356237309504880168872420969807857;

double round_steps(double v, double scale) {
  double x = v * scale;
  return std::floor(x + 0.5);
}

double sign_of(double v, double sign) {
  return std::copysign(v, sign);
}

void fold_octahedron(double &p, double &q) {
  double a = sign_of(1 - std::fabs(q), p), b = sign_of(1 - std::fabs(p), q);
  p = a;
  q = b;
}

int32_t clamped(double x, int32_t m) {
  return static_cast<int32_t>(x < -m ? -m : x > m ? m : x);
}

bool quantize_vector(const FieldInfo &f, const double *v, int32_t *c) {
  double scale = 1 / f.resolution;
  for (size_t i = 0; i < f.values; i++) {
    double x = round_steps(v[i], scale);
    if (!(x >= f.lo && x <= f.hi)) return false;
    c[i] = static_cast<int32_t>(x);
  }
  return true;
}

bool quantize_angle(const FieldInfo &f, const double *v, int32_t *c) {
  double scale = static_cast<double>(UINT32_C(1) << f.bits) / 360;
  for (size_t i = 0; i < f.values; i++) {
    double x = round_steps(v[i], scale);
    if (!(std::fabs(x) <= 4503599627370496.0)) return false;
    c[i] =
        static_cast<int32_t>(static_cast<uint64_t>(static_cast<int64_t>(x)) & ((UINT64_C(1) << f.bits) - 1));
  }
  return true;
}

bool quantize_quat(const FieldInfo &f, const double *v, int32_t *c) {
  size_t index = 0;
  for (size_t i = 1; i < 4; i++) {
    if (std::fabs(v[i]) > std::fabs(v[index])) index = i;
  }
  double sum = v[0] * v[0];
  for (size_t i = 1; i < 4; i++) {
    double square = v[i] * v[i];
    sum += square;
  }
  double length = std::sqrt(sum);
  if (!(length > 1e-100 && length < 1e100)) return false;
  double scale = root2 * f.hi / length;
  if (v[index] < 0) scale = -scale;
  c[0] = static_cast<int32_t>(index);
  size_t k = 1;
  for (size_t i = 0; i < 4; i++) {
    if (i != index) c[k++] = clamped(round_steps(v[i], scale), f.hi);
  }
  return true;
}

bool quantize_direction(const FieldInfo &f, const double *v, int32_t *c) {
  double sum = std::fabs(v[0]) + std::fabs(v[1]) + std::fabs(v[2]);
  if (!(sum > 1e-100 && sum < 1e100)) return false;
  double p = v[0] / sum, q = v[1] / sum;
  if (v[2] < 0) fold_octahedron(p, q);
  c[0] = clamped(round_steps(p, f.hi), f.hi);
  c[1] = clamped(round_steps(q, f.hi), f.hi);
  return true;
}

void normalize(double *v, size_t n) {
  double sum = 0;
  for (size_t i = 0; i < n; i++) {
    double square = v[i] * v[i];
    sum += square;
  }
  if (sum == 1) return;
  double length = std::sqrt(sum);
  for (size_t i = 0; i < n; i++) v[i] /= length;
}

void restore_vector(const FieldInfo &f, const int32_t *c, double *v) {
  double s = 1 / f.resolution, n = std::nearbyint(s);
  bool whole = n >= 1 && std::fabs(s - n) < 1e-12 * n;
  for (size_t i = 0; i < f.values; i++) v[i] = whole ? c[i] / n : c[i] * f.resolution;
}

void restore_quat(const FieldInfo &f, const int32_t *c, double *v) {
  double unit = root2 * f.hi, rest = 1;
  size_t index = static_cast<size_t>(c[0]) & 3, k = 1;
  for (size_t i = 0; i < 4; i++) {
    if (i == index) continue;
    v[i] = c[k++] / unit;
    double square = v[i] * v[i];
    rest -= square;
  }
  v[index] = std::sqrt(rest > 0 ? rest : 0);
  normalize(v, 4);
}

void restore_direction(const FieldInfo &f, const int32_t *c, double *v) {
  double m = f.hi, p = c[0] / m, q = c[1] / m, z = 1 - std::fabs(p) - std::fabs(q);
  if (z < 0) fold_octahedron(p, q);
  v[0] = p;
  v[1] = q;
  v[2] = z;
  normalize(v, 3);
}

// of returns a field of a frame, or null if it does not have n values of this type.
const FieldInfo *of(const FrameImpl &f, size_t field, size_t n, bool integers) {
  if (field >= f.schema->infos.size()) return nullptr;
  const FieldInfo &i = f.schema->infos[field];
  return i.is_string() || i.is_integer() != integers || i.values != n ? nullptr : &i;
}

} // namespace

Error Frame::create(const Allocator &a, const Schema &s, Frame **out) {
  FrameImpl *f = detail::create<FrameImpl>(a);
  if (f == nullptr) return Error::no_memory;
  f->allocator = a;
  f->schema = &impl(s);
  if (!f->memory.create(a, impl(s), 1)) {
    destroy(f);
    return Error::no_memory;
  }
  f->view = f->memory.at(0);
  reset(impl(s), f->view);
  *out = f;
  return Error::ok;
}

void Frame::destroy(Frame *f) {
  if (f == nullptr) return;
  Allocator a = static_cast<FrameImpl *>(f)->allocator;
  detail::destroy(a, static_cast<FrameImpl *>(f));
}

Error Frame::set(size_t field, const double *values, size_t n) {
  const FrameImpl &f = impl(*this);
  const FieldInfo *i = of(f, field, n, false);
  if (i == nullptr) return Error::invalid;
  int32_t c[max_components];
  bool ok = false;
  switch (i->kind) {
  case Kind::angle:
    ok = quantize_angle(*i, values, c);
    break;
  case Kind::quat:
    ok = quantize_quat(*i, values, c);
    break;
  case Kind::unitvec:
    ok = quantize_direction(*i, values, c);
    break;
  default:
    ok = quantize_vector(*i, values, c);
  }
  if (!ok) return Error::invalid;
  std::memcpy(f.view.c + i->first, c, i->components * sizeof *c);
  return Error::ok;
}

Error Frame::set_integers(size_t field, const uint64_t *values, size_t n) {
  const FrameImpl &f = impl(*this);
  const FieldInfo *i = of(f, field, n, true);
  if (i == nullptr) return Error::invalid;
  for (size_t k = 0; k < n; k++) {
    uint64_t v = values[k];
    if (i->width == 64) continue;
    if (i->kind == Kind::int_) v += UINT64_C(1) << (i->width - 1);
    if (v >> i->width != 0) return Error::invalid;
  }
  int32_t *c = f.view.c + i->first;
  for (size_t k = 0; k < n; k++) {
    *c++ = static_cast<int32_t>(static_cast<uint32_t>(values[k]));
    if (i->width > 32) *c++ = static_cast<int32_t>(static_cast<uint32_t>(values[k] >> 32));
  }
  return Error::ok;
}

Error Frame::set_bytes(size_t field, Bytes value) {
  const FrameImpl &f = impl(*this);
  if (field >= f.schema->infos.size()) return Error::invalid;
  const FieldInfo &i = f.schema->infos[field];
  if (!i.is_string() || value.size < i.min_length || value.size > i.max_length) return Error::invalid;
  size_t n = static_cast<size_t>(i.string);
  f.view.lengths[n] = static_cast<uint16_t>(value.size);
  if (value.size > 0) std::memcpy(f.view.bytes + f.schema->offsets[n], value.data, value.size);
  return Error::ok;
}

Error Frame::get(size_t field, double *values, size_t n) const {
  const FrameImpl &f = impl(*this);
  const FieldInfo *i = of(f, field, n, false);
  if (i == nullptr) return Error::invalid;
  const int32_t *c = f.view.c + i->first;
  switch (i->kind) {
  case Kind::angle:
    for (size_t k = 0; k < n; k++) {
      int32_t v = c[k] >= INT32_C(1) << (i->bits - 1) ? c[k] - (INT32_C(1) << i->bits) : c[k];
      values[k] = v * 360.0 / static_cast<double>(UINT32_C(1) << i->bits);
    }
    break;
  case Kind::quat:
    restore_quat(*i, c, values);
    break;
  case Kind::unitvec:
    restore_direction(*i, c, values);
    break;
  default:
    restore_vector(*i, c, values);
  }
  return Error::ok;
}

Error Frame::get_integers(size_t field, uint64_t *values, size_t n) const {
  const FrameImpl &f = impl(*this);
  const FieldInfo *i = of(f, field, n, true);
  if (i == nullptr) return Error::invalid;
  const int32_t *c = f.view.c + i->first;
  for (size_t k = 0; k < n; k++) {
    int64_t low = *c++;
    if (i->width > 32) {
      uint64_t high = static_cast<uint32_t>(*c++);
      values[k] = static_cast<uint32_t>(low) | high << 32;
    } else {
      values[k] = i->kind == Kind::int_ ? static_cast<uint64_t>(low) : static_cast<uint32_t>(low);
    }
  }
  return Error::ok;
}

Error Frame::get_bytes(size_t field, Bytes *value) const {
  const FrameImpl &f = impl(*this);
  if (field >= f.schema->infos.size() || !f.schema->infos[field].is_string()) return Error::invalid;
  size_t n = static_cast<size_t>(f.schema->infos[field].string);
  *value = {f.view.bytes + f.schema->offsets[n], f.view.lengths[n]};
  return Error::ok;
}

const int32_t *Frame::components() const {
  return impl(*this).view.c;
}

Error Frame::set_components(const int32_t *components, size_t n) {
  const FrameImpl &f = impl(*this);
  if (n != f.schema->component_count) return Error::invalid;
  const int32_t *lowest = f.schema->lowest.data(), *highest = f.schema->highest.data();
  int32_t outside = 0;
  for (size_t i = 0; i < n; i++) outside |= components[i] < lowest[i] || components[i] > highest[i] ? 1 : 0;
  if (outside != 0) return Error::invalid;
  if (n > 0) std::memcpy(f.view.c, components, n * sizeof *components);
  return Error::ok;
}

} // namespace uplink
