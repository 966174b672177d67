#include "uplink/link_simulator.hpp"

#include <algorithm>
#include <cstring>

#include "src/base/memory.hpp"

namespace uplink {
namespace {

constexpr size_t max_size = 1472, room = 256;

struct OnItsWay {
  uint64_t at = 0, order = 0; // when it arrives; order of those at the same time
  Address to;
  size_t size = 0; // 0: unused
  uint8_t data[max_size] = {};
};

struct LinkSimulatorImpl final : LinkSimulator {
  Allocator allocator;
  LinkConditions conditions;
  detail::Array<OnItsWay> entries;
  uint64_t random = 0, orders = 0;

  // share returns a random number from 0 to below 1 (SplitMix64).
  double share() {
    uint64_t z = random += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return static_cast<double>((z ^ z >> 31) >> 11) / 9007199254740992.0;
  }

  void send(Bytes d, const Address &to, uint64_t now) {
    for (OnItsWay &e : entries) {
      if (e.size != 0) continue;
      e.at = now + conditions.delay + static_cast<uint64_t>(share() * static_cast<double>(conditions.jitter));
      e.order = orders++;
      e.to = to;
      e.size = d.size;
      std::memcpy(e.data, d.data, d.size);
      return;
    }
  }

  void put(Bytes d, const Address &to, uint64_t now) override {
    const bool lost = share() < conditions.loss, twice = share() < conditions.duplicate;
    if (d.size == 0 || d.size > max_size || lost) return;
    send(d, to, now);
    if (twice) send(d, to, now);
  }

  const OnItsWay *first() const {
    const OnItsWay *f = nullptr;
    for (const OnItsWay &e : entries)
      if (e.size != 0 && (f == nullptr || e.at < f->at || (e.at == f->at && e.order < f->order))) f = &e;
    return f;
  }

  size_t take(Buffer b, Address *to, uint64_t *arrived, uint64_t now) override {
    auto *e = const_cast<OnItsWay *>(first());
    if (e == nullptr || e->at > now || b.capacity < e->size) return 0;
    std::memcpy(b.data, e->data, e->size);
    *to = e->to;
    *arrived = e->at;
    const size_t n = e->size;
    e->size = 0;
    return n;
  }

  uint64_t next() const override {
    const OnItsWay *e = first();
    return e == nullptr ? UINT64_MAX : e->at;
  }
};

} // namespace

Error LinkSimulator::create(const Allocator &a, const LinkConditions &c, LinkSimulator **out) {
  *out = nullptr;
  constexpr uint64_t minute = 60000000000;
  const bool shares = c.loss >= 0 && c.loss <= 1 && c.duplicate >= 0 && c.duplicate <= 1;
  if (!shares || c.delay > minute || c.jitter > minute) return Error::invalid;
  auto *s = detail::create<LinkSimulatorImpl>(a);
  if (s == nullptr) return Error::no_memory;
  s->allocator = a;
  s->conditions = c;
  s->random = c.seed;
  if (!s->entries.create(a, room)) {
    destroy(s);
    return Error::no_memory;
  }
  *out = s;
  return Error::ok;
}

void LinkSimulator::destroy(LinkSimulator *s) {
  if (s == nullptr) return;
  auto *impl = static_cast<LinkSimulatorImpl *>(s);
  const Allocator a = impl->allocator;
  detail::destroy(a, impl);
}

} // namespace uplink
