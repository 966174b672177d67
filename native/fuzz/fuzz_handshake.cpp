// A datagram that is not authenticated: headers and handshakes, and the bodies of a heartbeat and of a
// report. What is parsed is written as the same bytes. A client that connects receives it too, with its
// nonce.
#include "fuzz/input.hpp"

#include "src/client/datagram.hpp"
#include "test/codec/support.hpp"
#include "uplink/client.hpp"

using namespace uplink;
using namespace uplink::detail::client;

namespace {

void parse(Bytes b) {
  DatagramHeader h;
  if (parse_header(b, &h)) {
    fuzz::check(h.size <= b.size && h.size <= max_datagram_header, "size of a header");
    uint8_t again[max_datagram_header];
    const size_t n = format_header(again, h.form, h.kind, h.connection, h.low);
    fuzz::check(n == h.size && equal({again, n}, {b.data, n}), "header");
  }
  Report report;
  Bytes message;
  if (parse_report(b, &report, &message)) {
    uint8_t again[report_size];
    format_report(again, report);
    fuzz::check(equal({again, report_size}, {b.data, report_size}) && report_size + message.size == b.size,
                "report");
  }
  Heartbeat beat;
  if (parse_heartbeat(b, &beat)) {
    uint8_t again[heartbeat_size];
    format_heartbeat(again, beat);
    Heartbeat other;
    fuzz::check(parse_heartbeat({again, sizeof again}, &other) && other.ask == beat.ask &&
                    other.echo == beat.echo && other.hold == beat.hold && other.answer == beat.answer,
                "heartbeat");
  }
}

// connect receives the datagram three times, 100 ms apart.
void connect(Bytes b) {
  static const std::string token = support::load("vectors/datagrams.json")["session"]["token"];
  ClientConfig c;
  c.crypto = library_crypto();
  Client *client = nullptr;
  fuzz::check(Client::create({}, c, &client) == Error::ok, "create");
  uint64_t now = 1000000000;
  fuzz::check(client->connect(token.data(), token.size(), now) == Error::ok, "connect");
  fuzz::Data datagram(b.data, b.data + b.size);
  for (int i = 0; i < 3; i++, now += 100000000) {
    uint8_t out[max_sent];
    Address server;
    for (int n = 0; const size_t size = client->next_datagram({out, sizeof out}, &server, now); n++) {
      fuzz::check(size <= sizeof out && n < 10, "datagrams of a client");
      if (out[0] == 0x80 && datagram.size() >= 9) copy(datagram.data() + 1, out + 3, 8); // the nonce
    }
    client->receive(fuzz::bytes(datagram), now);
    fuzz::check(!client->connected(), "a session without a key exchange");
    Event e;
    for (int events = 0; client->poll_event(&e); events++) fuzz::check(events < 10, "events of a datagram");
  }
  Client::destroy(client);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  parse({data, size});
  connect({data, size});
  return 0;
}
