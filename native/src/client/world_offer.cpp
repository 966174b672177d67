// Parsing of a world's offer.
#include <cstring>

#include "src/base/nearest.hpp"
#include "src/client/bind.hpp"
#include "src/client/worlds.hpp"
#include "src/codec/schema.hpp"

namespace uplink {

using namespace detail;
using namespace detail::client;

Bytes field(const WorldType &t, size_t i) {
  Unpacker u(t.fields);
  for (size_t k = 0; k < i && u.ok(); k++) u.string();
  return u.string();
}

bool same_fields(const WorldType &t, const Schema &s) {
  Text ignored(nullptr, 0);
  return !explain_fields(ignored, t, s);
}

} // namespace uplink

namespace uplink::detail::client {

namespace {

// name_of returns the name of the field in a description.
Bytes name_of(Bytes description) {
  size_t n = 0;
  while (n < description.size && description.data[n] != ' ') n++;
  return {description.data, n};
}

// described returns the description of a field. The description of field rest is followed by a
// mark. text has room for it.
constexpr char rest_mark[] = " rest";
constexpr size_t max_described = max_description + sizeof rest_mark;

Bytes described(const Schema &s, size_t field, int rest, char *text) {
  size_t n = s.description(field, text, max_description);
  if (static_cast<int>(field) == rest) {
    std::memcpy(text + n, rest_mark, sizeof rest_mark);
    n += sizeof rest_mark - 1;
  }
  return {reinterpret_cast<const uint8_t *>(text), n};
}

// find returns the index of the field of a schema with a name, or the number of fields.
size_t find(const Schema &s, Bytes name) {
  char text[max_described];
  size_t i = 0;
  while (i < s.fields() && !equal(name_of(described(s, i, -1, text)), name)) i++;
  return i;
}

// find returns the description of the field of an offer with a name, or no bytes.
Bytes find(const WorldType &t, Bytes name) {
  Unpacker u(t.fields);
  for (size_t i = 0; i < t.n; i++) {
    const Bytes there = u.string();
    if (equal(name_of(there), name)) return there;
  }
  return {};
}

// add_missing reports that the server has no field with this name, and the nearest name that it
// has.
void add_missing(Text &to, const WorldType &t, const Schema &s, Bytes name) {
  Nearest nearest(name);
  Unpacker u(t.fields);
  for (size_t i = 0; i < t.n; i++) {
    const Bytes there = name_of(u.string());
    if (find(s, there) == s.fields()) nearest.consider(there);
  }
  to.add("the server has no field ");
  to.quote(name);
  if (nearest.best().size == 0) return;
  to.add(", nearest ");
  to.quote(nearest.best());
}

} // namespace

bool explain_fields(Text &to, const WorldType &t, const Schema &s, int rest) {
  char text[max_described];
  bool ordered = t.n == s.fields();
  for (size_t i = 0; i < s.fields(); i++) {
    const Bytes here = described(s, i, rest, text);
    if (i < t.n && equal(here, field(t, i))) continue;
    ordered = false;
    const Bytes there = find(t, name_of(here));
    if (there.size == 0) {
      add_missing(to, t, s, name_of(here));
      return true;
    }
    if (equal(here, there)) continue;
    to.add("a field differs: here ");
    to.quote(here);
    to.add(", at the server ");
    to.quote(there);
    return true;
  }
  if (ordered) return false;
  Unpacker u(t.fields);
  for (size_t i = 0; i < t.n; i++) {
    const Bytes name = name_of(u.string());
    if (find(s, name) < s.fields()) continue;
    to.add("the program has no field ");
    to.quote(name);
    to.add(" of the server");
    return true;
  }
  to.add("the server has its fields in another order");
  return true;
}

namespace {

constexpr uint32_t max_initial = 1048576;
constexpr size_t max_name_size = 64, max_field_count = 64;

bool is_rate(double hz) {
  return hz > 0 && hz <= 1000;
}

// parse_fields reads descriptions of fields. body begins at the position of u.
bool parse_fields(Unpacker *u, Bytes body, WorldType *t) {
  t->n = u->array();
  if (t->n > max_field_count) return false;
  const size_t from = u->left();
  for (size_t i = 0; i < t->n; i++) u->string();
  t->fields = {body.data + (body.size - from), from - u->left()};
  return u->ok();
}

bool parse_types(Unpacker *u, Bytes body, WorldOffer *o) {
  const size_t n = u->array();
  if (n >= max_world_types) return false;
  for (size_t i = 0; i < n && u->ok(); i++) {
    WorldType &t = o->types[o->types_n];
    if (u->array() != 2) return false;
    t.name = u->string();
    if (!parse_fields(u, body, &t) || !is_name(t.name)) return false;
    for (size_t k = 1; k < o->types_n; k++)
      if (equal(t.name, o->types[k].name)) return false;
    o->types_n++;
  }
  return u->ok();
}

} // namespace

bool is_name(Bytes s) {
  return s.size >= 1 && s.size <= max_name_size;
}

bool parse_offer(Bytes m, WorldOffer *o) {
  *o = {};
  const Bytes body = {m.data + 1, m.size - 1};
  Unpacker u(body);
  if (u.array() != 12) return false;
  const uint64_t number = u.number();
  o->name = u.string();
  o->codec = u.string();
  o->types[0].name = o->name;
  o->types_n = 1;
  if (number >= max_worlds || !is_name(o->name) || !parse_fields(&u, body, &o->types[0])) return false;
  o->number = static_cast<uint8_t>(number);
  o->rate = u.real();
  o->ticks = u.real();
  const uint64_t initial = u.number();
  o->initial = static_cast<uint32_t>(initial);
  o->hash = u.number();
  o->areas = u.boolean();
  if (!is_rate(o->rate) || !is_rate(o->ticks) || initial > max_initial || !parse_types(&u, body, o))
    return false;
  o->processed = u.boolean();
  o->factors_n = u.array();
  if (o->factors_n > o->types[0].n) return false;
  for (size_t i = 0; i < o->factors_n; i++) o->factors[i] = u.integer();
  return u.end();
}

} // namespace uplink::detail::client
