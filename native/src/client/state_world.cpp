// Worlds of state synchronization. docs/spec/streams.md, 3 and 6.
#include "uplink/state_world.hpp"

#include <cstring>
#include <new>

#include "src/client/suite.hpp"
#include "src/client/worlds.hpp"
#include "src/downlink/state/receiver.hpp"

namespace uplink {

using namespace detail;
using namespace detail::client;

namespace {

// A spare with more than max_kept bytes accepts no more packets. The server sends their contents
// again later.
constexpr size_t max_kept = 262144;

// Kept is a packet stored by a spare; its bytes follow.
struct Kept {
  Kept *next;
  size_t size;
  uint64_t now; // time of arrival in ns
  size_t calls_n;
  ProcessedCalls calls[max_processed];
};

struct StateWorldImpl final : StateWorld {
  Allocator allocator;
  StateReceiver *own = nullptr;
  void (*updated)(void *context, const StateWorld &w, const StateUpdate &u) = nullptr;
  void *context = nullptr;

  // In a spare: packets received for its owner.
  const StateWorldImpl *of = nullptr;
  Kept *first = nullptr;
  Kept *last = nullptr;
  size_t kept = 0;

  StateWorldImpl() = default;
  StateWorldImpl(const StateWorldImpl &) = delete;
  StateWorldImpl &operator=(const StateWorldImpl &) = delete;
  ~StateWorldImpl();

  state::StateImpl &impl() const { return *static_cast<state::StateImpl *>(own); }
  bool plan(const WorldOffer &o, state::StatePlan *p) const;

  bool accepts(const WorldOffer &o, WorldReport *r) override;
  bool knows(uint64_t hash) const override { return hash == 0; }
  Error begin(const WorldOffer &o, Bytes initial) override;
  Error receive(const WorldMessage &m, uint64_t *tick) override;
  size_t ack(uint8_t *to) const override { return own->ack(to); }
  WorldReceiver *spare() override;
  void adopt(WorldReceiver *spare) override;
  void discard(WorldReceiver *spare) override { destroy(static_cast<StateWorldImpl *>(spare)); }

  const StateReceiver &receiver() const override { return *own; }
};

StateWorldImpl::~StateWorldImpl() {
  StateReceiver::destroy(own);
  while (first != nullptr) {
    Kept *k = first;
    first = k->next;
    detail::release(allocator, k);
  }
}

// plan makes the plan for the velocity factors of an offer.
bool StateWorldImpl::plan(const WorldOffer &o, state::StatePlan *p) const {
  const downlink::TypeImpl &type = downlink::impl(*impl().type);
  return o.factors_n == type.source->velocity_factors() && state::plan_of(type, o.factors, p);
}

bool StateWorldImpl::accepts(const WorldOffer &o, WorldReport *r) {
  Text why(r->text, sizeof(r->text));
  state::StatePlan p;
  bool ok = false;
  if (!equal(o.codec, text_bytes("state"))) {
    why.add("the codec of the world is ");
    why.quote(o.codec);
    why.add(": subscribe to it by a SnapshotWorld");
    r->reason = 3;
  } else if (o.areas || o.types_n != 1 || o.initial != 0) {
    why.add("the world has areas, or an initial state");
  } else if (explain_fields(why, o.types[0], *impl().type->schema(), impl().rest_field)) {
    r->reason = 2;
  } else {
    ok = plan(o, &p);
    if (!ok) why.add("velocity factors are out of range");
  }
  r->n = why.end();
  return ok;
}

Error StateWorldImpl::begin(const WorldOffer &o, Bytes) {
  state::StatePlan p;
  if (!plan(o, &p)) return Error::invalid;
  p.rest = impl().plan().rest;
  impl().relink(p);
  restart(o.ticks, o.rate);
  return Error::ok;
}

Error StateWorldImpl::receive(const WorldMessage &m, uint64_t *tick) {
  void *memory = nullptr;
  if (of != nullptr) {
    if (kept + m.body.size > max_kept) return Error::full;
    memory = allocate(allocator, sizeof(Kept) + m.body.size);
    if (memory == nullptr) return Error::no_memory;
  }
  StateUpdate u;
  Error e = own->receive(m.body, &u);
  if (e == Error::ok && (u.tick < 0 || !valid(static_cast<uint64_t>(u.tick)))) e = Error::malformed;
  if (e != Error::ok) {
    if (memory != nullptr) detail::release(allocator, memory);
    return e;
  }
  *tick = static_cast<uint64_t>(u.tick);
  if (of == nullptr) {
    observe(m, *tick);
    keep(m);
    updated(context, *this, u);
    return Error::ok;
  }
  auto *k = new (memory) Kept{nullptr, m.body.size, m.now, m.processed_n, {}};
  for (size_t i = 0; i < m.processed_n; i++) k->calls[i] = m.processed[i];
  std::memcpy(static_cast<void *>(k + 1), m.body.data, m.body.size);
  (first == nullptr ? first : last->next) = k;
  last = k;
  kept += k->size;
  return Error::ok;
}

WorldReceiver *StateWorldImpl::spare() {
  auto *s = detail::create<StateWorldImpl>(allocator);
  if (s == nullptr) return nullptr;
  s->allocator = allocator;
  s->of = this;
  auto *r = detail::create<state::StateImpl>(allocator, allocator);
  s->own = r;
  if (r != nullptr && ObjectType::create(allocator, *impl().type->schema(), &r->type) == Error::ok) {
    r->rest_field = impl().rest_field;
    if (r->create(impl().plan(), impl().config()) == Error::ok) return s;
  }
  detail::destroy(allocator, s);
  return nullptr;
}

// The packets are decoded again, because the receiver only has the content of the newest one.
void StateWorldImpl::adopt(WorldReceiver *spare) {
  auto &s = *static_cast<StateWorldImpl *>(spare);
  impl().relink(s.impl().plan());
  restart(s.ticks(), s.rate());
  for (const Kept *k = s.first; k != nullptr; k = k->next) {
    WorldMessage m;
    uint64_t tick = 0;
    m.body = {reinterpret_cast<const uint8_t *>(k + 1), k->size};
    m.processed = k->calls;
    m.processed_n = k->calls_n;
    m.now = k->now;
    (void)receive(m, &tick);
  }
}

} // namespace

Error StateWorld::create(const Allocator &a, const StateWorldConfig &c, StateWorld **out) {
  *out = nullptr;
  if (c.updated == nullptr || c.objects == nullptr) return Error::invalid;
  auto *w = detail::create<StateWorldImpl>(a);
  if (w == nullptr) return Error::no_memory;
  w->allocator = a;
  w->updated = c.updated;
  w->context = c.context;
  const Error e = StateReceiver::create(a, *c.objects, c.state, &w->own);
  if (e != Error::ok) {
    destroy(w);
    return e;
  }
  *out = w;
  return Error::ok;
}

void StateWorld::destroy(StateWorld *w) {
  if (w == nullptr) return;
  auto *i = static_cast<StateWorldImpl *>(w);
  const Allocator a = i->allocator;
  detail::destroy(a, i);
}

} // namespace uplink
