// Every parser of the client: handshake datagrams, headers, bodies of both channels, messages, binds,
// handovers, tokens. The first byte selects one.
#include <algorithm>
#include <cstdlib>

#include "src/client/channel.hpp"
#include "src/client/core.hpp"
#include "uplink/snapshot_world.hpp"

using namespace uplink;
using namespace uplink::detail::client;

namespace uplink::detail::client {

struct CoreAccess {
  static Link *active(Core *c) { return c->active_; }
  static Link *standby(Core *c) {
    Link *l = c->add_link({});
    if (l == nullptr) std::abort();
    l->role = Role::standby;
    CoreAccess::active(c)->worlds.prepare(&l->worlds);
    return l;
  }
  static void message(Core *c, Link *l, bool on_data_channel, Bytes m) {
    if (on_data_channel) {
      c->on_data(*l, m, 0);
    } else if (m.size > 0 && m.size <= max_reliable) {
      (void)c->on_reliable(*l, m, 0);
      (void)l->streams.receive(m, 0);
    }
    if (l->held > 1 << 20) l->release_held();
  }
};

} // namespace uplink::detail::client

namespace {

// Channels pass the input, cut into bodies, to one end that sends, too.
void channel(const uint8_t *data, size_t size) {
  static Channel c;
  static uint8_t message[max_reliable];
  static const bool created = c.create({}, 16, 16);
  if (!created) std::abort();
  c.start(7, 2000, 55, 0);
  c.send({message, 3000});
  uint8_t body[1173];
  for (uint64_t now = 0; size >= 2; now += 10) {
    const size_t n = std::min<size_t>(size - 2, data[0] | (data[1] & 3U) << 8);
    // A conversation number that fits lets the input reach the rest.
    copy(body, data + 2, n);
    if (n >= 4) store_little(body, 4, 7);
    c.input({body, n}, now);
    while (const size_t m = c.receive(message))
      if (m > max_reliable) std::abort();
    for (int i = 0; c.output(body, now) > 0; i++)
      if (i > 1000) std::abort();
    data += 2 + n;
    size -= 2 + n;
  }
}

// subscribe subscribes to the world of testdata/sessions/downstreams/world.jsonl.
void subscribe(Core *core) {
  Field f[2];
  f[0].name = "Position";
  f[0].kind = Kind::vec3;
  f[0].resolution = 0.01;
  f[0].has_min = f[0].has_max = true;
  f[0].min = -1000;
  f[0].max = 1000;
  f[1].name = "Lit";
  f[1].kind = Kind::boolean;
  Schema *schema = nullptr;
  SnapshotWorldConfig c;
  c.n = 1;
  SnapshotWorld *world = nullptr;
  uint8_t number = 0;
  if (Schema::create({}, "ball", 0, f, 2, &schema) != Error::ok) std::abort();
  c.types[0] = schema;
  if (SnapshotWorld::create({}, c, &world) != Error::ok ||
      core->do_subscribe("balls", *world, 0, &number) != Error::ok)
    std::abort();
  Schema::destroy(schema);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const Crypto crypto = sodium_crypto();
  if (size == 0) return 0;
  const Bytes b = {data + 1, size - 1};
  switch (data[0] % 9) {
  case 0: {
    DatagramHeader h;
    Handshake s;
    Heartbeat beat;
    (void)parse_header(b, &h);
    (void)parse_handshake(b, &s);
    (void)parse_heartbeat(b, &beat);
    break;
  }
  case 1:
    channel(b.data, b.size);
    break;
  case 2: {
    BindAnswer a;
    uint8_t described[2] = {};
    if (parse_answer(b, &a)) mark_described(a, described, 16);
    ServerBind r;
    (void)parse_server_bind(b, &r);
    break;
  }
  case 3: {
    Notice h;
    if (parse_notice(crypto, b, &h) && (h.n < 1 || h.n > 8)) std::abort();
    break;
  }
  case 4: {
    Token t;
    if (parse_token(crypto, reinterpret_cast<const char *>(b.data), b.size, &t) == Error::ok &&
        t.sealed_size > max_sealed)
      std::abort();
    break;
  }
  default: {
    // Messages, past decryption: 5 on the data channel, 6 on the reliable one and the bulk channel; 7 and 8
    // are those of a server to which the client may switch.
    static Core *const core = [] {
      ClientConfig c;
      c.crypto = crypto;
      c.streams = true;
      c.worlds = 1;
      c.handlers = 1;
      Core *made = detail::create<Core>(Allocator{}, Allocator{});
      static Schema *schema;
      Field f;
      f.name = "X";
      f.resolution = 1;
      uint8_t rpc = 0;
      if (made == nullptr || made->setup(c) != Error::ok ||
          Schema::create({}, "Move", 60, &f, 1, &schema) != Error::ok ||
          made->do_bind(*schema, {}, &rpc) != Error::ok || made->do_handle(*schema, &rpc) != Error::ok)
        std::abort();
      subscribe(made);
      // The server has bound the RPC of the program.
      BindRequest r;
      r.schema = schema;
      r.prior = Prior::generic().hash();
      uint8_t request[1173];
      CoreAccess::message(made, CoreAccess::active(made), false,
                          {request, format_bind({request, sizeof(request)}, r)});
      return made;
    }();
    static Link *const links[2] = {CoreAccess::active(core), CoreAccess::standby(core)};
    CoreAccess::message(core, links[data[0] % 9 / 7], data[0] % 2 == 1, b);
    Event e;
    while (core->do_poll(&e)) {
    }
  }
  }
  return 0;
}
