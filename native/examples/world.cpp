// A client of the demo world of "uplink ds --world", which uses every kind of message: calls in
// both directions, reliable messages, requests, byte streams, snapshots of a world with areas. It
// checks all received data, and prints events, errors and counters. A server on another machine
// must accept the development key ("uplink ds --insecure").
//
//   uplink_world HOST:PORT SECONDS NUMBER
//
// NUMBER is the argument Player of each of its calls, whose schema is Move (At vec2, Player uint8,
// N uint32). If HOST is a name, all its addresses are tried. After the play time, the program waits
// until all reliable data has arrived. The exit code is 1 if data is wrong or does not arrive.
#include <cinttypes>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "uplink/snapshot_world.hpp"
#include "uplink/socket.hpp"

using namespace uplink;

namespace {

constexpr uint64_t second = 1000000000;
constexpr uint64_t call_interval = second / 60, request_interval = second / 5;
constexpr double world_hz = 20;
constexpr size_t upload_bytes = 100000;
constexpr int stream_lines = 4096;
constexpr uint64_t settle = 3 * second;    // time until the rate of the world's ticks is measured
constexpr uint64_t patience = 60 * second; // maximum wait for missing data after the play time

// resolve returns the addresses of HOST:PORT.
std::vector<Address> resolve(const std::string &name) {
  std::vector<Address> out;
  Address a;
  if (parse_address(name.c_str(), &a) == Error::ok) return {a};
  const size_t colon = name.rfind(':');
  addrinfo hints = {}, *list = nullptr;
  hints.ai_socktype = SOCK_DGRAM;
  if (colon == std::string::npos ||
      getaddrinfo(name.substr(0, colon).c_str(), name.substr(colon + 1).c_str(), &hints, &list) != 0)
    return out;
  for (const addrinfo *i = list; i != nullptr; i = i->ai_next) {
    a = {};
    if (i->ai_family == AF_INET) {
      sockaddr_in s;
      std::memcpy(&s, i->ai_addr, sizeof(s));
      a.family = 4;
      a.port = ntohs(s.sin_port);
      std::memcpy(a.ip, &s.sin_addr, 4);
    } else if (i->ai_family == AF_INET6) {
      sockaddr_in6 s;
      std::memcpy(&s, i->ai_addr, sizeof(s));
      a.family = 6;
      a.port = ntohs(s.sin6_port);
      std::memcpy(a.ip, &s.sin6_addr, 16);
    }
    if (a.family != 0) out.push_back(a);
  }
  freeaddrinfo(list);
  return out;
}

// bot_at returns where a bot is at a time in seconds.
void bot_at(int i, double t, double at[2]) {
  constexpr int columns = 12, rows = 8;
  constexpr double phi = 1.61803398874989484820458683436563811772, field = 80;
  double whole = 0;
  const double part = std::modf(i / phi, &whole);
  const double radius = 4 + 16 * part, turn = t * (3 + i % 4) / radius + i;
  at[0] = field * (i % columns + .5) / columns + radius * std::cos(turn);
  at[1] = field * (i / columns + .5) / rows + radius * std::sin(turn);
}

Bytes bytes_of(const std::string &s) {
  return {reinterpret_cast<const uint8_t *>(s.data()), s.size()};
}

struct Player {
  std::vector<Address> addresses;
  size_t address = 0; // index in addresses
  uint8_t number = 0;
  uint64_t duration = 0; // ns

  ClientConfig config;
  Client *client = nullptr;
  Socket socket;
  Schema *move = nullptr, *bot = nullptr, *notice = nullptr;
  Frame *frame = nullptr, *object = nullptr;
  SnapshotWorld *world = nullptr;
  uint8_t rpc = 0;

  bool played = false, bound = false, over = false;
  uint64_t tick = 0, next_frame = 0, began = 0, end = UINT64_MAX;
  uint64_t calls = 0, notices = 0, last_notice = 0, differences = 0;
  uint64_t echoes = 0, echoes_sent = 0, uploads = 0, uploads_sent = 0, answers = 0, answers_wanted = 0;
  uint64_t snapshots = 0, objects = 0, first_tick = 0, last_tick = 0, frames = 0, starved = 0;
  double lowest_rate = 1;

