// A client without a game: it connects to a dedicated server such as "uplink ds", binds the RPC of a
// schema file, calls it at its rate for some seconds, and prints the state of the connection.
//
//   uplink_console SCHEMA ADDRESS:PORT SECONDS [TOKEN | KEY | -] [LOG] [WORLD WORLD_SCHEMA [WORLD_LOG]]
//
// TOKEN is the text of a connect token, KEY the text of a server's or an issuer's key. Without
// either it uses the development key, which servers accept on loopback addresses. LOG is a file
// that gets the components of each call that is sent, a line each; - for none. WORLD is the name of
// a world of the server, whose objects have the fields of the schema file WORLD_SCHEMA: it is
// subscribed to, and a field "position" is interpolated. WORLD_LOG gets a line for each object of
// each snapshot: the tick, the id, the generation, and the components.
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "uplink/snapshot_world.hpp"
#include "uplink/socket.hpp"

using namespace uplink;

namespace {

// fail ends the program.
[[noreturn]] void fail(const char *what, const char *why) {
  std::fprintf(stderr, "console: %s: %s\n", what, why);
  std::exit(1);
}

void check(Error e, const char *what) {
  if (e != Error::ok) fail(what, text(e));
}

Kind kind_of(const std::string &name) {
  static const char *const names[] = {"vec2", "vec3", "scalar", "angle", "quat",  "unitvec",
                                      "uint", "int",  "bits",   "bool",  "fixed", "bytes"};
  for (size_t i = 0; i < 12; i++)
    if (name == names[i]) return static_cast<Kind>(i);
  fail("kind of a field", name.c_str());
}

// SchemaFile is a schema file, such as testdata/traces/portal2_coop_60hz.schema.json.
struct SchemaFile {
  nlohmann::json json;
  std::vector<std::string> texts;
  std::vector<Field> fields;
  Schema *schema = nullptr;

  explicit SchemaFile(const char *name) {
    std::ifstream file(name);
    if (!file) fail(name, "cannot read the file");
    json = nlohmann::json::parse(file);
    texts.reserve(2 * json["fields"].size());
    for (const auto &f : json["fields"]) {
      Field x;
      texts.push_back(f["name"]);
      x.name = texts.back().c_str();
      x.kind = kind_of(f["kind"]);
      // Values of a field are columns of a recorded trace.
      const size_t columns = f.contains("columns") ? f["columns"].size() : 1;
      const bool several = x.kind != Kind::vec2 && x.kind != Kind::vec3 && x.kind != Kind::quat &&
                           x.kind != Kind::unitvec && x.kind != Kind::fixed && x.kind != Kind::bytes;
      x.count = static_cast<uint16_t>(f.value("count", several ? columns : size_t{1}));
      x.resolution = f.value("resolution", 0.0);
      x.bits = f.value("bits", uint8_t{0});
      x.width = f.value("width", uint8_t{0});
      x.size = f.value("size", f.value("max", uint16_t{0}));
      if (x.kind <= Kind::scalar) {
        x.size = 0;
        x.has_min = f.contains("min");
        x.has_max = f.contains("max");
        x.min = f.value("min", 0.0);
        x.max = f.value("max", 0.0);
      }
      if (f.contains("velocity")) {
        texts.push_back(f["velocity"]);
        x.velocity = texts.back().c_str();
        x.velocity_scale = f.value("velocity_scale", 1.0);
      }
      fields.push_back(x);
    }
    const std::string rpc = json["rpc"];
    check(Schema::create({}, rpc.c_str(), json.value("rate_hz", 60.0), fields.data(), fields.size(), &schema),
          "schema");
  }
  SchemaFile(const SchemaFile &) = delete;
  SchemaFile &operator=(const SchemaFile &) = delete;
  ~SchemaFile() { Schema::destroy(schema); }

