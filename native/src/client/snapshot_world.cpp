// Worlds of snapshots. docs/spec/streams.md, 2 and 3.
#include "uplink/snapshot_world.hpp"

#include <algorithm>
#include <cstring>

#include "src/base/nearest.hpp"
#include "src/client/suite.hpp"
#include "src/client/worlds.hpp"
#include "src/codec/description.hpp"
#include "src/downlink/set.hpp"

namespace uplink {

using namespace detail;
using namespace detail::downlink;

namespace {

constexpr uint64_t max_tick = (uint64_t{1} << 53) - 1;
constexpr size_t ring = 64;

// OwnType is an object type of the program.
struct OwnType {
  ObjectType *type = nullptr;
  InterpolatorConfig config;
  bool interpolated = false;
  Interpolator *interpolator = nullptr;
  Set newest;
  Array<uint64_t> ages; // ages of the objects in newest, in ticks
  bool older = false;   // an age is above 0
};

struct SnapshotWorldImpl final : SnapshotWorld {
  Allocator allocator;
  size_t max_objects = 0;
  size_t n = 0;
  OwnType types[max_world_types];
  // Index of the program's type for each type of the server, or n if the program has none. In that
  // case skipped contains the type, and its objects are dropped.
  size_t order[max_world_types] = {};
  ObjectType *skipped[max_world_types] = {};
  size_t offered = 0; // number of types of the server
  double rate = 0;
  Array<uint8_t> initial; // coded initial state that arrived last
  uint64_t initial_hash = 0;
  SnapshotDecoder *decoder = nullptr;
  AreaDecoder *areas = nullptr;
  uint64_t ticks_of[ring] = {}; // ticks by snapshot number
  bool any = false;
  bool former = false;  // the newest snapshot belongs to an earlier stream
  bool borrows = false; // a spare: the types belong to another world
  Snapshot snapshot;

  SnapshotWorldImpl() = default;
  SnapshotWorldImpl(const SnapshotWorldImpl &) = delete;
  SnapshotWorldImpl &operator=(const SnapshotWorldImpl &) = delete;
  ~SnapshotWorldImpl();

  bool accepts(const WorldOffer &o, WorldReport *r) override;
  bool knows(uint64_t hash) const override {
    return hash == 0 || (initial.size() > 0 && hash == initial_hash);
  }
  Error begin(const WorldOffer &o, Bytes state) override;
  Error receive(const WorldMessage &m, uint64_t *tick) override;
  bool complete() const override { return areas == nullptr || areas->complete(); }
  size_t ack(uint8_t *to) const override;
  WorldReceiver *spare() override;
  void adopt(WorldReceiver *spare) override;
  void discard(WorldReceiver *spare) override { destroy(static_cast<SnapshotWorldImpl *>(spare)); }

  const Snapshot *newest() const override { return any ? &snapshot : nullptr; }
  Objects objects(size_t type) const override {
    if (!any || type >= n) return {};
    Objects o = types[type].newest.view();
    if (types[type].older) o.ages = types[type].ages.data();
    return o;
  }
  const ObjectType &type(size_t type) const override { return *types[type].type; }
  bool sample(size_t type, uint64_t now, Sample *s) override {
    return type < n && types[type].interpolator != nullptr && types[type].interpolator->sample(now, s);
  }
  InterpolatorStats interpolation(size_t type) const override {
    return type < n && types[type].interpolator != nullptr ? types[type].interpolator->stats()
                                                           : InterpolatorStats{};
  }

