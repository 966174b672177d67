#include "src/codec/adaptive/model.hpp"

#include "src/codec/adaptive/unit_quaternion.hpp"

namespace uplink::detail {

namespace {

bool has_derivative(const FieldInfo &f) {
  return f.velocity >= 0 && f.factor != 0;
}

// rank returns the position of a field's kind in the coding order.
int rank(const SchemaImpl &s, size_t i) {
  const FieldInfo &f = s.infos[i];
  bool of_quat = false, of_other = false;
  for (const FieldInfo &g : s.infos) {
    if (!has_derivative(g) || static_cast<size_t>(g.velocity) != i) continue;
    (g.kind == Kind::quat ? of_quat : of_other) = true;
  }
  switch (f.kind) {
  case Kind::scalar:
    return 1;
  case Kind::vec2:
  case Kind::vec3:
    return of_quat ? 2 : of_other ? 3 : 5;
  case Kind::angle:
    return 4;
  case Kind::unitvec:
    return 5;
  case Kind::quat:
    return 6;
  case Kind::fixed:
  case Kind::bytes:
    return 7;
  default:
    return 0;
  }
}

uint8_t flag_kind(const Group &g) {
  switch (g.type) {
  case Group::Type::flags:
    return 6;
  case Group::Type::string:
    return 7;
  case Group::Type::quat:
    return g.family == Family::turned ? 4 : 5;
  case Group::Type::numbers:
    break;
  }
  return g.counter ? 1 : g.family == Family::angled ? 2 : g.family == Family::derived ? 3 : 0;
}

// largest returns the number of bits of the largest magnitude that a component of a field can have.
int largest(const FieldInfo &f) {
  if (f.is_integer()) return f.width > 32 ? 32 : f.width;
  int64_t bound = f.hi;
  if (-static_cast<int64_t>(f.lo) > bound) bound = -static_cast<int64_t>(f.lo);
  return bound < 0 ? 0 : bit_length(static_cast<uint64_t>(bound));
}

void fill(Model &m, Group &g, const FieldInfo &f) {
  g.field = &f;
  g.first = f.first;
  g.count = f.components;
  g.lo = f.lo;
  g.hi = f.hi;
  g.most = static_cast<uint8_t>(largest(f));
  for (size_t k = 0; k < 2; k++) {
    g.widths[k] = static_cast<uint8_t>(f.kind == Kind::angle ? f.bits : f.is_integer() ? f.part_width(k) : 0);
    g.signs[k] = f.kind == Kind::int_ && (f.width <= 32 || k == 1);
  }
  switch (f.kind) {
  case Kind::quat:
    g.type = Group::Type::quat;
    g.family = has_derivative(f) ? Family::turned : Family::extrapolated;
    g.predicted = 3;
    g.scale = scale_of(f.bits);
    g.quat = static_cast<uint16_t>(m.quats++);
    break;
  case Kind::bits:
  case Kind::boolean:
    g.type = Group::Type::flags;
    g.state = static_cast<uint16_t>(m.flags);
    m.flags += static_cast<size_t>(f.values) * f.width;
    break;
  case Kind::fixed:
  case Kind::bytes:
    g.type = Group::Type::string;
    g.state = static_cast<uint16_t>(m.strings++);
    break;
  default:
    g.counter = f.is_integer();
    g.has_signs = f.kind == Kind::int_ || (!f.is_integer() && f.lo < 0);
    g.predicted = f.components;
    if (has_derivative(f))
      g.family = Family::derived;
    else if (f.kind == Kind::angle && m.scalars[0] >= 0)
      g.family = Family::angled;
  }
  if (g.predicted > 0) {
    g.state = static_cast<uint16_t>(m.components);
    m.components += g.predicted;
  }
  if (has_derivative(f)) {
    g.derivative = m.schema->infos[static_cast<size_t>(f.velocity)].first;
    g.factor = f.factor;
  }
  g.flag_kind = flag_kind(g);
}

} // namespace

bool Model::create(const Allocator &a, const SchemaImpl &s) {
  schema = &s;
  size_t n = s.infos.size(), done = 0, found = 0;
  if (!groups.create(a, n)) return false;
  for (const FieldInfo &f : s.infos) {
    for (size_t k = 0; f.kind == Kind::scalar && k < f.components && found < 2; k++)
      scalars[found++] = f.first + static_cast<int>(k);
  }
  bool placed[max_fields] = {};
  for (int r = 0; r <= 7; r++) {
    for (size_t i = 0; i < n; i++) {
      if (rank(s, i) != r) continue;
      while (!placed[i]) { // places the derivatives first, starting with the innermost
        size_t k = i;
        while (has_derivative(s.infos[k]) && !placed[s.infos[k].velocity])
          k = static_cast<size_t>(s.infos[k].velocity);
        placed[k] = true;
        fill(*this, groups[done++], s.infos[k]);
      }
    }
  }
  return true;
}

} // namespace uplink::detail
