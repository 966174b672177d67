// Tests of interpolation: poses between two snapshots, and the playback clock.
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "uplink/clock.hpp"
#include "uplink/interpolate.hpp"

using namespace uplink;

namespace {

constexpr uint64_t ms = 1000000;

struct World {
  Schema *schema = nullptr;
  ObjectType *type = nullptr;
  Interpolator *interpolator = nullptr;
  Frame *frame = nullptr;
  std::vector<Object> objects;
  std::vector<int32_t> rows;
  Sample sample;

  explicit World(InterpolatorConfig c = {}) {
    Field f[4];
    f[0].name = "position";
    f[1].name = "velocity";
    f[0].kind = f[1].kind = Kind::vec3;
    f[0].resolution = f[1].resolution = 0.001;
    f[2].name = "rotation";
    f[2].kind = Kind::quat;
    f[2].bits = 16;
    f[3].name = "jumps";
    f[3].kind = Kind::bits;
    f[3].width = 2;
    REQUIRE(Schema::create({}, "Crate", 0, f, 4, &schema) == Error::ok);
    REQUIRE(ObjectType::create({}, *schema, &type) == Error::ok);
    REQUIRE(Frame::create({}, *schema, &frame) == Error::ok);
    c.interval = 50 * ms;
    c.position = "position";
    c.velocity = "velocity";
    c.orientation = "rotation";
    c.teleports = "jumps";
    REQUIRE(Interpolator::create({}, *type, c, &interpolator) == Error::ok);
  }
  World(const World &) = delete;
  World &operator=(const World &) = delete;
  ~World() {
    Interpolator::destroy(interpolator);
    Frame::destroy(frame);
    ObjectType::destroy(type);
    Schema::destroy(schema);
  }

  // put puts an object that is turned by an angle about z into the next snapshot.
  void put(uint16_t id, double x, double speed = 0, double angle = 0, uint64_t jumps = 0) {
    const double position[3] = {x, 0, 0}, velocity[3] = {speed, 0, 0};
    const double rotation[4] = {0, 0, std::sin(angle / 2), std::cos(angle / 2)};
    REQUIRE(frame->set(0, position, 3) == Error::ok);
    REQUIRE(frame->set(1, velocity, 3) == Error::ok);
    REQUIRE(frame->set(2, rotation, 4) == Error::ok);
    REQUIRE(frame->set_integers(3, &jumps, 1) == Error::ok);
    objects.push_back({id, 0});
    rows.insert(rows.end(), frame->components(), frame->components() + type->components());
  }
  Error add(uint64_t now, uint64_t time) {
    const Error e =
        interpolator->add(now, time, {objects.size(), type->components(), objects.data(), rows.data()});
    objects.clear();
    rows.clear();
    return e;
  }
  double x(size_t i) const { return sample.poses[i].position[0]; }
};

} // namespace

TEST_CASE("linear interpolation between two snapshots") {
  World w;
  CHECK(!w.interpolator->sample(0, &w.sample));
  w.put(1, 1, 10, 0);
  w.put(2, 5);
  w.put(3, 0, 0, 0, 1);
  REQUIRE(w.add(1000 * ms, 100 * ms) == Error::ok);
  w.put(1, 2, 20, 1);
  w.put(3, 9, 0, 0, 2);
  REQUIRE(w.add(1050 * ms, 150 * ms) == Error::ok);
  REQUIRE(w.interpolator->at(125 * ms, &w.sample));
  REQUIRE(w.sample.objects.n == 3);
  CHECK(w.x(0) == doctest::Approx(1.5));
  CHECK(w.sample.poses[0].velocity[0] == doctest::Approx(15));
  CHECK(w.sample.poses[0].orientation[2] == doctest::Approx(std::sin(0.25)).epsilon(0.001));
  CHECK(w.x(1) == 5); // the newer snapshot does not have it
  CHECK(w.x(2) == 0); // it jumps
  CHECK(!w.sample.starved);
  REQUIRE(w.interpolator->at(160 * ms, &w.sample));
  CHECK(w.sample.starved);
  CHECK(w.x(0) == doctest::Approx(2));
  w.put(1, 1);
  CHECK(w.add(1051 * ms, 150 * ms) == Error::duplicate);
}

TEST_CASE("Hermite interpolation and extrapolation") {
  InterpolatorConfig c;
  c.method = Interpolation::hermite;
  c.extrapolate = 100 * ms;
  World w(c);
  w.put(1, 0, 20);
  w.put(2, 0, 20);
  w.add(1000 * ms, 100 * ms);
  w.put(1, 0, 0);
  w.put(2, 1, 20);
  w.add(1050 * ms, 150 * ms);
  REQUIRE(w.interpolator->at(125 * ms, &w.sample));
  CHECK(w.x(0) == 0); // it stops where it was
  CHECK(w.x(1) == doctest::Approx(0.5));
  REQUIRE(w.interpolator->at(200 * ms, &w.sample));
  CHECK(w.x(1) == doctest::Approx(2));
  REQUIRE(w.interpolator->at(900 * ms, &w.sample));
  CHECK(w.x(1) == doctest::Approx(3));
}