  // fill sets the arguments of call number n: numbers and angles on a circle, and the number.
  void fill(Frame &f, uint64_t n) const {
    for (size_t i = 0; i < fields.size(); i++) {
      const double turn = static_cast<double>(n) / 60;
      double v[1024] = {};
      uint64_t u[1024] = {};
      const Field &x = fields[i];
      const size_t count = x.kind == Kind::vec2 ? 2U : x.kind == Kind::vec3 ? 3U : x.count;
      for (size_t j = 0; j < count; j++) {
        v[j] =
            x.kind == Kind::angle ? std::fmod(turn * 30, 360) : 100 * std::sin(turn + static_cast<double>(j));
        u[j] = n & (x.width >= 32 ? 0xffffffff : x.width >= 8 ? 0xff : 1);
      }
      if (x.kind <= Kind::angle)
        f.set(i, v, count);
      else if (x.kind == Kind::uint || x.kind == Kind::bits)
        f.set_integers(i, u, count);
    }
  }
};

// Spectator shows a world.
struct Spectator {
  SchemaFile file;
  std::string name;
  SnapshotWorld *world = nullptr;
  std::ofstream log;

  Spectator(Client *client, const char *world_name, const char *schema, const char *to)
      : file(schema), name(world_name) {
    SnapshotWorldConfig config;
    InterpolatorConfig interpolation;
    config.types[0] = file.schema;
    config.n = 1;
    for (const Field &f : file.fields)
      if ((f.name == std::string("position") || f.name == std::string("Position")) && f.kind == Kind::vec3)
        interpolation.position = f.name;
    config.interpolation[0] = &interpolation;
    uint8_t number = 0;
    check(SnapshotWorld::create({}, config, &world), "world");
    check(client->subscribe(world_name, *world, 0, &number), "subscribe");
    if (to != nullptr) log.open(to);
  }
  Spectator(const Spectator &) = delete;
  Spectator &operator=(const Spectator &) = delete;
  ~Spectator() { SnapshotWorld::destroy(world); }