  std::string line; // incomplete last line of the server's stream
  int lines = 0;
  uint32_t upload = 0; // number of the open stream
  size_t uploaded = 0;
  bool uploading = false, upload_ended = false;
  uint32_t request = 0;
  uint64_t next_request = 0;
  bool requested = false;

  Player() = default;
  Player(const Player &) = delete;
  Player &operator=(const Player &) = delete;
  ~Player() {
    Client::destroy(client);
    SnapshotWorld::destroy(world);
    Frame::destroy(frame);
    Frame::destroy(object);
    for (Schema *s : {move, bot, notice}) Schema::destroy(s);
  }

  void differ(const char *format, ...) {
    if (++differences > 20) return;
    va_list list;
    va_start(list, format);
    std::printf("differs: ");
    std::vprintf(format, list);
    std::printf("\n");
    va_end(list);
  }
  void check(Error e, const char *what) {
    if (e == Error::ok) return;
    differ("%s: %s", what, text(e));
    over = true;
  }

  void schemas() {
    Field m[3], b[3], n[2];
    m[0].name = "At";
    m[0].kind = Kind::vec2;
    m[0].resolution = 0.01;
    m[0].has_min = m[0].has_max = true;
    m[0].min = -100;
    m[0].max = 100;
    m[1].name = "Player";
    m[2].name = "N";
    b[0].name = "Position";
    b[0].kind = b[1].kind = Kind::vec3;
    b[0].resolution = 0.01;
    b[0].has_min = b[0].has_max = b[1].has_min = b[1].has_max = true;
    b[0].min = -100;
    b[0].max = 200;
    b[0].velocity = b[1].name = "Velocity";
    b[1].resolution = 0.05;
    b[1].min = -20;
    b[1].max = 20;
    b[2].name = "Firing";
    b[2].kind = Kind::boolean;
    n[0].name = "Tick";
    n[1].name = "Players";
    m[1].kind = m[2].kind = n[0].kind = n[1].kind = Kind::uint;
    m[1].width = n[1].width = 8;
    m[2].width = n[0].width = 32;
    check(Schema::create({}, "Move", 60, m, 3, &move), "schema of calls");
    check(Schema::create({}, "bots", 0, b, 3, &bot), "schema of the world");
    check(Schema::create({}, "Notice", 0, n, 2, &notice), "schema of server calls");
  }

  void prepare() {
    SnapshotWorldConfig c;
    InterpolatorConfig interpolation;
    schemas();
    if (over) return;
    config.crypto = library_crypto();
    config.server = addresses[0];
    config.handlers = 1;
    config.worlds = 1;
    config.streams = true;
    interpolation.position = "Position";
    interpolation.velocity = "Velocity";
    c.types[0] = bot;
    c.interpolation[0] = &interpolation;
    c.n = 1;
    BindConfig bind;
    bind.copies = 2;
    uint8_t id = 0;
    check(Client::create({}, config, &client), "client");
    if (over) return;
    check(client->bind(*move, bind, &rpc), "bind");
    check(client->handle(*notice, &id), "handle");
    check(SnapshotWorld::create({}, c, &world), "world");
    if (over) return;
    check(client->subscribe("bots", *world, 0, &id), "subscribe");
    check(Frame::create({}, *move, &frame), "frame");
    check(Frame::create({}, *bot, &object), "frame");
    check(socket.open(addresses[0]), "socket");
    connect();
  }

  // connect begins a session with the server at the current address.
  void connect() {
    IssuerKey key;
    Claims claims;
    uint8_t id[8];
    char token[token_text];
    check(development_key(config.crypto, &key), "key");
    if (!config.crypto.random(config.crypto.context, id, sizeof(id))) check(Error::closed, "random bytes");
    std::memcpy(&claims.client_id, id, sizeof(id));
    claims.issued = wall_now();
    claims.expires = claims.issued + 60000;
    claims.servers[0] = addresses[address];
    claims.n = 1;
    check(issue_token(config.crypto, key, claims, token, sizeof(token)), "token");
    if (over) return;
    if (address == 0)
      check(client->connect(token, std::strlen(token), now()), "connect");
    else
      check(client->assign(addresses[address], token, std::strlen(token), now()), "connect");
  }

