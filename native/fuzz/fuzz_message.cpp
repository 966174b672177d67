// Messages of a server after decryption: those on the data channel, and reliable ones, for a client
// that has bound an RPC, handles another one and subscribes to a world. The same messages also arrive
// from a server to which the client may switch.
#include "fuzz/input.hpp"

#include "src/client/core.hpp"
#include "uplink/snapshot_world.hpp"

using namespace uplink;
using namespace uplink::detail::client;

namespace uplink::detail::client {

struct CoreAccess {
  static Link *active(Core *c) { return c->active_; }
  static Link *standby(Core *c) {
    Link *l = c->add_link({});
    fuzz::check(l != nullptr, "link");
    l->role = Role::standby;
    c->active_->worlds.prepare(&l->worlds);
    return l;
  }
  static void message(Core *c, Link *l, bool reliable, Bytes m, uint64_t now) {
    if (!reliable) {
      c->on_data(*l, m, now);
    } else if (m.size > 0 && m.size <= max_reliable) {
      (void)c->on_reliable(*l, m, now);
      (void)l->streams.receive(m, now);
    }
    l->worlds.step(l->role == Role::playing);
    // What deliver bounds.
    if (l->held > 1 << 20) l->release_held();
  }
};

} // namespace uplink::detail::client

namespace {

Schema *move() {
  Field f;
  f.name = "X";
  f.resolution = 1;
  Schema *s = nullptr;
  fuzz::check(Schema::create({}, "Move", 60, &f, 1, &s) == Error::ok, "schema");
  return s;
}

// ball is the type of the objects of testdata/sessions/downstreams/world.jsonl.
Schema *ball() {
  Field f[2];
  f[0].name = "Position";
  f[0].kind = Kind::vec3;
  f[0].resolution = 0.01;
  f[0].has_min = f[0].has_max = true;
  f[0].min = -1000;
  f[0].max = 1000;
  f[1].name = "Lit";
  f[1].kind = Kind::boolean;
  Schema *s = nullptr;
  fuzz::check(Schema::create({}, "ball", 0, f, 2, &s) == Error::ok, "schema");
  return s;
}

void receive(const uint8_t *data, size_t size, bool standby) {
  static Schema *const schema = move(), *const object = ball();
  ClientConfig c;
  c.crypto = library_crypto();
  c.streams = true;
  c.worlds = 1;
  c.handlers = 1;
  Client *client = nullptr;
  SnapshotWorldConfig wc;
  wc.n = 1;
  wc.types[0] = object;
  SnapshotWorld *world = nullptr;
  uint8_t rpc = 0;
  fuzz::check(Client::create({}, c, &client) == Error::ok && client->bind(*schema, {}, &rpc) == Error::ok &&
                  client->handle(*schema, &rpc) == Error::ok &&
                  SnapshotWorld::create({}, wc, &world) == Error::ok &&
                  client->subscribe("balls", *world, 0, &rpc) == Error::ok,
              "create");
  auto *core = static_cast<Core *>(client);
  Link *const link = standby ? CoreAccess::standby(core) : CoreAccess::active(core);
  uint64_t now = 1000000;
  fuzz::Entries entries(data, size);
  bool reliable = false;
  for (Bytes m; entries.next(&m, &reliable); now += 1000) {
    CoreAccess::message(core, link, reliable, m, now);
    Event e;
    for (int events = 0; core->do_poll(&e); events++) fuzz::check(events < 10000, "events of a message");
  }
  Client::destroy(client);
  SnapshotWorld::destroy(world);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  receive(data, size, false);
  receive(data, size, true);
  return 0;
}