  void write() {
    const Snapshot *s = world->newest();
    if (!log.is_open() || s == nullptr) return;
    const Objects o = world->objects(0);
    for (size_t i = 0; i < o.n; i++) {
      log << s->tick << ' ' << o.objects[i].id << ' ' << static_cast<int>(o.objects[i].generation);
      for (size_t k = 0; k < o.components; k++) log << ' ' << o.row(i)[k];
      log << '\n';
    }
  }
  void print() {
    Sample s;
    const Snapshot *newest = world->newest();
    if (newest == nullptr || !world->sample(0, now(), &s)) return;
    std::printf("world %s: tick %" PRIu64 ", %zu objects", name.c_str(), newest->tick, s.objects.n);
    if (s.objects.n > 0)
      std::printf(", object %d is shown at %.2f %.2f %.2f", s.objects.objects[0].id, s.poses[0].position[0],
                  s.poses[0].position[1], s.poses[0].position[2]);
    std::printf(", delay %.0f ms\n", static_cast<double>(world->interpolation(0).delay) / 1e6);
  }
};

std::string token_of(const Crypto &c, const char *argument, const Address &server) {
  std::string a = argument;
  if (a.rfind("uplink-token-", 0) == 0) return a;
  IssuerKey key;
  check(a == "-" ? development_key(c, &key) : parse_key(c, argument, &key), "key");
  Claims claims;
  uint8_t id[8];
  if (!c.random(c.context, id, sizeof(id))) fail("random", "no random bytes");
  for (size_t i = 0; i < 8; i++) claims.client_id = claims.client_id << 8 | id[i];
  claims.issued = wall_now();
  claims.expires = claims.issued + 60000;
  claims.servers[0] = server;
  claims.n = 1;
  char text[token_text];
  check(issue_token(c, key, claims, text, sizeof(text)), "token");
  return text;
}

int run(int argc, char **argv) {
  if (argc < 4)
    fail("usage", "uplink_console SCHEMA ADDRESS:PORT SECONDS [TOKEN | KEY | -] [LOG] [WORLD WORLD_SCHEMA]");
  const SchemaFile file(argv[1]);
  const char *key = argc > 4 ? argv[4] : "-";
  std::ofstream log;
  const bool logs = argc > 5 && argv[5] != std::string("-");
  if (logs) log.open(argv[5]);
  Address server;
  check(parse_address(argv[2], &server), argv[2]);
  const uint64_t seconds = std::strtoull(argv[3], nullptr, 10);
  ClientConfig config;
  config.crypto = library_crypto();
  config.server = server;
  config.worlds = argc > 7 ? 1 : 0;
  Client *client = nullptr;
  check(Client::create({}, config, &client), "client");
  uint8_t rpc = 0;
  check(client->bind(*file.schema, {}, &rpc), "bind");
  std::unique_ptr<Spectator> spectator;
  if (argc > 7)
    spectator = std::make_unique<Spectator>(client, argv[6], argv[7], argc > 8 ? argv[8] : nullptr);
  Frame *frame = nullptr;
  check(Frame::create({}, *file.schema, &frame), "frame");
  Socket socket;
  check(socket.open(server), "socket");
  std::string token = token_of(config.crypto, key, server);
  check(client->connect(token.data(), token.size(), now()), "token");

  bool bound = false, over = false;
  int result = 0;
  uint64_t n = 0, tick = 0, sent = 0;
  // While the server does not answer, no calls are sent, or few: this time does not count.
  const uint64_t calls = seconds * static_cast<uint64_t>(file.schema->rate_hz());
  const uint64_t interval = static_cast<uint64_t>(1e9 / file.schema->rate_hz());
  while (!over) {
    if (bound && sent >= calls) {
      client->close(0, now());
      bound = false;
    }
    while (bound && now() >= tick && sent < calls) {
      tick += client->pace(rpc, now()).interval(interval); // as the server's jitter buffer needs it
      file.fill(*frame, n++);
      const Error e = client->call(rpc, *frame, now());
      if (e == Error::ok)
        sent++;
      else
        std::fprintf(stderr, "console: call: %s\n", text(e));
      for (size_t i = 0; logs && e == Error::ok && i < file.schema->components(); i++)
        log << frame->components()[i] << (i + 1 < file.schema->components() ? ' ' : '\n');
    }
    socket.run(*client);
    Event e;
    while (client->poll_event(&e)) {
      const Stats s = client->stats();
      switch (e.type) {
      case EventType::connected:
        std::printf("connected%s, suite %d\n", e.value == 1 ? " again" : "", s.suite);
        break;
      case EventType::bound:
        std::printf("bound RPC %d\n", e.rpc);
        bound = true;
        tick = now();
        break;
      case EventType::bind_failed:
        std::printf("cannot bind: reason %" PRIu64 "\n", e.value);
        client->close(0, now());
        result = 1;
        break;
      case EventType::reconnecting:
        std::printf("reconnecting: %s\n", text(e.reason));
        bound = false;
        check(socket.open(server), "socket");
        token = token_of(config.crypto, key, server);
        check(client->connect(token.data(), token.size(), now()), "token");
        break;
      case EventType::disconnected:
        std::printf("disconnected: %s\n", text(e.reason));
        over = true;
        break;
      case EventType::new_socket:
        check(socket.open(server), "socket");
        client->rebind(now());
        break;
      case EventType::shutdown:
        client->close(1, now());
        break;
      case EventType::handover: {
        const std::string to(reinterpret_cast<const char *>(e.data.data), e.data.size);
        std::printf("handover to %s %s\n", to.c_str(),
                    e.status == 0   ? "begins"
                    : e.status == 1 ? "completed"
                                    : text(e.reason));
        if (e.status == 1) check(parse_address(to.c_str(), &server), "handover");
        break;
      }
      case EventType::quality:
        std::printf("rtt %.1f ms, %" PRIu64 " calls, %" PRIu64 " acks, %" PRIu64 " datagrams sent (%" PRIu64
                    " bytes), %" PRIu64 " received, %" PRIu64 " missing\n",
                    static_cast<double>(s.rtt) / 1e6, s.calls, s.acks, s.sent, s.sent_bytes, s.received,
                    s.missing);
        if (spectator != nullptr) spectator->print();
        break;
      case EventType::world:
        std::printf("world %s%.*s\n",
                    e.status == 0   ? "subscribed"
                    : e.status == 1 ? "refused: "
                                    : "ended",
                    static_cast<int>(e.data.size), reinterpret_cast<const char *>(e.data.data));
        break;
      case EventType::mismatch:
        std::printf("mismatch: %.*s\n", static_cast<int>(e.data.size),
                    reinterpret_cast<const char *>(e.data.data));
        break;
      case EventType::world_update:
        spectator->write();
        break;
      default:
        break;
      }
      std::fflush(stdout);
    }
    uint64_t until = client->next_timeout();
    if (bound && tick < until) until = tick;
    const uint64_t t = now();
    if (!over && until > t) socket.wait(until - t);
  }
  Frame::destroy(frame);
  Client::destroy(client);
  return result;
}

} // namespace

int main(int argc, char **argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception &e) {
    fail(argc > 1 ? argv[1] : "console", e.what());
  }
}