  // play calls, sends and requests what is due while the session is open.
  void play() {
    const uint64_t t = now();
    while (bound && t >= tick && t < end) {
      tick += call_interval;
      const double turn = static_cast<double>(calls) / 60, at[2] = {50 * std::cos(turn), 50 * std::sin(turn)};
      const uint64_t player = number, n = calls;
      frame->set(0, at, 2);
      frame->set_integers(1, &player, 1);
      frame->set_integers(2, &n, 1);
      check(client->call(rpc, *frame, t), "call");
      if (calls++ % 6 == 0) {
        const Error e = client->send(bytes_of("message " + std::to_string(echoes_sent)), true, t);
        if (e == Error::ok)
          echoes_sent++;
        else if (e != Error::backlog && e != Error::too_fast)
          check(e, "message");
      }
    }
    if (!uploading && t < end) {
      const Error e = client->open_stream(bytes_of("upload"), &upload, t);
      if (e == Error::ok) {
        uploading = true;
        uploads_sent++;
        uploaded = 0;
        upload_ended = false;
      } else if (e != Error::full) {
        check(e, "open a stream");
      }
    }
    if (uploading && uploaded < upload_bytes) {
      static const uint8_t zeros[4096] = {};
      size_t n = sizeof(zeros);
      while (n > 0 && uploaded < upload_bytes) {
        const size_t rest = upload_bytes - uploaded;
        n = 0;
        client->write_stream(upload, {zeros, rest < sizeof(zeros) ? rest : sizeof(zeros)}, &n, t);
        uploaded += n;
      }
    }
    if (uploading && uploaded == upload_bytes && !upload_ended)
      upload_ended = client->end_stream(upload) == Error::ok;
    if (!requested && t < end && t >= next_request) {
      if (client->request(bytes_of("request " + std::to_string(answers)), &request, t) == Error::ok) {
        requested = true;
        answers_wanted++;
        next_request = t + request_interval;
      }
    }
  }

  // show samples the world, as a game does before it draws a frame.
  void show(uint64_t t) {
    Sample s;
    Ticks ticks;
    const Stats stats = client->stats();
    if (!bound || t < next_frame || t < began + settle || t >= end) return;
    next_frame = t + call_interval;
    if (world->clock(t, stats.min_rtt, stats.rtt, &ticks) && ticks.rate < lowest_rate)
      lowest_rate = ticks.rate;
    if (!world->sample(0, t, &s)) return;
    frames++;
    if (s.starved) starved++;
  }

  // update checks the newest snapshot.
  void update() {
    const Snapshot *s = world->newest();
    if (s == nullptr) return;
    if (snapshots++ == 0) first_tick = s->tick;
    last_tick = s->tick;
    const Objects o = world->objects(0);
    for (size_t i = 0; i < o.n; i++, objects++) {
      double at[3] = {}, want[2];
      const uint64_t as_of = s->tick - (o.ages == nullptr ? 0 : o.ages[i]);
      check(world->type(0).restore(o.row(i), object), "restore");
      check(object->get(0, at, 3), "position");
      bot_at(o.objects[i].id, static_cast<double>(as_of) / world_hz, want);
      if (std::abs(at[0] - want[0]) > 0.0051 || std::abs(at[1] - want[1]) > 0.0051)
        differ("tick %" PRIu64 ", bot %d as of tick %" PRIu64 " is at %.3f %.3f instead of %.3f %.3f",
               s->tick, o.objects[i].id, as_of, at[0], at[1], want[0], want[1]);
    }
  }

  void message(const std::string &m) {
    if (m == "message " + std::to_string(echoes))
      echoes++;
    else if (m == "stream \"upload\": " + std::to_string(upload_bytes) + " bytes")
      uploads++;
    else if (m.rfind("welcome", 0) != 0)
      differ("message \"%s\" after %" PRIu64 " echoes", m.c_str(), echoes);
  }

  void stream(const std::string &data) {
    for (const char c : data) {
      if (c != '\n') {
        line += c;
        continue;
      }
      if (line != "line " + std::to_string(lines))
        differ("line %d of the stream is \"%s\"", lines, line.c_str());
      lines++;
      line.clear();
    }
  }

