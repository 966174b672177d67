// The golden sessions of state synchronization, and the limits of the receiver.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "src/downlink/state/receiver.hpp"
#include "test/hex.hpp"

namespace {

using uplink::Error;
using uplink_test::Data;
using Words = std::vector<std::string>;

const std::map<std::string, uplink::ObjectClass> classes = {{"motion", uplink::ObjectClass::number},
                                                            {"angle", uplink::ObjectClass::angle},
                                                            {"quat", uplink::ObjectClass::quat},
                                                            {"flags", uplink::ObjectClass::integer},
                                                            {"bytes", uplink::ObjectClass::bytes}};

// Golden is a session that a file describes.
struct Golden {
  std::vector<uplink::ObjectField> fields;
  std::vector<std::string> names;
  std::vector<Words> velocities, lines; // lines after the description
  std::string rest;

  explicit Golden(const std::string &name) {
    std::ifstream in(UPLINK_TESTDATA "/../internal/statesync/testdata/" + name);
    REQUIRE(in.good());
    for (std::string line; std::getline(in, line);) {
      std::istringstream words(line);
      Words w;
      for (std::string word; words >> word;) w.push_back(word);
      if (w.empty()) continue;
      if (w[0] == "field") {
        names.push_back(w[1]);
        fields.push_back({classes.at(w[2]), static_cast<uint8_t>(std::stoul(w[3])),
                          static_cast<int32_t>(std::stol(w[4])), static_cast<int32_t>(std::stol(w[5]))});
      } else if (w[0] == "velocity") {
        velocities.push_back(w);
      } else if (w[0] == "rest") {
        rest = w[1];
      } else {
        lines.push_back(w);
      }
    }
  }

  size_t index(const std::string &name) const {
    return static_cast<size_t>(std::find(names.begin(), names.end(), name) - names.begin());
  }

  uplink::detail::state::StatePlan plan() const {
    uplink::ObjectType *type = nullptr;
    REQUIRE(uplink::ObjectType::create({}, fields.data(), fields.size(), &type) == Error::ok);
    uplink::detail::state::StatePlan p;
    p.begin(uplink::detail::downlink::impl(*type));
    for (const Words &w : velocities) REQUIRE(p.link(index(w[1]), index(w[2]), std::stoll(w[3])));
    p.finish();
    if (!rest.empty()) p.rest = static_cast<int>(index(rest));
    uplink::ObjectType::destroy(type);
    return p;
  }
};

Error error_of(const std::string &word) {
  static const std::map<std::string, Error> errors = {
      {"missing", Error::no_baseline}, {"desync", Error::desync}, {"malformed", Error::malformed}};
  auto e = errors.find(word);
  return e == errors.end() ? Error::stale : e->second;
}

// shown returns the lines of a decoded packet.
std::vector<std::string> shown(const uplink::StateReceiver &r, const uplink::StateUpdate &u,
                               size_t components) {
  std::vector<std::string> out;
  for (size_t i = 0; i < u.inputs; i++) {
    uplink::TickInputs t = r.inputs(i);
    std::string head = "inputs " + std::to_string(t.tick) + " ";
    if (t.missing) out.push_back(head + "missing");
    uint8_t player;
    uplink::Bytes data;
    while (uplink::next_input(&t.inputs, &player, &data))
      out.push_back(head + std::to_string(player) + " " + uplink_test::hex(data.data, data.size));
  }
  for (size_t i = 0; i < u.objects; i++) {
    uplink::StateObject o = r.object(i);
    std::string line = "object " + std::to_string(o.id) + " ";
    line += o.removed ? "gone" : std::to_string(o.generation);
    for (size_t k = 0; k < components && !o.removed; k++) line += " " + std::to_string(o.components[k]);
    out.push_back(line);
  }
  uint8_t ack[uplink::max_ack];
  out.push_back("ack " + uplink_test::hex(ack, r.ack(ack)));
  return out;
}

std::string joined(const Words &w) {
  std::string out;
  for (const std::string &s : w) out += (out.empty() ? "" : " ") + s;
  return out;
}

} // namespace

