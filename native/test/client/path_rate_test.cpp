// The rate of a path: the same cases as in internal/transport/path, over links in virtual time.
#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <vector>

#include <doctest/doctest.h>

#include "src/client/path.hpp"
#include "src/client/path_rate.hpp"

namespace rates {
using namespace uplink::detail::client;

constexpr uint64_t ms = 1000, second = 1000000;
constexpr double kbit = 1000 / 8.0; // bytes/s

// Link is one direction of a path, as in package simnet. Times are microseconds.
struct Link {
  uint64_t delay = 40 * ms, jitter = 0;
  double loss = 0;
  double rate = 0; // bytes/s; 0: unlimited

  std::mt19937_64 random{1};
  uint64_t free = 0; // when the queue of the bottleneck is empty
  // send returns when a datagram arrives, or 0 if it is lost. *wait is then its time in the queue.
  uint64_t send(uint64_t now, size_t size, uint64_t *wait) {
    std::uniform_real_distribution<double> uniform;
    const bool lost = uniform(random) < loss;
    const double x = std::min(-std::log(1 - uniform(random)), 4.0);
    const uint64_t start = std::max(now, free);
    if (start - now > 250 * ms) return 0;
    const uint64_t departs =
        start + (rate > 0 ? static_cast<uint64_t>(static_cast<double>(size) / rate * 1e6) : 0);
    if (rate > 0) free = departs;
    *wait = departs - now;
    return lost ? 0 : departs + delay + static_cast<uint64_t>(x * static_cast<double>(jitter));
  }
};

// Flow sends an endless stream over a link as a PathRate permits. Reports and echoes return over
// another link of the same delay.
struct Flow {
  struct Packet {
    uint64_t number = 0;
    size_t size = 0;
    uint32_t ask = 0;
    Report report;
  };
  explicit Flow(const Link &l) : there(l), back(l) {
    back.rate = 0;
    rate.start(now);
  }

  Link there, back;
  bool lies = false; // the peer reports all datagrams as soon as they are sent
  PathRate rate;
  PathEstimator path;
  Arrivals peer;
  std::multimap<uint64_t, Packet> flying, returning; // by arrival
  uint64_t now = 1000 * second, next = 0, newest = 0;
  size_t sent = 0, got = 0;
  uint32_t asks = 0;
  std::vector<uint64_t> waits; // in the queue

  void send(size_t size, uint32_t ask) {
    rate.departed(now, next, size);
    uint64_t wait = 0;
    if (const uint64_t at = there.send(now, size, &wait); at > 0) {
      flying.insert({at, {next, size, ask, {}}});
      waits.push_back(wait);
    }
    if (lies) peer.arrived(now, next, true, size);
    next++;
    sent += size;
  }
  void reply(const Packet &p) {
    uint64_t wait = 0;
    if (const uint64_t at = back.send(now, 60, &wait); at > 0) returning.insert({at, p});
  }