TEST_CASE("the playback follows the server's clock with the delay") {
  InterpolatorConfig c;
  c.delay = 120 * ms;
  World w(c);
  // Snapshots are sent every 50 ms and arrive after 30 to 40 ms.
  uint64_t time = 0;
  for (uint64_t n = 0; n < 100; n++) {
    w.put(1, static_cast<double>(n));
    REQUIRE(w.add(5000 * ms + n * 50 * ms + n % 3 * 5 * ms, n * 50 * ms) == Error::ok);
    REQUIRE(w.interpolator->play(5000 * ms + n * 50 * ms + 20 * ms, &time));
    if (n > 5) CHECK(time == n * 50 * ms + 20 * ms - 120 * ms);
  }
  const InterpolatorStats s = w.interpolator->stats();
  CHECK(s.added == 100);
  CHECK(s.restarts == 1);
  CHECK(s.hitches == 0);
  CHECK(s.delay == 120 * ms);
  // The server restarts: its time begins again.
  for (uint64_t n = 0; n < 3; n++) {
    w.put(1, 7);
    CHECK(w.add(11000 * ms + n * 50 * ms, n * 50 * ms) == (n < 2 ? Error::stale : Error::ok));
  }
  CHECK(w.interpolator->stats().restarts == 2);
}

TEST_CASE("a server's time that jumps by decades") {
  InterpolatorConfig c;
  c.delay = 120 * ms;
  World w(c);
  uint64_t time = 0;
  for (uint64_t n = 0; n < 3; n++) {
    w.put(1, 1);
    REQUIRE(w.add(5000 * ms + n * 50 * ms, n * 50 * ms) == Error::ok);
    REQUIRE(w.interpolator->play(5000 * ms + n * 50 * ms, &time));
  }
  const uint64_t jump = latest_time;
  w.put(1, 2);
  for (const uint64_t bad : {latest_time + 1, uint64_t{1} << 62, uint64_t{1} << 63, UINT64_MAX}) {
    CHECK(w.add(5150 * ms, bad) == Error::invalid);
    CHECK(w.add(bad, 150 * ms) == Error::invalid);
    CHECK(!w.interpolator->play(bad, &time));
    CHECK(!w.interpolator->at(bad, &w.sample));
  }
  w.put(1, 2);
  REQUIRE(w.add(5150 * ms, jump) == Error::ok);
  // The playback follows, and does not pass the newest snapshot.
  REQUIRE(w.interpolator->play(5260 * ms, &time));
  CHECK(time > jump - 120 * ms);
  CHECK(time <= jump);
}

// Times that a peer or a program makes up: the sanitizers see overflows.
TEST_CASE("times of all sizes") {
  const uint64_t times[] = {0,
                            1,
                            50 * ms,
                            1000 * ms,
                            uint64_t{1} << 53,
                            latest_time / 2,
                            latest_time - 1,
                            latest_time,
                            latest_time + 1,
                            latest_time * 2,
                            latest_time * 4 - 1,
                            latest_time * 4,
                            UINT64_MAX};
  std::mt19937 random(1);
  const auto any = [&] {
    return times[random() % (sizeof(times) / sizeof(times[0]))] + random() % 3 * 20 * ms;
  };
  for (int run = 0; run < 300; run++) {
    InterpolatorConfig c;
    c.adaptive = run % 2 == 1;
    c.extrapolate = run % 3 == 0 ? 500 * ms : 0;
    c.method = static_cast<Interpolation>(run % 3);
    World w(c);
    ServerClock clock(run % 5 == 0 ? UINT64_MAX / 4 : 50 * ms);
    uint64_t time = 0;
    for (int i = 0; i < 40; i++) {
      const uint64_t now = any(), server = any();
      w.put(1, i);
      w.add(now, server);
      w.interpolator->sample(any(), &w.sample);
      w.interpolator->at(any(), &w.sample);
      clock.observe(now, server);
      clock.server(any(), any(), &time);
      CHECK(clock.rate() >= 0.25);
      CHECK(clock.rate() <= 2);
    }
  }
}

TEST_CASE("an adaptive delay") {
  InterpolatorConfig c;
  c.adaptive = true;
  World w(c);
  for (uint64_t n = 0; n < 200; n++) {
    w.put(1, 1);
    w.add(5000 * ms + n * 50 * ms + (n % 8 == 0 ? 70 * ms : 0), n * 50 * ms);
  }
  // Each eighth snapshot comes 70 ms late: before it the previous one is 120 ms old.
  CHECK(w.interpolator->stats().delay == 120 * ms);
}

