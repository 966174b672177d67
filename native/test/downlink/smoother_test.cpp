#include <cmath>
#include <cstring>

#include <doctest/doctest.h>

#include "uplink/smoother.hpp"

using namespace uplink;

namespace {

Pose posed(double x, double y, double angle, double degrees, double number) {
  Pose p;
  p.position[0] = x;
  p.position[1] = y;
  p.orientation[2] = std::sin(angle / 2);
  p.orientation[3] = std::cos(angle / 2);
  p.angles[0] = degrees;
  p.numbers[0] = number;
  return p;
}

} // namespace

TEST_CASE("a smoother fades like that of Go") {
  Smoother s;
  const Pose from = posed(0, 0, 0, 170, 1), to = posed(0.6, -0.1, 2, -150, 1.5);
  CHECK(s.settled());
  s.correct(from, to);
  const Pose first = s.drawn(to);
  CHECK(std::abs(first.position[0]) < 1e-12);
  CHECK(std::abs(first.orientation[3] - 1) < 1e-12);
  CHECK(std::abs(first.angles[0] - 170) < 1e-9);
  // After each step: position, orientation, angle and number of statesync.Smoother.
  const double want[][7] = {
      {0.1, 0.240421214966, -0.0400702024943, 0.436300512685, 0.899801012797, -179.403675625, 1.18019388184},
      {0.01, 0.254693097812, -0.0424488496353, 0.454703191556, 0.890643030394, -178.512532035, 1.19171287925},
      {0.25, 0.446871434902, -0.0744785724836, 0.688613791986, 0.725128295881, -163.209606042, 1.3598210829},
  };
  for (const auto &w : want) {
    s.step(w[0]);
    const Pose p = s.drawn(to);
    const double got[] = {p.position[0],    p.position[1], p.orientation[2],
                          p.orientation[3], p.angles[0],   p.numbers[0]};
    for (int i = 0; i < 6; i++) CHECK(std::abs(got[i] - w[i + 1]) < 1e-8);
  }
  s.step(10);
  CHECK(s.settled());
  CHECK(s.drawn(to).position[0] == to.position[0]);
}

TEST_CASE("a smoother does not show large errors, nor what is not a number") {
  Smoother s;
  const Pose from = posed(0, 0, 0, 0, 0);
  s.correct(from, posed(5, 0, 0, 0, 0));
  CHECK(s.settled());
  s.correct(from, posed(1, 0, 0, 0, 7)); // only this number jumps
  CHECK(!s.settled());
  CHECK(s.drawn(posed(1, 0, 0, 0, 7)).numbers[0] == 7);
  CHECK(s.drawn(posed(1, 0, 0, 0, 7)).position[0] == 0);
  s.correct(from, posed(std::nan(""), 0, 0, 0, 0));
  CHECK(s.settled());
}

TEST_CASE("a smoother refuses a configuration out of range, and names the member") {
  Smoother s;
  CHECK(s.configure({}) == nullptr);
  Smoothing c;
  c.slow = 1;
  CHECK(std::strcmp(s.configure(c), "slow") == 0);
  c = {};
  c.fast = 0.96;
  CHECK(std::strcmp(s.configure(c), "fast") == 0);
  c = {};
  c.small_error = 2;
  CHECK(std::strcmp(s.configure(c), "small_error") == 0);
  c = {};
  c.large_error = HUGE_VAL;
  CHECK(std::strcmp(s.configure(c), "large_error") == 0);
  c = {};
  c.small_turn = 0.6;
  CHECK(std::strcmp(s.configure(c), "small_turn") == 0);
  c = {};
  c.large_turn = std::nan("");
  CHECK(std::strcmp(s.configure(c), "large_turn") == 0);
  c = {};
  c.snap = -1;
  CHECK(std::strcmp(s.configure(c), "snap") == 0);
  c.snap = HUGE_VAL;
  CHECK(s.configure(c) == nullptr);
}
