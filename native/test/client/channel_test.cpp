#include <deque>
#include <random>

#include <doctest/doctest.h>

#include "src/client/channel.hpp"
#include "test/client/vectors.hpp"

using namespace uplink;
using namespace uplink::detail::client;
using namespace uplink_test;

namespace {
std::string expand_text(const std::string &s) {
  const size_t at = s.find(" * ");
  return at == std::string::npos ? s : std::string(std::stoul(s.substr(at + 3)), s[0]);
}
} // namespace

// Each end gets the datagrams of the trace, and must deliver the messages of the trace. A first
// transmission contains the segments of the trace, without their times.
TEST_CASE("trace of the reliable channel") {
  const nlohmann::json v = load("kcp.json");
  Channel end[2];
  Data buffer(max_reliable);
  struct Flight {
    uint64_t at;
    int to;
    Data data;
  };
  std::deque<Flight> flight;
  for (Channel &c : end) {
    REQUIRE(c.create({}, 262144));
    c.start(0x77665544, 15000, 55, 0);
  }
  int delivered = 0;
  for (const auto &x : v["events"]) {
    const uint64_t now = x["at_ms"];
    const int at = x["end"];
    while (!flight.empty() && flight.front().at <= now) {
      const Flight f = flight.front();
      flight.pop_front();
      CHECK(end[f.to].input(bytes(f.data), f.at));
    }
    Data own(1173);
    for (Channel &c : end)
      while (c.output(own.data(), now) > 0) {
      }
    if (x["event"] == "message") {
      const std::string m = expand_text(x["message"]);
      CHECK(end[at].send({reinterpret_cast<const uint8_t *>(m.data()), m.size()}));
    } else if (x["event"] == "delivery") {
      const size_t n = end[at].receive(buffer.data());
      const std::string m = expand_text(x["message"]);
      CHECK(std::string(buffer.begin(), buffer.begin() + static_cast<long>(n)) == m);
      delivered++;
    } else if (x["event"] == "datagram") {
      flight.push_back({now + 30, 1 - at, unhex(x["bytes"])});
    }
  }
  CHECK(delivered == 12);
}

TEST_CASE("messages arrive in order over a link that loses, duplicates and reorders") {
  for (uint32_t seed = 1; seed <= 8; seed++) {
    INFO("seed ", seed);
    std::mt19937 random(seed);
    Channel end[2];
    for (Channel &c : end) {
      REQUIRE(c.create({}, 262144));
      c.start(7, 15000, 55, 0);
    }
    struct Flight {
      uint64_t at;
      int to;
      Data data;
    };
    std::vector<Flight> flight;
    std::deque<Data> sent[2];
    Data buffer(max_reliable), body(1173);
    uint64_t now = 0;
    int left[2] = {60, 60};
    for (; now < 120000 && (left[0] + left[1] > 0 || !sent[0].empty() || !sent[1].empty()); now++) {
      for (int e = 0; e < 2; e++) {
        if (left[e] > 0 && random() % 20 == 0) {
          Data m(1 + random() % (random() % 4 == 0 ? max_reliable : 200));
          for (uint8_t &b : m) b = static_cast<uint8_t>(random());
          if (end[e].send(bytes(m))) {
            sent[e].push_back(m);
            left[e]--;
          }
        }
        for (size_t n = 0; (n = end[e].output(body.data(), now)) > 0;)
          for (int copies = 0; copies < 2; copies++)
            if (random() % 10 >= (copies == 0 ? 1U : 9U))
              flight.push_back(
                  {now + 20 + random() % 30, 1 - e, Data(body.begin(), body.begin() + static_cast<long>(n))});
      }
      for (size_t i = 0; i < flight.size();) {
        if (flight[i].at > now) {
          i++;
          continue;
        }
        CHECK(end[flight[i].to].input(bytes(flight[i].data), now));
        flight.erase(flight.begin() + static_cast<long>(i));
      }
      for (int e = 0; e < 2; e++)
        for (size_t n = 0; (n = end[e].receive(buffer.data())) > 0;) {
          REQUIRE(!sent[1 - e].empty());
          CHECK(Data(buffer.begin(), buffer.begin() + static_cast<long>(n)) == sent[1 - e].front());
          sent[1 - e].pop_front();
        }
    }
    CHECK(now < 120000);
    CHECK(!end[0].dead());
    CHECK(!end[1].broken());
  }
}

