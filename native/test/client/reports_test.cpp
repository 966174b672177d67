// Reports on datagrams that have arrived. datagrams.md, 11.
#include "test/client/world.hpp"

using namespace uplink;
using namespace uplink::detail::client;
using namespace uplink_test;

namespace {

const Data hi = {0xc4, 'h', 'i'};

// open connects and waits until the client sends short headers.
void open(World &w) {
  w.connect();
  w.run(4000);
  REQUIRE(w.client->connected());
  w.events.clear();
}

// load makes the server send 1,000 bytes in three datagrams.
void load(World &w, int datagrams = 3) {
  for (int i = 0; i < datagrams; i++) w.server.send(data, Data(300, 0xff));
}

} // namespace

TEST_CASE("a report has six bytes, and a message may follow") {
  const Data b = {0xfe, 0xff, 0x34, 0x12, 0xcd, 0xab, 'm'};
  Report r;
  Bytes message;
  CHECK(!parse_report({b.data(), 5}, &r, &message));
  REQUIRE(parse_report({b.data(), 6}, &r, &message));
  CHECK(message.size == 0);
  REQUIRE(parse_report(bytes(b), &r, &message));
  CHECK(r.newest == 0xfffe);
  CHECK(r.arrived == 0x1234);
  CHECK(r.count == 0xabcd);
  CHECK(message.size == 1);
  CHECK(message.data == b.data() + 6);
}

TEST_CASE("a message after a valid report is handled") {
  World w;
  open(w);
  const auto newest = static_cast<uint16_t>(w.server.window.next() - 1);
  const Report valid = {newest, 7, static_cast<uint16_t>(newest + 1)};
  const auto handled = [&w](const Report &r) {
    w.events.clear();
    w.server.send(r, hi);
    w.run(1);
    return w.events.size() == 1 && w.text == "hi";
  };
  Report wrong = valid;
  wrong.newest = static_cast<uint16_t>(newest + 1);
  CHECK(!handled(wrong)); // not sent
  wrong = valid;
  wrong.count++;
  CHECK(!handled(wrong)); // more than were sent
  CHECK(handled(valid));
  wrong.newest = static_cast<uint16_t>(newest - 1);
  CHECK(handled(wrong)); // older than the last one
  w.events.clear();
  w.server.send(valid, {});
  w.server.send(Form::brief, data, Data(5, 0xc4)); // no report
  w.run(1);
  CHECK(w.events.empty());
  CHECK(w.client->connected());
}

TEST_CASE("a report waits for a message, for at most 40 ms if 2,000 bytes have arrived") {
  World w;
  open(w);
  w.server.reports.clear();
  load(w);
  w.run(1);
  CHECK(w.server.reports.empty());
  REQUIRE(w.client->send(text_bytes("a"), false, w.now) == Error::ok);
  w.run(1);
  REQUIRE(w.server.reports.size() == 1);
  CHECK(w.server.reports[0].newest == static_cast<uint16_t>(w.server.number - 1));
  CHECK(w.server.reports[0].count == static_cast<uint16_t>(w.server.number));
  CHECK(w.server.bodies[data].back() == Data{0xc4, 'a'});
  // The next one is sent alone.
  const size_t messages = w.server.bodies[data].size();
  load(w);
  w.run(200); // too little for a datagram of its own
  CHECK(w.server.reports.size() == 1);
  load(w, 10);
  w.run(2);
  CHECK(w.server.reports.size() == 2);
  CHECK(w.server.bodies[data].size() == messages);
  w.run(200); // none without traffic
  CHECK(w.server.reports.size() == 2);
}

TEST_CASE("no report is sent with a long header, or in a datagram that needs a larger path") {
  World w;
  open(w);
  w.client->rebind(w.now);
  w.run(1);
  w.server.reports.clear();
  load(w, 13);
  w.run(900);
  CHECK(w.server.reports.empty());
  w.run(4000);
  CHECK(w.server.reports.size() == 1);
  load(w);
  w.run(1);
  for (const size_t n : {523, 522}) { // with a report, the first datagram has 549 bytes
    const std::string m(n, 'x');
    REQUIRE(w.client->send(text_bytes(m.c_str()), false, w.now) == Error::ok);
    w.run(1);
    CHECK(w.server.reports.size() == (n == 523 ? 1 : 2));
  }
}