  // run lets a time pass, and returns the bytes/s that arrived.
  double run(uint64_t time) {
    const size_t before = got;
    sent = 0;
    waits.clear();
    for (const uint64_t end = now + time; now < end; now += ms) {
      for (auto f = flying.begin(); f != flying.end() && f->first <= now; f = flying.erase(f)) {
        const Packet &p = f->second;
        got += p.size;
        if (!lies) peer.arrived(now, p.number, p.number >= newest, p.size);
        newest = std::max(newest, p.number + 1);
        if (p.ask != 0) reply({0, 0, p.ask, {}});
      }
      if (now >= peer.due() && now % (16 * ms) == 0) reply({0, 0, 0, peer.take(now)});
      for (auto f = returning.begin(); f != returning.end() && f->first <= now; f = returning.erase(f)) {
        const Packet &p = f->second;
        if (p.ask == 0)
          REQUIRE(rate.reported(now, p.report, next));
        else if (path.echoed(now, p.ask, 0))
          rate.echoed(now, path.excess());
      }
      if (now % second == 0) {
        path.ask(now, ++asks);
        send(60, asks);
      }
      if (now % (10 * ms) == 0)
        while (rate.stream_room(now) > 0)
          send(std::max<size_t>(300, std::min<size_t>(1200, static_cast<size_t>(rate.rate() / 100))), 0);
    }
    return static_cast<double>(got - before) * second / static_cast<double>(time);
  }
  // queue returns the wait that 95 % of the datagrams of the last run did not exceed.
  uint64_t queue() {
    std::sort(waits.begin(), waits.end());
    return waits.empty() ? 0 : waits[waits.size() * 95 / 100];
  }
};

TEST_CASE("a stream uses its link and keeps the queue short, despite jitter and loss") {
  const struct {
    Link link;
    double used;    // share of the link after 3 s, at least
    uint64_t queue; // at most
  } cases[] = {
      {{40 * ms, 0, 0, 100 * kbit}, 0.9, 150 * ms},         {{40 * ms, 0, 0, 256 * kbit}, 0.9, 60 * ms},
      {{40 * ms, 0, 0, 512 * kbit}, 0.9, 60 * ms},          {{40 * ms, 0, 0, 2000 * kbit}, 0.9, 60 * ms},
      {{10 * ms, 0, 0, 10000 * kbit}, 0.9, 60 * ms},        {{150 * ms, 0, 0, 2000 * kbit}, 0.85, 150 * ms},
      {{40 * ms, 20 * ms, 0, 2000 * kbit}, 0.85, 110 * ms}, {{40 * ms, 0, 0.02, 2000 * kbit}, 0.9, 60 * ms},
      {{40 * ms, 0, 0.1, 512 * kbit}, 0.75, 80 * ms}};
  for (const auto &c : cases) {
    for (uint64_t seed = 0; seed < 3; seed++) {
      Flow f(c.link);
      f.there.random.seed(seed);
      f.run(3 * second);
      const double used = f.run(30 * second) / c.link.rate;
      INFO("rate ", c.link.rate, " delay ", c.link.delay, " jitter ", c.link.jitter, " loss ", c.link.loss);
      CHECK(used >= c.used);
      CHECK(f.queue() <= c.queue);
    }
  }
}

TEST_CASE("the rate follows a link that becomes narrow and wide again") {
  Flow f({40 * ms, 0, 0, 2000 * kbit});
  const double before = f.run(10 * second);
  f.there.rate = 300 * kbit;
  f.run(2 * second);
  CHECK(f.run(10 * second) > 0.75 * 300 * kbit);
  CHECK(f.queue() <= 60 * ms);
  f.there.rate = 2000 * kbit;
  f.run(5 * second);
  CHECK(f.run(3 * second) > 0.9 * before);
}

TEST_CASE("a server that reports what did not arrive raises the rate to six times the link's at most") {
  Flow f({40 * ms, 0, 0, 256 * kbit});
  f.lies = true;
  f.run(30 * second);
  CHECK(static_cast<double>(f.sent) / 30 <= 6 * (48 << 10));
}

TEST_CASE("a queue of seconds reduces the rate, and one late report does not") {
  PathRate p;
  uint64_t now = 1000 * second, number = 0;
  p.start(now);
  const auto report = [&](uint64_t late) {
    for (int i = 0; i < 10; i++) {
      p.departed(now, number++, 1200);
      now += 20 * ms;
    }
    now += late;
    Report r;
    r.newest = static_cast<uint16_t>(number - 1);
    r.arrived = static_cast<uint16_t>(now / report_unit);
    r.count = static_cast<uint16_t>(number);
    REQUIRE(p.reported(now, r, number));
  };
  for (int i = 0; i < 5; i++) report(40 * ms);
  const double before = p.rate();
  report(3 * second);
  CHECK(p.rate() >= before);
  for (int i = 0; i < 5; i++) report(3 * second);
  CHECK(p.rate() < before / 2);
}

TEST_CASE("a report that arrived before a departure and is handled after it is not late") {
  PathRate p;
  uint64_t now = 1000 * second, number = 0;
  p.start(now);
  const double before = p.rate();
  for (int i = 0; i < 20; i++, now += 40 * ms) {
    p.departed(now, number++, 1000);
    p.departed(now, number++, 1000);
    p.departed(now + 3 * ms / 2, number++, 1000);
    Report r;
    r.newest = static_cast<uint16_t>(number - 2);
    r.arrived = static_cast<uint16_t>(now / report_unit);
    r.count = static_cast<uint16_t>(number - 1);
    REQUIRE(p.reported(now + ms / 5, r, number));
  }
  CHECK(p.rate() >= before);
}

TEST_CASE("any reports leave the rate a rate, and those of datagrams that were not sent are refused") {
  std::mt19937_64 random(1);
  for (int session = 0; session < 300; session++) {
    PathRate p;
    uint64_t now = random() % (uint64_t{1} << 40), next = 0;
    p.start(now);
    for (int i = 0; i < 200; i++) {
      for (uint64_t n = random() % 20; n > 0; n--) {
        p.departed(now, next++, 30 + random() % 1450);
        now += random() % 50 * ms;
      }
      Report r;
      r.newest = static_cast<uint16_t>(next - random() % 40 + 5);
      r.arrived = static_cast<uint16_t>(random());
      r.count = static_cast<uint16_t>(next - random() % 40 + 3);
      const bool known = static_cast<uint16_t>(next - 1 - r.newest) < next;
      const bool accepted = p.reported(now, r, next);
      REQUIRE((known || !accepted));
      if (random() % 8 == 0) p.echoed(now, random() % 200 * ms);
      const double room = p.stream_room(now);
      REQUIRE((p.rate() >= 500 && p.rate() < 1e9 && room <= p.rate() && p.queue() < 60 * second));
    }
  }
}

TEST_CASE("when reports are due") {
  Arrivals a;
  const uint64_t at = second;
  a.arrived(at, 0, true, 999);
  a.arrived(at + ms, 1, true, 0);
  CHECK(a.due() == UINT64_MAX);
  a.arrived(at + 2 * ms, 3, true, 1);
  a.arrived(at + 3 * ms, 2, false, 100);
  CHECK(a.due() == at + 2 * ms);
  const Report r = a.take(at + 5 * ms);
  CHECK(r.newest == 3);
  CHECK(r.arrived == (at + 2 * ms) / report_unit);
  CHECK(r.count == 4);
  a.arrived(at + 6 * ms, 4, true, 2000);
  CHECK(a.due() == at + 35 * ms);
}

} // namespace rates