  void handle(const Event &e) {
    const std::string data(reinterpret_cast<const char *>(e.data.data), e.data.size);
    switch (e.type) {
    case EventType::connected:
      std::printf("connected\n");
      break;
    case EventType::bound:
      bound = true;
      tick = now();
      if (end == UINT64_MAX) {
        began = tick;
        end = tick + duration;
      }
      break;
    case EventType::bind_failed:
      differ("RPC refused: %s", data.c_str());
      over = true;
      break;
    case EventType::reconnecting:
      std::printf("reconnecting: %s\n", text(e.reason));
      if (end == UINT64_MAX && address + 1 < addresses.size()) {
        address++; // no session yet: the next address of the name
        connect();
      } else {
        over = true;
      }
      break;
    case EventType::disconnected:
      std::printf("disconnected: %s\n", text(e.reason));
      over = true;
      break;
    case EventType::silent:
      std::printf("interrupted\n");
      break;
    case EventType::new_socket:
      check(socket.open(addresses[address]), "socket");
      client->rebind(now());
      break;
    case EventType::world:
      if (e.status != 0) differ("the world ended: %s", data.c_str());
      break;
    case EventType::mismatch:
      differ("mismatch: %s", data.c_str());
      break;
    case EventType::world_update:
      update();
      break;
    case EventType::message:
      message(data);
      break;
    case EventType::server_call: {
      uint64_t at = 0;
      check(e.frame->get_integers(0, &at, 1), "notice");
      if (notices++ > 0 && at != last_notice + 20)
        differ("notice of tick %" PRIu64 " after that of %" PRIu64, at, last_notice);
      last_notice = at;
      break;
    }
    case EventType::answer:
      if (e.status != 2 || data != "request " + std::to_string(answers))
        differ("request %" PRIu64 ": status %d, \"%s\"", answers, e.status, data.c_str());
      answers++;
      requested = false;
      break;
    case EventType::stream_open:
      if (data != "lines.txt") differ("stream \"%s\"", data.c_str());
      break;
    case EventType::stream_data:
      stream(data);
      break;
    case EventType::stream_aborted:
      differ("the stream was aborted: %s", data.c_str());
      break;
    case EventType::stream_done:
      if (e.status != 0) differ("upload: status %d", e.status);
      uploading = false;
      break;
    default:
      break;
    }
    std::fflush(stdout);
  }

  bool complete() const {
    return !uploading && !requested && echoes == echoes_sent && uploads == uploads_sent &&
           lines == stream_lines;
  }

  int run() {
    prepare();
    while (!over) {
      if (client->connected()) play();
      socket.run(*client);
      Event e;
      while (!over && client->poll_event(&e)) handle(e);
      show(now());
      const uint64_t t = now();
      uint64_t until = client->next_timeout();
      if (t < end) {
        if (bound && tick < until) until = tick;
      } else if (!played && (complete() || t > end + patience)) {
        if (!complete()) differ("not everything that is reliable has arrived");
        print();
        client->close(0, t);
        played = true;
      }
      if (!over && !played && until > t) socket.wait(until - t);
    }
    if (!played) {
      differ("the session ended");
      print();
    }
    return differences == 0 ? 0 : 1;
  }

  void print() const {
    const Stats s = client == nullptr ? Stats{} : client->stats();
    const struct {
      const char *name;
      uint64_t value;
    } counters[] = {{"calls", calls},
                    {"echoes", echoes},
                    {"echoes_sent", echoes_sent},
                    {"uploads", uploads},
                    {"uploads_sent", uploads_sent},
                    {"answers", answers},
                    {"answers_wanted", answers_wanted},
                    {"lines", static_cast<uint64_t>(lines)},
                    {"notices", notices},
                    {"snapshots", snapshots},
                    {"ticks", last_tick - first_tick + 1},
                    {"objects", objects},
                    {"frames", frames},
                    {"starved", starved},
                    {"path", s.datagram_size},
                    {"rtt_ms", s.rtt / 1000000}};
    for (const auto &c : counters) std::printf("%s=%" PRIu64 "\n", c.name, c.value);
    std::printf("lowest_rate=%.3f\n", lowest_rate);
    std::fflush(stdout);
  }
};

} // namespace

int main(int argc, char **argv) {
  Player p;
  if (argc == 4) {
    p.addresses = resolve(argv[1]);
    p.duration = std::strtoull(argv[2], nullptr, 10) * second;
    p.number = static_cast<uint8_t>(std::strtoul(argv[3], nullptr, 10));
  }
  if (argc != 4 || p.duration == 0 || p.addresses.empty()) {
    std::fprintf(stderr, "usage: uplink_world HOST:PORT SECONDS NUMBER\n");
    return 2;
  }
  return p.run();
}
