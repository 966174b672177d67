// Worlds of state synchronization. docs/spec/streams.md, 3 and 6.
#include "uplink/state_world.hpp"

#include <cstring>

#include "src/downlink/state/receiver.hpp"

namespace uplink {

using namespace detail;

namespace {

struct StateWorldImpl final : StateWorld {
  Allocator allocator;
  StateReceiver *own = nullptr;
  void (*updated)(void *context, const StateWorld &w, const StateUpdate &u) = nullptr;
  void *context = nullptr;

  StateWorldImpl() = default;
  StateWorldImpl(const StateWorldImpl &) = delete;
  StateWorldImpl &operator=(const StateWorldImpl &) = delete;
  ~StateWorldImpl() { StateReceiver::destroy(own); }

  state::StateImpl &impl() const { return *static_cast<state::StateImpl *>(own); }
  bool plan(const WorldOffer &o, state::StatePlan *p) const;

  bool check(const WorldOffer &o) override;
  bool knows(uint64_t hash) const override { return hash == 0; }
  Error begin(const WorldOffer &o, Bytes initial) override;
  Error receive(const WorldMessage &m, uint64_t *tick) override;
  size_t ack(uint8_t *to) const override { return own->ack(to); }

  const StateReceiver &receiver() const override { return *own; }
};

// plan makes the plan for the velocity factors of an offer.
bool StateWorldImpl::plan(const WorldOffer &o, state::StatePlan *p) const {
  const downlink::TypeImpl &type = downlink::impl(*impl().type);
  return o.factors_n == type.source->velocity_factors() && state::plan_of(type, o.factors, p);
}

bool StateWorldImpl::check(const WorldOffer &o) {
  constexpr char codec[] = "state", rest[] = " rest";
  const Schema &s = *impl().type->schema();
  state::StatePlan p;
  if (o.codec.size != sizeof codec - 1 || std::memcmp(o.codec.data, codec, o.codec.size) != 0) return false;
  if (o.areas || o.types_n != 1 || o.initial != 0 || o.types[0].n != s.fields()) return false;
  for (size_t i = 0; i < s.fields(); i++) {
    char text[2 * max_name + 256 + sizeof rest];
    size_t n = s.description(i, text, 2 * max_name + 256);
    if (static_cast<int>(i) == impl().rest_field) {
      std::memcpy(text + n, rest, sizeof rest);
      n += sizeof rest - 1;
    }
    const Bytes there = field(o.types[0], i);
    if (there.size != n || std::memcmp(there.data, text, n) != 0) return false;
  }
  return plan(o, &p);
}

Error StateWorldImpl::begin(const WorldOffer &o, Bytes) {
  state::StatePlan p;
  if (!plan(o, &p)) return Error::invalid;
  p.rest = impl().plan().rest;
  impl().relink(p);
  restart(o.ticks);
  return Error::ok;
}

Error StateWorldImpl::receive(const WorldMessage &m, uint64_t *tick) {
  StateUpdate u;
  const Error e = own->receive(m.body, &u);
  if (e != Error::ok) return e;
  *tick = u.tick < 0 ? 0 : static_cast<uint64_t>(u.tick);
  observe(m, *tick);
  keep(m);
  updated(context, *this, u);
  return Error::ok;
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
