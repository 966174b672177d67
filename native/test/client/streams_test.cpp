// Byte streams.
#include <deque>
#include <map>

#include "src/client/streams.hpp"
#include "test/client/world.hpp"

using namespace uplink;
using namespace uplink::detail::client;
using namespace uplink_test;

namespace {

ClientConfig with_streams() {
  ClientConfig c;
  c.streams = true;
  return c;
}

Data message(uint8_t kind, const std::string &body, uint8_t number = 0) {
  Data d;
  d.reserve(1200);
  d.push_back(static_cast<uint8_t>(kind << 3 | number));
  for (const char c : body) d.push_back(static_cast<uint8_t>(c));
  return d;
}

Bytes view(const std::string &s) {
  return {reinterpret_cast<const uint8_t *>(s.data()), s.size()};
}

std::string pattern(size_t n) {
  std::string s(n, 0);
  for (size_t i = 0; i < n; i++) s[i] = static_cast<char>(i * 31 % 251);
  return s;
}

// take returns the next message of the client on the bulk channel.
Data take(World &w) {
  Data m(max_reliable);
  m.resize(w.server.bulk.receive(m.data()));
  return m;
}

// Upload is a stream that a client writes without a pause, over a path with a delay in ms that depends on the
// time at which a datagram is sent, and with a bottleneck.
struct Upload {
  uint64_t rate = 0; // bytes per ms of the bottleneck; 0: none
  uint64_t (*delay)(uint64_t now) = nullptr;

  Channel end[2];
  Events events;
  uint32_t ids = 1, stream = 0;
  size_t uncredited = 0; // bytes that arrived since the last credit
  Streams streams{{}, end[0], events, ids};
  PathRate path;
  Arrivals arrivals;
  // Packet is a body, or a report if that is empty.
  struct Packet {
    Data body;
    uint64_t number = 0;
    Report report;
  };
  std::multimap<uint64_t, Packet> flight[2]; // by arrival
  uint64_t sent = 0, newest = 0;             // numbers of the next datagram, and of the next new one
  uint64_t now = 1000, free = 0, longest = 0;

  Upload() {
    for (Channel &c : end) {
      REQUIRE(c.create({}, Streams::queue_bytes, false));
      c.start(7, 15000, 55, now);
    }
    REQUIRE(events.create({}, 18944));
    streams.configure(true, 262144);
    streams.start();
    path.start(now * 1000);
    REQUIRE(streams.open(view("upload"), now * 1000, &stream) == Error::ok);
  }

  // run returns the bytes that arrive in a time, in ms. longest is then the longest wait for the bottleneck.
  size_t run(uint64_t time) {
    const std::string data(4096, 'x');
    Data b(1200);
    size_t got = 0;
    longest = 0;
    for (const uint64_t stop = now + time; now < stop; now++) {
      size_t n = 0;
      (void)streams.write(stream, view(data), now * 1000, path.rate(), &n);
      streams.send(path.rate());
      for (int i = 0; i < 2; i++) {
        const auto output = [&] {
          const Allowance limits = {path.stream_room(now * 1000), path.rate() / 4};
          return end[i].output(b.data(), now, i == 0 ? limits : Allowance{});
        };
        for (size_t size = output(); size > 0; size = output()) {
          uint64_t departs = now;
          if (i == 0 && rate > 0) {
            free = std::max(free, now) + (size + 55) / rate;
            departs = free;
            longest = std::max(longest, free - now);
          }
          const Data body(b.begin(), b.begin() + static_cast<long>(size));
          flight[i].insert({departs + delay(now), {body, sent, {}}});
          if (i == 0) path.departed(now * 1000, sent++, size + 55);
        }
        for (auto f = flight[i].begin(); f != flight[i].end() && f->first <= now; f = flight[i].erase(f)) {
          const Packet &p = f->second;
          if (i == 0) {
            arrivals.arrived(now * 1000, p.number, p.number >= newest, p.body.size() + 55);
            newest = std::max(newest, p.number + 1);
          } else if (p.body.empty()) {
            REQUIRE(path.reported(now * 1000, p.report, sent));
            path.echoed(now * 1000, 0);
            continue;
          }
          REQUIRE(end[1 - i].input(bytes(p.body), now));
        }
      }
      if (now * 1000 >= arrivals.due())
        flight[1].insert({now + delay(now), {{}, 0, arrivals.take(now * 1000)}});
      Data m(max_reliable);
      for (size_t size = end[1].receive(m.data()); size > 0; size = end[1].receive(m.data()))
        if (m[0] >> 3 == 1) got += size - 1, uncredited += size - 1;
      if (uncredited >= 16384) {
        Data c = message(4, "xxx");
        store_little(c.data() + 1, 3, uncredited);
        if (end[1].send(bytes(c))) uncredited = 0;
      }
      for (size_t size = end[0].receive(m.data()); size > 0; size = end[0].receive(m.data()))
        REQUIRE(streams.receive({m.data(), size}, now * 1000));
    }
    return got;
  }
};

uint64_t constant(uint64_t) {
  return 20;
}
// uneven returns the delay of a path with jitter of up to 60 ms, which differs for each ms.
uint64_t uneven(uint64_t now) {
  return 20 + now * 7919 % 61;
}
// stalls returns the delay of a peer that runs for 20 of every 140 ms.
uint64_t stalls(uint64_t now) {
  return now % 140 < 120 ? 120 - now % 140 : 0;
}
// longer returns the delay of a path whose delay increases.
uint64_t longer(uint64_t now) {
  return now < 11000 ? 20 : 60;
}

void open_session(World &w) {
  w.connect();
  w.run(20);
  REQUIRE(w.client->connected());
}

} // namespace

