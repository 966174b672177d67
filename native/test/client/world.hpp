// A small server and the client, in virtual time.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "src/client/channel.hpp"
#include "src/client/core.hpp"
#include "test/client/vectors.hpp"

namespace uplink_test {

using namespace uplink;
using namespace uplink::detail::client;

constexpr uint64_t millisecond = 1000000;

// Server is the server's end for one client.
struct Server {
  Crypto crypto = library_crypto();
  uint8_t private_key[32] = {};
  IssuerKey key;
  Sealer sealer;
  Opener opener;
  Window window;
  Channel channel, bulk;
  Assembly parts;
  Arrivals arrivals;
  size_t largest = 0; // datagram but probes since the last heartbeat
  bool open = false, silent = false, forgotten = false;
  uint8_t code = 0, refusal = 0;
  int hellos = 0, closes = 0, heartbeats = 0, long_headers = 0;
  uint64_t number = 0;
  uint64_t id = 0x1122334455667788;
  size_t path = 1472; // size of a datagram that arrives
  std::deque<Data> out;
  std::vector<Data> bodies[8]; // by kind, without reports
  std::vector<Report> reports;

  Server() {
    hash(crypto, private_key, {text_bytes("uplink development: private key")});
    REQUIRE(development_key(crypto, &key) == Error::ok);
    REQUIRE(channel.create({}, 262144));
    REQUIRE(bulk.create({}, 73536));
  }

  std::string token() {
    Claims c;
    c.client_id = 1;
    c.issued = 1;
    c.expires = 1000;
    c.n = 1;
    c.servers[0] = {4, {127, 0, 0, 1}, 7777};
    char text[token_text];
    REQUIRE(issue_token(crypto, key, c, text, sizeof(text)) == Error::ok);
    return text;
  }

  void send(uint8_t kind, const Data &body) { send(form_of(false, kind), kind, body); }

  void send(const Report &r, const Data &message) {
    Data body(report_size);
    format_report(body.data(), r);
    body.insert(body.end(), message.begin(), message.end());
    send(Form::brief, data, body);
  }

  void send(Form form, uint8_t kind, const Data &body) {
    Data d(11 + body.size() + 16);
    const size_t h = format_header(d.data(), form, kind, 0, number);
    std::copy(body.begin(), body.end(), d.begin() + static_cast<long>(h));
    REQUIRE(sealer.seal(number++, {d.data(), h}, d.data() + h, body.size()));
    d.resize(h + body.size() + 16);
    out.push_back(d);
  }

  void handle(const Data &d, uint64_t now) {
    if (silent || d.size() > path) return;
    if (d[0] == 0x80) {
      hello(d, now);
      return;
    }
    DatagramHeader h;
    uint64_t n = 0;
    size_t size = 0;
    Data body(d.size());
    REQUIRE(parse_header(bytes(d), &h));
    if (forgotten) {
      Data unknown = {0x84};
      unknown.insert(unknown.end(), d.begin(), d.begin() + h.size);
      out.push_back(unknown);
      return;
    }
    REQUIRE(window.complete(h.low, h.width(), &n));
    REQUIRE(opener.open(n, {d.data(), h.size}, {d.data() + h.size, d.size() - h.size}, body.data(), &size));
    const bool load = h.kind == data || h.kind == reliable || h.kind == part;
    arrivals.arrived(now / 1000, n, n >= window.next(), load ? d.size() + ip_size : 0);
    window.accept(n);
    body.resize(size);
    if (h.form == Form::brief && h.kind == data) {
      Report r;
      Bytes message;
      REQUIRE(parse_report(bytes(body), &r, &message));
      reports.push_back(r);
      body.erase(body.begin(), body.begin() + report_size);
    }
    if (!body.empty()) bodies[h.kind].push_back(body);
    if (h.kind != probe) largest = std::max(largest, d.size());
    if (h.kind == part) {
      const Assembly::Body *whole = parts.add(n, bytes(body));
      if (whole == nullptr) return;
      h.kind = whole->reliable ? reliable : data;
      body.assign(whole->data, whole->data + whole->size);
      bodies[h.kind].push_back(body);
    }
    if (h.form == Form::extended) long_headers++;
    if (h.kind == DatagramKind::close) closes++;
    if (h.kind == reliable)
      CHECK((channel.input(bytes(body), now / millisecond) || bulk.input(bytes(body), now / millisecond)));
    if (h.kind == probe && size > 2) {
      Data answer(2);
      store_little(answer.data(), 2, d.size());
      send(probe, answer);
    }
    Heartbeat b;
    if (h.kind == heartbeat && parse_heartbeat(bytes(body), &b)) {
      heartbeats++;
      Heartbeat answer;
      answer.echo = b.ask;
      answer.largest = excess(largest);
      largest = 0;
      Data to(heartbeat_size);
      format_heartbeat(to.data(), answer);
      if (b.answer) send(heartbeat, to);
    }
  }

