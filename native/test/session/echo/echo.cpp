// A client that the test in the directory above runs: it checks the calls of the server, whose argument X is
// three times the sequence, and sends each byte stream back.
//
//   uplink_echo ADDRESS:PORT
#include <cstdio>
#include <map>
#include <string>

#include "uplink/socket.hpp"

using namespace uplink;

namespace {

// Echo is a stream of the server, and the one with which it is sent back.
struct Echo {
  uint32_t stream = 0;
  std::string data;
  size_t at = 0;
  bool ended = false;
};

struct Program {
  Client *client = nullptr;
  Socket socket;
  std::map<uint64_t, Echo> echoes;
  int calls[2] = {0, 0};
  int wrong = 0;
  bool over = false;

  void handle(const Event &e) {
    const std::string data(reinterpret_cast<const char *>(e.data.data), e.data.size);
    switch (e.type) {
    case EventType::server_call: {
      double x = -1;
      if (e.frame->get(0, &x, 1) != Error::ok || x != 3 * static_cast<double>(e.value)) wrong++;
      calls[e.rpc]++;
      break;
    }
    case EventType::stream_open: {
      Echo &echo = echoes[e.value];
      if (client->open_stream(e.data, &echo.stream, now()) != Error::ok) wrong++;
      break;
    }
    case EventType::stream_data:
      echoes[e.value].data += data;
      break;
    case EventType::stream_end:
      echoes[e.value].ended = true;
      break;
    case EventType::disconnected:
    case EventType::reconnecting:
      std::printf("%d unreliable, %d reliable, %d wrong: %s\n", calls[0], calls[1], wrong, text(e.reason));
      over = true;
      break;
    default:
      break;
    }
  }

  void write() {
    for (auto &[stream, e] : echoes) {
      size_t n = 0;
      if (e.at < e.data.size()) {
        const Bytes rest = {reinterpret_cast<const uint8_t *>(e.data.data()) + e.at, e.data.size() - e.at};
        client->write_stream(e.stream, rest, &n, now());
        e.at += n;
      } else if (e.ended && client->end_stream(e.stream) == Error::ok) {
        e.ended = false;
      }
    }
  }
};

int run(const char *address) {
  Program p;
  Address server;
  IssuerKey key;
  ClientConfig config;
  config.crypto = library_crypto();
  config.handlers = 2;
  config.streams = true;
  Claims claims;
  char token[token_text];
  bool ok = parse_address(address, &server) == Error::ok && p.socket.open(server) == Error::ok &&
            development_key(config.crypto, &key) == Error::ok &&
            Client::create({}, config, &p.client) == Error::ok;
  claims.client_id = 7;
  claims.issued = wall_now();
  claims.expires = claims.issued + 60000;
  claims.servers[0] = server;
  claims.n = 1;
  Schema *schemas[2] = {nullptr, nullptr};
  const char *const names[] = {"Hit", "Note"};
  for (int i = 0; ok && i < 2; i++) {
    Field f;
    uint8_t handler = 0;
    f.name = "X";
    f.resolution = 1;
    ok = Schema::create({}, names[i], 0, &f, 1, &schemas[i]) == Error::ok &&
         p.client->handle(*schemas[i], &handler) == Error::ok;
  }
  ok = ok && issue_token(config.crypto, key, claims, token, sizeof(token)) == Error::ok &&
       p.client->connect(token, std::string(token).size(), now()) == Error::ok;
  while (ok && !p.over) {
    p.write();
    p.socket.run(*p.client);
    Event e;
    while (p.client->poll_event(&e)) p.handle(e);
    p.socket.wait(1000000);
  }
  Client::destroy(p.client);
  for (Schema *s : schemas) Schema::destroy(s);
  return ok && p.wrong == 0 ? 0 : 1;
}

} // namespace

int main(int argc, char **argv) {
  return argc == 2 ? run(argv[1]) : 2;
}