TEST_CASE("a byte stream of the server, with credits") {
  World w(0, with_streams());
  open_session(w);
  REQUIRE(w.server.bulk.send(bytes(message(0, "level"))));
  const std::string sent = pattern(200000);
  size_t at = 0, credit = 65536;
  Data answer;
  for (int i = 0; i < 5000 && answer.empty(); i++) {
    while (at < sent.size() && credit > 0) {
      const size_t n = std::min({size_t{1146}, sent.size() - at, credit});
      if (!w.server.bulk.send(bytes(message(1, sent.substr(at, n))))) break;
      at += n;
      credit -= n;
      if (at == sent.size()) REQUIRE(w.server.bulk.send(bytes(message(2, ""))));
    }
    w.run(1);
    for (Data m = take(w); !m.empty(); m = take(w)) {
      if (m[0] == 4 << 3)
        credit += load_little(m.data() + 1, 3);
      else
        answer = m;
      CHECK(credit <= 65536);
    }
  }
  CHECK(answer == message(5, std::string(1, 0)));
  CHECK(w.received == sent);
  CHECK(w.events[1].type == EventType::stream_open);
  CHECK(w.last().type == EventType::stream_end);
  // The number is free again. The reading of the next stream ends before its end.
  REQUIRE(w.server.bulk.send(bytes(message(0, "second"))));
  w.run(30);
  REQUIRE(w.last().type == EventType::stream_open);
  CHECK(w.text == "second");
  REQUIRE(w.client->stop_stream(static_cast<uint32_t>(w.last().value)) == Error::ok);
  REQUIRE(w.server.bulk.send(bytes(message(1, "late"))));
  w.run(30);
  CHECK(take(w) == message(5, std::string(1, 1)));
  CHECK(w.received == sent);
  // Names that begin with uplink. are not the program's.
  REQUIRE(w.server.bulk.send(bytes(message(0, "uplink.other", 3))));
  w.run(30);
  CHECK(take(w) == message(5, std::string(1, 2), 3));
  CHECK(w.client->connected());
}

TEST_CASE("data that the program does not poll stays in the channel") {
  World w(0, with_streams());
  open_session(w);
  REQUIRE(w.server.bulk.send(bytes(message(0, "level"))));
  const std::string sent = pattern(60000);
  size_t at = 0;
  // The program does not poll.
  Data b(1500);
  for (uint64_t end = w.now + 3000 * millisecond; w.now < end; w.now += millisecond) {
    for (; at < sent.size() && w.server.bulk.send(bytes(message(1, sent.substr(at, 1000)))); at += 1000) {
    }
    while (const size_t n = w.server.bulk.output(b.data(), w.now / millisecond))
      w.server.send(reliable, Data(b.begin(), b.begin() + static_cast<long>(n)));
    for (; !w.server.out.empty(); w.server.out.pop_front())
      w.client->receive(bytes(w.server.out.front()), w.now);
    Address to;
    while (const size_t n = w.client->next_datagram({b.data(), b.size()}, &to, w.now))
      w.server.handle(Data(b.begin(), b.begin() + static_cast<long>(n)), w.now);
  }
  CHECK(w.client->connected());
  CHECK(at == sent.size());
  w.run(3000);
  CHECK(w.received == sent);
}