TEST_CASE("configurations of interpolators") {
  World w;
  InterpolatorConfig c;
  Interpolator *i = nullptr;
  CHECK(Interpolator::create({}, *w.type, c, &i) == Error::invalid); // no interval
  c.interval = 50 * ms;
  c.position = "nothing";
  CHECK(Interpolator::create({}, *w.type, c, &i) == Error::invalid);
  c.position = "rotation";
  CHECK(Interpolator::create({}, *w.type, c, &i) == Error::invalid);
  c.position = nullptr;
  c.loss = 1;
  CHECK(Interpolator::create({}, *w.type, c, &i) == Error::invalid);
}

TEST_CASE("angles turn the short way round, and numbers and positions in 2D are blended") {
  Field f[5];
  f[0].name = "Place";
  f[0].kind = Kind::vec2;
  f[1].name = "View";
  f[1].kind = Kind::angle;
  f[1].bits = 20;
  f[2].name = "Turret";
  f[2].kind = Kind::angle;
  f[2].count = 3;
  f[2].bits = 20;
  f[3].name = "Charge";
  f[3].count = 2;
  f[0].resolution = f[3].resolution = 0.01;
  f[4].name = "Lit";
  f[4].kind = Kind::boolean;
  Schema *schema = nullptr;
  ObjectType *type = nullptr;
  Frame *frame = nullptr;
  Interpolator *i = nullptr;
  REQUIRE(Schema::create({}, "Tank", 0, f, 5, &schema) == Error::ok);
  REQUIRE(ObjectType::create({}, *schema, &type) == Error::ok);
  REQUIRE(Frame::create({}, *schema, &frame) == Error::ok);
  InterpolatorConfig c;
  c.interval = 50 * ms;
  c.extrapolate = 50 * ms;
  c.position = "Place";
  c.orientation = "View";
  c.blended[0] = "Charge";
  c.blended[1] = "Turret";
  char text[256];
  CHECK(!interpolation_problem(*schema, c, text, sizeof(text)));
  REQUIRE(Interpolator::create({}, *type, c, &i) == Error::ok);
  const double place[2][2] = {{1, 2}, {3, -2}}, view[2] = {170, -150};
  const double turret[2][3] = {{-10, -179, 90}, {10, 179, 90}}, charge[2][2] = {{1, 10}, {2, 20}};
  for (size_t k = 0; k < 2; k++) {
    REQUIRE(frame->set(0, place[k], 2) == Error::ok);
    REQUIRE(frame->set(1, &view[k], 1) == Error::ok);
    REQUIRE(frame->set(2, turret[k], 3) == Error::ok);
    REQUIRE(frame->set(3, charge[k], 2) == Error::ok);
    const Object o = {7, 0};
    REQUIRE(i->add(k * 50 * ms, k * 50 * ms, {1, type->components(), &o, frame->components()}) == Error::ok);
  }
  const auto about = [](double v) { return doctest::Approx(v).epsilon(0.001); };
  Sample s;
  REQUIRE(i->at(25 * ms, &s));
  CHECK(s.poses[0].position[0] == about(2));
  CHECK(s.poses[0].position[1] == about(0));
  CHECK(s.poses[0].position[2] == 0);
  CHECK(s.poses[0].angles[0] == about(-170));
  CHECK(s.poses[0].angles[1] == about(0));
  CHECK(std::fabs(s.poses[0].angles[2]) == about(180));
  CHECK(s.poses[0].angles[3] == about(90));
  CHECK(s.poses[0].numbers[0] == about(1.5));
  CHECK(s.poses[0].numbers[1] == about(15));
  REQUIRE(i->at(75 * ms, &s));
  CHECK(s.poses[0].position[1] == about(-4));
  CHECK(s.poses[0].angles[0] == about(-130));
  CHECK(s.poses[0].numbers[1] == about(25));

  const auto problem = [&](const InterpolatorConfig &config) {
    Interpolator *none = nullptr;
    CHECK(Interpolator::create({}, *type, config, &none) == Error::invalid);
    REQUIRE(interpolation_problem(*schema, config, text, sizeof(text)));
    return std::string(text);
  };
  InterpolatorConfig bad = c;
  bad.position = "View";
  CHECK(problem(bad) ==
        "position: the field \"View\" is of kind angle with 1 values, possible are vec2, vec3, and "
        "scalar with 2 or 3 values");
  bad = c;
  bad.orientation = "Place";
  CHECK(problem(bad) ==
        "orientation: the field \"Place\" is of kind vec2 with 2 values, possible are quat, and "
        "angle with up to 4 values");
  bad = c;
  bad.blended[2] = "Lit";
  CHECK(problem(bad) ==
        "blended: the field \"Lit\" is of kind bool with 1 values, possible are vec2, vec3, scalar "
        "and angle");
  bad = c;
  bad.blended[2] = "View";
  CHECK(problem(bad) ==
        "blended: the field \"View\" is of kind angle with 1 values, possible are 4 angles of an "
        "object together");
  bad = c;
  bad.velocity = "Speed";
  CHECK(problem(bad) == "velocity: the schema has no field \"Speed\"");
  Interpolator::destroy(i);
  Frame::destroy(frame);
  ObjectType::destroy(type);
  Schema::destroy(schema);
}