TEST_CASE("a segment without acknowledgment ends the session, within its budget") {
  Channel c;
  REQUIRE(c.create({}, 262144));
  c.start(7, 15000, 55, 0);
  const Data m(16384);
  for (int i = 0; i < 10; i++) c.send(bytes(m));
  Data body(1173);
  uint64_t now = 0, sent = 0;
  for (; !c.dead() && now < 100000; now++)
    while (size_t n = c.output(body.data(), now)) sent += n + 55;
  CHECK(c.dead());
  CHECK(sent <= 32768 + now * 32768 / 1000);
}

TEST_CASE("malformed bodies and messages") {
  Channel c;
  REQUIRE(c.create({}, 32768));
  c.start(7, 15000, 55, 0);
  Data push(26);
  push[0] = 7, push[4] = 81, push[6] = 64, push[20] = 2;
  auto changed = [&](size_t at, uint8_t value) {
    Data d = push;
    d[at] = value;
    return c.input(bytes(d), 0);
  };
  CHECK(!c.input({}, 0));
  CHECK(!changed(0, 8));
  CHECK(!changed(4, 80));
  CHECK(!changed(4, 85));
  CHECK(!changed(4, 82));
  CHECK(!changed(5, 1));
  CHECK(!changed(20, 0));
  CHECK(!changed(20, 1));
  CHECK(!changed(20, 3));
  CHECK(!changed(23, 255));
  CHECK(!c.broken());
  Data to(max_reliable);
  for (const uint8_t high : {0, 128, 255}) {
    c.start(7, 15000, 55, 0);
    push[24] = 0x80;
    push[25] = high;
    CHECK(c.input(bytes(push), 0));
    CHECK(c.receive(to.data()) == 0);
    CHECK(c.broken());
  }
}

// Segments of one byte: no sender cuts the stream like this, and only segments in the window are
// accepted.
TEST_CASE("messages in segments of a byte") {
  Channel c;
  REQUIRE(c.create({}, 32768));
  c.start(7, 15000, 55, 0);
  uint32_t sn = 0;
  auto push = [&](uint8_t b) {
    Data d(25);
    d[0] = 7, d[4] = 81, d[6] = 64, d[20] = 1, d[24] = b;
    store_little(d.data() + 12, 4, sn++);
    return c.input(bytes(d), 0);
  };
  Data to(max_reliable);
  for (const uint8_t size : {uint8_t{1}, uint8_t{62}}) {
    CHECK(push(static_cast<uint8_t>(size - 1)));
    for (uint8_t i = 0; i < size; i++) {
      CHECK(c.receive(to.data()) == 0);
      CHECK(push(i));
    }
    CHECK(c.receive(to.data()) == size);
    CHECK(to[size - 1U] == size - 1);
  }
  for (int i = 0; i < 64; i++) CHECK(push(100));
  CHECK(c.receive(to.data()) == 0);
  CHECK(c.broken());
}

TEST_CASE("small messages share segments, and the queue counts bytes") {
  Channel end[2];
  for (Channel &c : end) {
    REQUIRE(c.create({}, 65536));
    c.start(7, 15000, 55, 0);
  }
  const Data small(20, 1);
  for (int i = 0; i < 300; i++) REQUIRE(end[0].send(bytes(small)));
  CHECK(end[0].waiting() == 300);
  Data body(1173), to(max_reliable);
  size_t sent = 0, bodies = 0;
  while (const size_t n = end[0].output(body.data(), 1)) {
    sent += n;
    bodies++;
    CHECK(end[1].input({body.data(), n}, 1));
  }
  CHECK(bodies == 6);
  CHECK(sent == 300 * 21 + 6 * 24);
  for (int i = 0; i < 300; i++) CHECK(end[1].receive(to.data()) == 20);
  while (const size_t n = end[1].output(body.data(), 20)) CHECK(end[0].input({body.data(), n}, 20));
  CHECK(end[0].waiting() == 0);
  CHECK(end[0].idle());
  for (const size_t size : {size_t{1}, size_t{128}, size_t{129}, size_t{1149}, max_reliable}) {
    end[0].start(7, 15000, 55, 0);
    const Data m(size, 1);
    size_t n = 0;
    for (; end[0].room() >= size; n++) REQUIRE(end[0].send(bytes(m)));
    CHECK(!end[0].send(bytes(m)));
    CHECK(n == 65536 / (size + (size <= 128 ? 1 : 2)));
    CHECK(end[0].waiting() == n);
    if (end[0].room() > 0) CHECK(end[0].send({m.data(), end[0].room()}));
    CHECK(end[0].room() == 0);
  }
}