// Decoding the sessions allocates no memory after create.
TEST_CASE("golden sessions") {
  for (const char *name : {"updates.golden", "kinds.golden"}) {
    CAPTURE(name);
    Golden g(name);
    size_t allocations = 0;
    uplink::Allocator a;
    a.context = &allocations;
    a.allocate = [](void *context, size_t size) {
      ++*static_cast<size_t *>(context);
      return std::malloc(size);
    };
    a.release = [](void *, void *memory) { std::free(memory); };
    uplink::detail::state::StateImpl r(a);
    uplink::detail::state::StatePlan plan = g.plan();
    REQUIRE(r.create(plan, {}) == Error::ok);
    const size_t created = allocations;
    size_t packets = 0;
    for (size_t i = 0; i < g.lines.size(); i++) {
      const Words &w = g.lines[i];
      if (w[0] != "packet" || w[3] == "lost") continue;
      CAPTURE(i);
      Data b = uplink_test::unhex(w[1]);
      uplink::StateUpdate u;
      Error e = r.receive({b.data(), b.size()}, &u);
      bool number = w[3].find_first_not_of("-0123456789") == std::string::npos;
      if (!number) {
        REQUIRE((e == error_of(w[3]) || (e == Error::duplicate && w[3] == "late")));
        continue;
      }
      REQUIRE(e == Error::ok);
      packets++;
      CHECK(u.tick == std::stoll(w[3]));
      for (const std::string &line : shown(r, u, plan.components)) REQUIRE(line == joined(g.lines[++i]));
    }
    CHECK(packets > 50);
    CHECK(allocations == created);
  }
}

// A receiver with too little memory requests resets, and continues.
TEST_CASE("limits") {
  Golden g("kinds.golden");
  uplink::StateConfig c;
  c.objects = 4;
  c.updates = 255;
  uplink::detail::state::StateImpl r({});
  REQUIRE(r.create(g.plan(), c) == Error::ok);
  for (const Words &w : g.lines) {
    if (w[0] != "packet") continue;
    Data b = uplink_test::unhex(w[1]);
    uplink::StateUpdate u;
    (void)r.receive({b.data(), b.size()}, &u);
  }
  CHECK(r.stats().full > 0);
  r.reset();
  CHECK(r.stats().full == 0);
  c.input_bytes = 2;
  uplink::detail::state::StateImpl small({});
  REQUIRE(small.create(g.plan(), c) == Error::ok);
  c.updates = 254;
  CHECK(small.create(g.plan(), c) == Error::invalid);
}

// A receiver of objects with a schema.
TEST_CASE("schema") {
  uplink::Field fields[3];
  fields[0].name = "Position";
  fields[0].kind = uplink::Kind::vec3;
  fields[0].resolution = 0.5;
  fields[0].velocity = "Speed";
  fields[1].name = "Speed";
  fields[1].kind = uplink::Kind::vec3;
  fields[1].resolution = 0.5;
  fields[2].name = "Asleep";
  fields[2].kind = uplink::Kind::boolean;
  for (uplink::Field &f : fields)
    f.has_min = f.has_max = f.kind == uplink::Kind::vec3, f.min = -1000, f.max = 1000;
  fields[2].min = fields[2].max = 0;
  uplink::Schema *s = nullptr;
  REQUIRE(uplink::Schema::create({}, "Body", 60, fields, 3, &s) == Error::ok);
  uplink::StateConfig c;
  c.rest = "Asleep";
  uplink::StateReceiver *r = nullptr;
  CHECK(uplink::StateReceiver::create({}, *s, c, &r) == Error::ok);
  uint8_t ack[uplink::max_ack];
  CHECK(r->ack(ack) == 1);
  uplink::Frame *f = nullptr;
  REQUIRE(uplink::Frame::create({}, *s, &f) == Error::ok);
  CHECK(r->get(0, *f) == Error::invalid);
  uplink::StateReceiver::destroy(r);
  c.rest = "Speed";
  CHECK(uplink::StateReceiver::create({}, *s, c, &r) == Error::invalid);
  uplink::Frame::destroy(f);
  uplink::Schema::destroy(s);
}