  void hello(const Data &d, uint64_t now) {
    hellos++;
    const Data nonce(d.begin() + 3, d.begin() + 11);
    Data answer = {0x81};
    answer.insert(answer.end(), nonce.begin(), nonce.end());
    if (refusal != 0) {
      answer[0] = 0x83;
      answer.push_back(refusal);
      out.push_back(answer);
      return;
    }
    if (d[11] == 0) {
      answer.resize(33, 7);
      out.push_back(answer);
      return;
    }
    if (open) return;
    const size_t n = static_cast<size_t>(load_little(d.data() + 40, 2));
    Exchange e;
    Data payload(n);
    e.start(crypto, key.public_key);
    REQUIRE(e.read(private_key, {d.data() + 42, n}, payload.data()));
    CHECK((payload[0] & 8) != 0);
    Data welcome(10);
    welcome[0] = code;
    store_little(welcome.data() + 1, 8, id);
    welcome[9] = code == 0 ? 3 : 0;
    uint8_t own[32], up[32], down[32];
    crypto.random(nullptr, own, 32);
    answer[0] = 0x82;
    answer.resize(67);
    REQUIRE(e.write(own, d.data() + 42, bytes(welcome), answer.data() + 9));
    e.finish(up, down);
    opener.start(crypto, 3, up);
    sealer.start(crypto, 3, down);
    window = {};
    arrivals = {};
    number = 0;
    open = code == 0;
    const uint32_t conversation = static_cast<uint32_t>(id >> 24);
    channel.start(conversation, 15000, 55, now / millisecond);
    bulk.start(conversation + 1, 15000, 55, now / millisecond);
    out.push_back(answer);
  }
};

// notice returns the message of a server that hands over to an address.
inline Data notice(Server &to, Bytes data, const Address &a) {
  Data m = {0xc0, 255, 0};
  for (size_t i = 0; i < 4; i++) m.push_back(static_cast<uint8_t>(data.size >> 8 * i));
  if (data.size > 0) {
    uint8_t hash[32];
    to.crypto.sha256(to.crypto.context, hash, &data, 1);
    m.insert(m.end(), hash, hash + 32);
  }
  m.push_back(1);
  m.push_back(a.family);
  m.insert(m.end(), a.ip, a.ip + (a.family == 4 ? 4 : 16));
  for (const int b : {a.port & 255, a.port >> 8}) m.push_back(static_cast<uint8_t>(b));
  const std::string token = to.token();
  m.insert(m.end(), token.begin(), token.end());
  return m;
}

// notice returns that for a port of 127.0.0.1.
inline Data notice(Server &to, Bytes data, uint16_t port = 7778) {
  return notice(to, data, Address{4, {127, 0, 0, 1}, port});
}

// stream sends the byte stream with data. The number is 0.
inline void stream(Server &from, const std::string &data) {
  Data m = {0};
  for (const char c : std::string("uplink.handover")) m.push_back(static_cast<uint8_t>(c));
  REQUIRE(from.bulk.send(bytes(m)));
  for (size_t at = 0; at < data.size(); at += 1146) {
    m.assign(1, 8);
    for (const char c : data.substr(at, 1146)) m.push_back(static_cast<uint8_t>(c));
    REQUIRE(from.bulk.send(bytes(m)));
  }
  m.assign(1, 16);
  REQUIRE(from.bulk.send(bytes(m)));
}

struct World {
  Server server;
  Server *other = nullptr, *third = nullptr; // of handovers, the third at port 7779
  Client *client = nullptr;
  uint64_t now = 1000 * millisecond;
  std::vector<Event> events;
  std::vector<std::string> texts; // the data of events
  std::string text;               // of the last event with data
  std::string received;           // of byte streams
  int datagrams_to_other = 0;
  std::vector<int32_t> values; // the first component of each call of the server

  explicit World(uint64_t timeout = 0, ClientConfig c = {}, const Allocator &a = {}) {
    c.crypto = server.crypto;
    c.offered = 8;
    c.timeout = timeout;
    if (c.server.family == 0) c.server = {4, {127, 0, 0, 1}, 7777};
    REQUIRE(Client::create(a, c, &client) == Error::ok);
  }
  ~World() { Client::destroy(client); }

  void connect() {
    const std::string t = server.token();
    REQUIRE(client->connect(t.data(), t.size(), now) == Error::ok);
  }
  void run(uint64_t time) {
    for (const uint64_t end = now + time * millisecond; now < end; now += millisecond) {
      Data b(1500);
      Address to;
      while (const size_t n = client->next_datagram({b.data(), b.size()}, &to, now)) {
        datagrams_to_other += to.family != 0 ? 1 : 0;
        (to.family == 0 || other == nullptr    ? server
         : to.port == 7779 && third != nullptr ? *third
                                               : *other)
            .handle(Data(b.begin(), b.begin() + static_cast<long>(n)), now);
      }
      for (Server *s : {&server, other, third}) {
        if (s == nullptr) continue;
        const bool present = s->open && !s->silent && !s->forgotten;
        if (present && now / 1000 >= s->arrivals.due()) s->send(s->arrivals.take(now / 1000), {});
        if (present)
          for (Channel *c : {&s->channel, &s->bulk})
            while (const size_t n = c->output(b.data(), now / millisecond))
              s->send(reliable, Data(b.begin(), b.begin() + static_cast<long>(n)));
        for (; !s->out.empty(); s->out.pop_front()) client->receive(bytes(s->out.front()), now);
      }
      Event e;
      while (client->poll_event(&e)) {
        text.assign(reinterpret_cast<const char *>(e.data.data), e.data.size);
        if (e.type == EventType::stream_data) received += text;
        if (e.frame != nullptr) values.push_back(e.frame->components()[0]);
        if (e.type == EventType::quality) continue;
        events.push_back(e);
        texts.push_back(text);
      }
    }
  }
  // last returns the last event, or an empty event if there is none.
  Event last() const { return events.empty() ? Event{} : events.back(); }
};

} // namespace uplink_test