  void release_decoders();
  Bytes name(size_t type) const { return client::text_bytes(types[type].type->schema()->rpc()); }
  bool match(const WorldOffer &o, Text *to, WorldReport *r);
  bool skip(const WorldType &t, size_t type, Text *to);
  Error begin_interpolation();
  // take passes on the objects of a type of the server. It reports whether there was memory.
  bool take(const Objects &o, size_t type, size_t number, uint64_t now, uint64_t time, bool newer);
  uint64_t age_in_ticks(size_t number, uint64_t age) const;
};

SnapshotWorldImpl::~SnapshotWorldImpl() {
  release_decoders();
  for (OwnType &t : types) {
    Interpolator::destroy(t.interpolator);
    if (!borrows) ObjectType::destroy(t.type);
  }
}

void SnapshotWorldImpl::release_decoders() {
  SnapshotDecoder::destroy(decoder);
  AreaDecoder::destroy(areas);
  decoder = nullptr;
  areas = nullptr;
  for (ObjectType *&t : skipped) {
    ObjectType::destroy(t);
    t = nullptr;
  }
}

bool SnapshotWorldImpl::accepts(const WorldOffer &o, WorldReport *r) {
  Text text(r->text, sizeof(r->text));
  release_decoders();
  const bool ok = match(o, &text, r);
  r->n = text.end();
  return ok;
}

// match maps the types of an offer. It reports the skipped types, or why it fails.
bool SnapshotWorldImpl::match(const WorldOffer &o, Text *to, WorldReport *r) {
  if (!client::equal(o.codec, client::text_bytes("snapshot"))) {
    to->add("the codec of the world is ");
    to->quote(o.codec);
    to->add(": subscribe to it by a StateWorld");
    r->reason = 3;
    return false;
  }
  if (!o.areas && o.types_n > 1) {
    to->add("the world has several types of objects, but no areas");
    return false;
  }
  bool found[max_world_types] = {};
  offered = o.types_n;
  for (size_t k = 0; k < offered; k++) {
    size_t own = 0;
    if (k > 0)
      for (own = 1; own < n && !client::equal(o.types[k].name, name(own));) own++;
    order[k] = own;
    if (own == n) continue;
    found[own] = true;
    r->reason = 2;
    if (!client::explain_fields(*to, o.types[k], *types[own].type->schema())) continue;
    to->add(", in objects of type ");
    to->quote(o.types[k].name);
    return false;
  }
  for (size_t own = 1; own < n; own++) {
    if (found[own]) continue;
    Nearest nearest(name(own));
    for (size_t k = 1; k < offered; k++)
      if (order[k] == n) nearest.consider(o.types[k].name);
    to->add("the server has no objects of type ");
    to->quote(name(own));
    if (nearest.best().size == 0) return false;
    to->add(", nearest ");
    to->quote(nearest.best());
    return false;
  }
  for (size_t k = 0; k < offered; k++) {
    if (order[k] < n) continue;
    if (!skip(o.types[k], k, to)) return false;
    r->skipped = static_cast<uint16_t>(r->skipped | 1U << k);
  }
  return true;
}

// skip prepares a type whose objects are skipped.
bool SnapshotWorldImpl::skip(const WorldType &t, size_t type, Text *to) {
  Bytes fields[max_fields];
  for (size_t i = 0; i < t.n; i++) fields[i] = field(t, i);
  Schema *s = nullptr;
  const bool ok = parse_schema(allocator, t.name, fields, t.n, &s) == Error::ok &&
                  ObjectType::create(allocator, *s, &skipped[type]) == Error::ok;
  Schema::destroy(s);
  if (to->size() > 0) to->add("; ");
  to->add(ok ? "objects are dropped of type " : "objects cannot be skipped of type ");
  to->quote(t.name);
  if (!ok) return false;
  to->add(", which the program does not have");
  Nearest nearest(t.name);
  for (size_t own = 1; own < n; own++) nearest.consider(name(own));
  if (nearest.best().size == 0) return true;
  to->add(", nearest ");
  to->quote(nearest.best());
  return true;
}

Error SnapshotWorldImpl::begin_interpolation() {
  for (size_t k = 0; k < n; k++) {
    OwnType &t = types[k];
    if (!t.interpolated || t.interpolator != nullptr) continue; // the world is most likely the same
    if (t.config.interval == 0) t.config.interval = static_cast<uint64_t>(std::min(1e9 / rate, 1e18));
    const Error e = Interpolator::create(allocator, *t.type, t.config, &t.interpolator);
    if (e != Error::ok) return e;
  }
  return Error::ok;
}

Error SnapshotWorldImpl::begin(const WorldOffer &o, Bytes state) {
  former = true;
  rate = o.rate;
  restart(o.ticks, o.rate);
  std::fill(ticks_of, ticks_of + ring, uint64_t{0});
  Error e = begin_interpolation();
  if (e != Error::ok) return e;
  if (o.areas) {
    const ObjectType *of[max_world_types] = {};
    for (size_t k = 0; k < offered; k++) of[k] = order[k] < n ? types[order[k]].type : skipped[k];
    return AreaDecoder::create(allocator, of, offered, &areas, max_objects);
  }
  const Bytes known = o.initial > 0 && state.size == 0 ? Bytes{initial.data(), initial.size()} : state;
  e = SnapshotDecoder::create(allocator, *types[0].type, known, &decoder, max_objects);
  if (e == Error::ok && o.initial > 0 && decoder->content() != o.hash) e = Error::malformed;
  if (e != Error::ok || state.size == 0) return e;
  if (!initial.create(allocator, state.size)) return Error::no_memory;
  std::memcpy(initial.data(), state.data, state.size);
  initial_hash = o.hash;
  return Error::ok;
}

bool SnapshotWorldImpl::take(const Objects &o, size_t type, size_t number, uint64_t now, uint64_t time,
                             bool newer) {
  OwnType &t = types[type];
  if (t.interpolator != nullptr)
    (void)t.interpolator->add(now, time, o); // it counts rejected snapshots itself
  if (!newer) return true;
  t.newest.clear();
  if (!t.newest.reserve(allocator, o.n)) return false;
  for (size_t i = 0; i < o.n; i++) t.newest.push(o.objects[i]);
  if (o.n > 0) std::memcpy(t.newest.row(0), o.rows, o.n * o.components * sizeof(int32_t));
  t.older = o.ages != nullptr;
  if (!t.older) return true;
  if (t.ages.size() < o.n && !t.ages.create(allocator, o.n)) return false;
  for (size_t i = 0; i < o.n; i++) t.ages[i] = age_in_ticks(number, o.ages[i]);
  return true;
}

// age_in_ticks converts the age of an object in a received snapshot from snapshots to ticks. An age
// of 64 snapshots or more becomes at least as many ticks.
uint64_t SnapshotWorldImpl::age_in_ticks(size_t number, uint64_t age) const {
  return age < ring ? ticks_of[number % ring] - ticks_of[(number - static_cast<size_t>(age)) % ring] : age;
}

Error SnapshotWorldImpl::receive(const WorldMessage &m, uint64_t *tick) {
  client::Reader r(m.body);
  const uint64_t coded = r.varint();
  const uint64_t difference = coded >> 1 ^ (0 - (coded & 1));
  if (!r.ok() || (coded + 1) >> 1 > max_tick) return Error::malformed;
  SnapshotInfo info;
  Objects all;
  const Error e = areas != nullptr ? areas->decode(r.rest(), &info) : decoder->decode(r.rest(), &info, &all);
  if (e != Error::ok) return e;
  const uint64_t before =
      info.distance == 0 ? 0
                         : ticks_of[static_cast<size_t>(info.number - info.distance) % ring] + info.distance;
  *tick = before + difference;
  if (!valid(*tick)) return Error::malformed;
  ticks_of[info.number % ring] = *tick;
  const uint64_t time = observe(m, *tick);
  if (m.held && !complete()) return Error::ok;
  const bool newer = !any || former || *tick > snapshot.tick;
  bool ok = true;
  for (size_t k = 0; k < offered; k++) {
    if (order[k] == n) continue;
    const Objects shown = areas != nullptr ? areas->shown(k) : all;
    ok = take(shown, order[k], info.number, m.now, time, newer) && ok;
  }
  if (!newer) return Error::ok;
  any = ok;
  former = false;
  snapshot.tick = *tick;
  snapshot.received = m.now;
  keep(m);
  return ok ? Error::ok : Error::no_memory;
}

WorldReceiver *SnapshotWorldImpl::spare() {
  auto *s = detail::create<SnapshotWorldImpl>(allocator);
  if (s == nullptr) return nullptr;
  s->allocator = allocator;
  s->max_objects = max_objects;
  s->n = n;
  s->borrows = true;
  for (size_t k = 0; k < n; k++) {
    s->types[k].type = types[k].type;
    s->types[k].newest.start(detail::downlink::impl(*types[k].type));
  }
  // The other server most likely has the same initial state.
  if (initial.size() == 0 || !s->initial.create(allocator, initial.size())) return s;
  std::memcpy(s->initial.data(), initial.data(), initial.size());
  s->initial_hash = initial_hash;
  return s;
}

void SnapshotWorldImpl::adopt(WorldReceiver *spare) {
  auto &s = *static_cast<SnapshotWorldImpl *>(spare);
  std::swap(decoder, s.decoder);
  std::swap(areas, s.areas);
  std::swap(order, s.order);
  std::swap(skipped, s.skipped);
  offered = s.offered;
  std::copy(s.ticks_of, s.ticks_of + ring, ticks_of);
  rate = s.rate;
  take_over(s);
  if (s.initial.size() > 0) {
    initial.swap(s.initial);
    initial_hash = s.initial_hash;
  }
  former = true;
  if (begin_interpolation() != Error::ok || !s.any) return;
  any = true;
  former = false;
  snapshot = s.snapshot;
  WorldMessage m;
  m.now = snapshot.received;
  const uint64_t time = observe(m, snapshot.tick);
  for (size_t k = 0; k < n; k++) {
    types[k].newest.swap(s.types[k].newest);
    types[k].ages.swap(s.types[k].ages);
    types[k].older = s.types[k].older;
    if (types[k].interpolator != nullptr)
      (void)types[k].interpolator->add(snapshot.received, time, types[k].newest.view());
  }
}

size_t SnapshotWorldImpl::ack(uint8_t *to) const {
  return areas != nullptr ? areas->ack(to) : decoder->ack(to);
}

} // namespace

// keep_name replaces the name of a field by the one that a schema keeps.
static void keep_name(const Schema &s, const char **name) {
  if (*name == nullptr) return;
  for (const FieldInfo &f : detail::impl(s).infos)
    if (std::strcmp(f.name, *name) == 0) *name = f.name;
}

Error SnapshotWorld::create(const Allocator &a, const SnapshotWorldConfig &c, SnapshotWorld **out) {
  *out = nullptr;
  if (c.n < 1 || c.n > max_world_types) return Error::invalid;
  auto *w = detail::create<SnapshotWorldImpl>(a);
  if (w == nullptr) return Error::no_memory;
  w->allocator = a;
  w->max_objects = c.max_objects;
  w->n = c.n;
  Error e = Error::ok;
  for (size_t k = 0; k < c.n && e == Error::ok; k++) {
    OwnType &t = w->types[k];
    e = c.types[k] == nullptr ? Error::invalid : ObjectType::create(a, *c.types[k], &t.type);
    if (e != Error::ok) break;
    t.newest.start(detail::downlink::impl(*t.type));
    t.interpolated = c.interpolation[k] != nullptr;
    if (!t.interpolated) continue;
    t.config = *c.interpolation[k];
    // Checks the configuration with an interval that stands for the offer's.
    InterpolatorConfig checked = t.config;
    if (checked.interval == 0) checked.interval = 50000000;
    Interpolator *i = nullptr;
    e = Interpolator::create(a, *t.type, checked, &i);
    Interpolator::destroy(i);
    for (const char **name :
         {&t.config.position, &t.config.velocity, &t.config.orientation, &t.config.teleports})
      keep_name(*c.types[k], name);
    for (const char *&name : t.config.blended) keep_name(*c.types[k], &name);
  }
  if (e != Error::ok) {
    destroy(w);
    return e;
  }
  *out = w;
  return Error::ok;
}

void SnapshotWorld::destroy(SnapshotWorld *w) {
  if (w == nullptr) return;
  auto *i = static_cast<SnapshotWorldImpl *>(w);
  const Allocator a = i->allocator;
  detail::destroy(a, i);
}

} // namespace uplink
