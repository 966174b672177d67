// What a server tells about a world that it offers.
#include <cstring>

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
  // A description has up to two names, and numbers.
  char text[2 * max_name + 256];
  if (t.n != s.fields()) return false;
  Unpacker u(t.fields);
  for (size_t i = 0; i < t.n; i++) {
    const Bytes there = u.string();
    const size_t n = s.description(i, text, sizeof(text));
    if (n >= sizeof(text) || there.size != n || std::memcmp(there.data, text, n) != 0) return false;
  }
  return true;
}

} // namespace uplink

namespace uplink::detail::client {
namespace {

constexpr uint32_t max_initial = 1048576;
constexpr size_t max_name_size = 64, max_field_count = 64;

bool is_rate(double hz) {
  return hz > 0 && hz <= 1000;
}

// parse_fields reads descriptions of fields. body is what follows the position of u.
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
