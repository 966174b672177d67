// Sessions of interpolation and of the clock, as the Go packages record them.
#include <cmath>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "uplink/clock.hpp"
#include "uplink/interpolate.hpp"

using namespace uplink;

namespace {

using Words = std::vector<std::string>;

// lines calls f with the words of each line of a session.
template <typename F> void lines(const char *name, F f) {
  std::ifstream in(std::string(UPLINK_TESTDATA "/sessions/") + name);
  REQUIRE_MESSAGE(in.good(), name);
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    number++;
    if (line.empty() || line[0] == '#') continue;
    CAPTURE(number);
    Words w;
    std::istringstream words(line);
    for (std::string s; words >> s;) w.push_back(s);
    f(w);
  }
}

uint64_t whole(const std::string &s) {
  return std::stoull(s);
}

Field vector(const char *name, double resolution, double max) {
  Field f;
  f.name = name;
  f.kind = Kind::vec3;
  f.resolution = resolution;
  f.has_min = f.has_max = true;
  f.min = -max;
  f.max = max;
  return f;
}

// Crate contains the schema and type of the objects of the session.
struct Crate {
  Schema *schema = nullptr;
  ObjectType *type = nullptr;

  Crate() {
    Field f[4] = {vector("Position", 0.001, 1000), vector("Velocity", 0.01, 100), {}, {}};
    f[2].name = "Rotation";
    f[2].kind = Kind::quat;
    f[2].bits = 12;
    f[3].name = "Jumps";
    f[3].kind = Kind::uint;
    f[3].width = 2;
    REQUIRE(Schema::create({}, "crate", 0, f, 4, &schema) == Error::ok);
    REQUIRE(ObjectType::create({}, *schema, &type) == Error::ok);
  }
  Crate(const Crate &) = delete;
  Crate &operator=(const Crate &) = delete;
  ~Crate() {
    ObjectType::destroy(type);
    Schema::destroy(schema);
  }
};

InterpolatorConfig config_of(const Words &w) {
  InterpolatorConfig c;
  c.interval = whole(w[1]);
  c.method = static_cast<Interpolation>(whole(w[2]));
  c.adaptive = w[3] == "1";
  c.delay = whole(w[4]);
  if (w[5] != "0") c.jitter = whole(w[5]);
  if (w[6] != "0") c.loss = std::stod(w[6]);
  c.extrapolate = whole(w[7]);
  c.gap = whole(w[8]);
  c.position = "Position";
  c.velocity = "Velocity";
  c.orientation = "Rotation";
  c.teleports = "Jumps";
  return c;
}

std::vector<double> values(const Sample &s, size_t i) {
  const Pose &p = s.poses[i];
  std::vector<double> v = {static_cast<double>(s.objects.objects[i].id),
                           static_cast<double>(s.objects.objects[i].generation)};
  v.insert(v.end(), p.position, p.position + 3);
  v.insert(v.end(), p.velocity, p.velocity + 3);
  v.insert(v.end(), p.orientation, p.orientation + 4);
  v.push_back(p.teleports);
  return v;
}

std::string added(Error e) {
  return e == Error::ok          ? "right"
         : e == Error::stale     ? "late"
         : e == Error::duplicate ? "duplicate"
                                 : text(e);
}

} // namespace

// Times must be equal. Poses must agree to 1e-6, because both implementations restore and
// interpolate them in floating point.
TEST_CASE("a golden session of interpolation") {
  const Crate crate;
  Interpolator *interpolator = nullptr;
  std::vector<Object> objects;
  std::vector<int32_t> rows;
  Sample sample;
  size_t shown = 0, poses = 0;
  lines("interpolation.session", [&](const Words &w) {
    if (w[0] == "config") {
      Interpolator::destroy(interpolator);
      REQUIRE(Interpolator::create({}, *crate.type, config_of(w), &interpolator) == Error::ok);
    } else if (w[0] == "object") {
      objects.push_back({static_cast<uint16_t>(whole(w[1])), static_cast<uint8_t>(whole(w[2]))});
      for (size_t i = 3; i < w.size(); i++) rows.push_back(std::stoi(w[i]));
    } else if (w[0] == "add") {
      const Objects o = {objects.size(), crate.type->components(), objects.data(), rows.data()};
      REQUIRE(added(interpolator->add(whole(w[1]), whole(w[2]), o)) == w[4]);
      objects.clear();
      rows.clear();
    } else if (w[0] == "sample") {
      const bool any = interpolator->sample(whole(w[1]), &sample);
      REQUIRE(any == (w[3] != "nothing"));
      shown = 0;
      if (!any) return;
      REQUIRE(sample.time == whole(w[3]));
      REQUIRE(sample.starved == (w[4] == "1"));
    } else if (w[0] == "pose") {
      REQUIRE(shown < sample.objects.n);
      const std::vector<double> got = values(sample, shown++);
      for (size_t i = 0; i < got.size(); i++) REQUIRE(std::fabs(got[i] - std::stod(w[1 + i])) < 1e-6);
      poses++;
    } else if (w[0] == "stats") {
      const InterpolatorStats s = interpolator->stats();
      const uint64_t got[] = {s.added, s.late, s.duplicate, s.restarts, s.hitches, s.starved, s.delay};
      for (size_t i = 0; i < 7; i++) CHECK(got[i] == whole(w[1 + i]));
    }
  });
  Interpolator::destroy(interpolator);
  CHECK(poses > 500);
}

TEST_CASE("a golden session of the clock") {
  ServerClock clock;
  int times = 0;
  lines("clock.session", [&](const Words &w) {
    if (w[0] == "clock") {
      clock = {};
    } else if (w[0] == "observe") {
      clock.observe(whole(w[1]), whole(w[2]));
    } else {
      uint64_t time = 0;
      const bool any = clock.server(whole(w[1]), whole(w[2]), &time);
      REQUIRE(any == (w[4] != "-1"));
      if (any) REQUIRE(time == whole(w[4]));
      times++;
    }
  });
  CHECK(times > 300);
}
