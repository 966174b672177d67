// A client that tries to connect to a port where no server listens, and prints why it could not.
#include <cstdio>

#include "uplink/client.hpp"
#include "uplink/socket.hpp"

int main() {
  uplink::ClientConfig config;
  uplink::Client *client = nullptr;
  uplink::Socket socket;
  uplink::IssuerKey key;
  uplink::Claims claims;
  char token[uplink::token_text];
  config.crypto = uplink::library_crypto();
  claims.client_id = 1;
  claims.issued = uplink::wall_now();
  claims.expires = claims.issued + 60000;
  claims.n = 1;
  bool ok = uplink::parse_address("127.0.0.1:9", &config.server) == uplink::Error::ok;
  claims.servers[0] = config.server;
  // A game gets the token from its backend.
  ok = ok && uplink::development_key(config.crypto, &key) == uplink::Error::ok &&
       uplink::issue_token(config.crypto, key, claims, token, sizeof(token)) == uplink::Error::ok &&
       uplink::Client::create({}, config, &client) == uplink::Error::ok &&
       socket.open(config.server) == uplink::Error::ok;
  size_t n = 0;
  while (n < sizeof(token) && token[n] != 0) n++;
  ok = ok && client->connect(token, n, uplink::now()) == uplink::Error::ok;
  bool over = false;
  while (ok && !over) {
    socket.run(*client);
    uplink::Event e;
    while (client->poll_event(&e))
      if (e.type == uplink::EventType::reconnecting || e.type == uplink::EventType::disconnected) {
        std::printf("no session: %s\n", uplink::text(e.reason));
        over = e.reason == uplink::Reason::no_server;
        ok = over;
      }
    socket.wait(10000000);
  }
  uplink::Client::destroy(client);
  return ok ? 0 : 1;
}
