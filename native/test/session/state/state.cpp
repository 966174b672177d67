// A client for the test in the parent directory. It subscribes to the state of the world "movers"
// and prints the updates.
//
//   uplink_state ADDRESS:PORT
#include <cstdio>
#include <string>

#include "uplink/socket.hpp"
#include "uplink/state_world.hpp"

using namespace uplink;

namespace {

void updated(void *context, const StateWorld &w, const StateUpdate &u) {
  const StateReceiver &r = w.receiver();
  auto &frame = *static_cast<Frame *>(context);
  for (size_t i = 0; i < u.inputs; i++) {
    TickInputs t = r.inputs(i);
    uint8_t player = 0;
    Bytes data;
    while (next_input(&t.inputs, &player, &data))
      std::printf("input %lld %d %d\n", static_cast<long long>(t.tick), player,
                  data.size > 0 ? data.data[0] : -1);
  }
  for (size_t i = 0; i < u.objects; i++) {
    const StateObject o = r.object(i);
    double at[3] = {}, speed[3] = {};
    uint64_t asleep = 0;
    if (o.removed) {
      std::printf("removed %lld %d\n", static_cast<long long>(u.tick), o.id);
    } else if (r.get(i, frame) == Error::ok && frame.get(0, at, 3) == Error::ok &&
               frame.get(1, speed, 3) == Error::ok && frame.get_integers(2, &asleep, 1) == Error::ok) {
      std::printf("object %lld %d %d %.2f %.2f %.2f %.2f %.2f %.2f %d\n", static_cast<long long>(u.tick),
                  o.id, o.generation, at[0], at[1], at[2], speed[0], speed[1], speed[2],
                  static_cast<int>(asleep));
    }
  }
}

int run(const char *address) {
  Address server;
  IssuerKey key;
  ClientConfig config;
  Client *client = nullptr;
  Socket socket;
  config.crypto = library_crypto();
  config.worlds = 1;

  Field f[3];
  f[0].name = "Position";
  f[1].name = "Speed";
  f[0].velocity = "Speed";
  for (int i = 0; i < 2; i++) {
    f[i].kind = Kind::vec3;
    f[i].resolution = 0.25;
    f[i].has_min = f[i].has_max = true;
    f[i].min = -1000;
    f[i].max = 1000;
  }
  f[2].name = "Asleep";
  f[2].kind = Kind::boolean;
  Schema *schema = nullptr;
  Frame *frame = nullptr;
  StateWorld *world = nullptr;
  StateWorldConfig w;
  Claims claims;
  char token[token_text];
  uint8_t number = 0;
  bool ok = Schema::create({}, "movers", 0, f, 3, &schema) == Error::ok &&
            Frame::create({}, *schema, &frame) == Error::ok;
  w.objects = schema;
  w.state.rest = "Asleep";
  w.updated = updated;
  w.context = frame;
  ok = ok && StateWorld::create({}, w, &world) == Error::ok && parse_address(address, &server) == Error::ok &&
       socket.open(server) == Error::ok && development_key(config.crypto, &key) == Error::ok &&
       Client::create({}, config, &client) == Error::ok &&
       client->subscribe("movers", *world, 0, &number) == Error::ok;
  claims.client_id = 8;
  claims.issued = wall_now();
  claims.expires = claims.issued + 60000;
  claims.servers[0] = server;
  claims.n = 1;
  ok = ok && issue_token(config.crypto, key, claims, token, sizeof(token)) == Error::ok &&
       client->connect(token, std::string(token).size(), now()) == Error::ok;
  bool over = false;
  while (ok && !over) {
    socket.run(*client);
    Event e;
    while (client->poll_event(&e)) {
      if (e.type == EventType::world && e.status != 0) std::printf("world %d\n", e.status);
      over = over || e.type == EventType::disconnected || e.type == EventType::reconnecting;
    }
    socket.wait(1000000);
  }
  Client::destroy(client);
  StateWorld::destroy(world);
  Frame::destroy(frame);
  Schema::destroy(schema);
  return ok ? 0 : 1;
}

} // namespace

int main(int argc, char **argv) {
  return argc == 2 ? run(argv[1]) : 2;
}