TEST_CASE("an own byte stream") {
  World w(0, with_streams());
  open_session(w);
  uint32_t stream = 0;
  CHECK(w.client->open_stream(view("uplink.x"), &stream, w.now) == Error::invalid);
  REQUIRE(w.client->open_stream(view("replay"), &stream, w.now) == Error::ok);
  const std::string sent = pattern(300000);
  std::string got;
  size_t at = 0, uncredited = 0, most = 0;
  bool ended = false, done = false;
  for (int i = 0; i < 20000 && !done; i++) {
    size_t n = 0;
    if (at < sent.size()) {
      const Error e = w.client->write_stream(stream, view(sent.substr(at)), &n, w.now);
      REQUIRE((e == Error::ok || e == Error::full));
    }
    at += n;
    if (at == sent.size() && !ended) ended = w.client->end_stream(stream) == Error::ok;
    w.run(1);
    for (Data m = take(w); !m.empty(); m = take(w)) {
      if (m[0] >> 3 == 1) got.append(m.begin() + 1, m.end());
      if (m[0] >> 3 == 1) uncredited += m.size() - 1;
      most = std::max(most, uncredited);
      if (m[0] >> 3 == 2) {
        REQUIRE(w.server.bulk.send(bytes(message(5, std::string(1, 0)))));
        done = true;
      }
    }
    // Credits come late: the window limits the client.
    if (i % 500 == 0 && uncredited > 0) {
      Data c = message(4, "xxx");
      store_little(c.data() + 1, 3, uncredited);
      REQUIRE(w.server.bulk.send(bytes(c)));
      uncredited = 0;
    }
  }
  REQUIRE(done);
  CHECK(got == sent);
  CHECK(most == 65536);
  w.run(50);
  CHECK(w.last().type == EventType::stream_done);
  CHECK(w.last().value == stream);
  CHECK(w.last().status == 0);
  CHECK(w.client->end_stream(stream) == Error::closed);
}

TEST_CASE("streams that violate the protocol end the session") {
  const Data wrong[] = {
      message(1, "x"), message(2, ""), message(4, std::string("\1\0\0", 3)), message(5, std::string(1, 0)),
      message(6, "x"), message(0, ""), message(0, std::string(129, 'n'))};
  for (const Data &m : wrong) {
    World w(0, with_streams());
    open_session(w);
    REQUIRE(w.server.bulk.send(bytes(m)));
    w.run(50);
    CHECK(w.last().reason == Reason::violation);
  }
  // A number that is in use, and more data than credits: they end when the program stops reading.
  World in_use(0, with_streams());
  open_session(in_use);
  REQUIRE(in_use.server.bulk.send(bytes(message(0, "a"))));
  REQUIRE(in_use.server.bulk.send(bytes(message(0, "b"))));
  in_use.run(50);
  CHECK(in_use.last().reason == Reason::violation);
  World w(0, with_streams());
  open_session(w);
  REQUIRE(w.server.bulk.send(bytes(message(0, "a"))));
  w.run(50);
  REQUIRE(w.client->stop_stream(static_cast<uint32_t>(w.last().value)) == Error::ok);
  for (size_t n = 0; n < 66; n++) {
    CHECK(w.client->connected());
    REQUIRE(w.server.bulk.send(bytes(message(1, std::string(n < 65 ? 1000 : 537, 'x')))));
    w.run(50);
  }
  CHECK(w.last().reason == Reason::violation);
}

TEST_CASE("without streams the client answers that it reads none") {
  World w;
  open_session(w);
  REQUIRE(w.server.bulk.send(bytes(message(0, "level", 7))));
  REQUIRE(w.server.bulk.send(bytes(message(1, "data", 7))));
  w.run(50);
  CHECK(take(w) == message(5, std::string(1, 2), 7));
  CHECK(w.events.size() == 1);
  uint32_t stream = 0;
  CHECK(w.client->open_stream(view("a"), &stream, w.now) == Error::invalid);
}

TEST_CASE("jitter, stalls of the server and a longer path do not slow streams down") {
  Upload u;
  const struct {
    uint64_t (*delay)(uint64_t);
    size_t least; // bytes per second, of 262,144
  } paths[] = {{constant, 220000}, {uneven, 100000}, {stalls, 180000}};
  for (const auto &p : paths) {
    u.delay = p.delay;
    u.run(2000);
    CHECK(u.run(10000) > 10 * p.least);
  }
  Upload v;
  v.delay = longer;
  CHECK(v.run(10000) > 10 * 220000);
  v.run(150000);                     // the shorter path is forgotten
  CHECK(v.run(10000) > 10 * 100000); // 14 segments in each round trip
}

TEST_CASE("streams keep the queue of a bottleneck short") {
  Upload u;
  u.delay = constant;
  u.rate = 50; // 400 kbit/s
  u.run(5000);
  CHECK(u.run(20000) > 20 * 30000);
  CHECK(u.longest < 60);
}
