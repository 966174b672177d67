// The round-trip time: the same cases as in internal/transport/path.
#include <doctest/doctest.h>

#include "src/client/path.hpp"

using uplink::detail::client::PathEstimator;

namespace {

constexpr uint64_t ms = 1000, second = 1000000;

} // namespace

TEST_CASE("an echo measures once, within bounds of its age and hold time") {
  PathEstimator p;
  const uint64_t start = 10 * second, step = PathEstimator::interval;
  p.echoed(start, 0, 0);
  CHECK(p.rtt() == 0);
  CHECK(p.min_rtt() == 0);
  p.ask(start, 1);
  p.ask(start + step - 1, 2); // too soon
  for (uint32_t i = 1; i < 5; i++) p.ask(start + i * step, 10 + i);
  const uint64_t now = start + 4 * step;
  const auto measures = [&](uint64_t at, uint32_t number, uint64_t hold) {
    PathEstimator after = p;
    after.echoed(at, number, hold);
    const bool counted = after.rtt() != p.rtt() || after.min_rtt() != p.min_rtt();
    p = after;
    return counted;
  };
  CHECK_FALSE(measures(now, 100, 0));
  CHECK_FALSE(measures(now, 2, 0));
  CHECK(measures(now + 100 * ms, 14, 0));
  CHECK(p.rtt() == 100 * ms);
  CHECK_FALSE(measures(now + 200 * ms, 14, 0));
  CHECK(measures(now, 13, step - 50 * ms));
  CHECK(p.min_rtt() == 50 * ms);
  CHECK_FALSE(measures(now, 12, 2 * step + 1));
  CHECK_FALSE(measures(start + PathEstimator::max_age + 1, 1, 0));
}

TEST_CASE("three measurements of nine that are far off do not move the round-trip time") {
  PathEstimator p;
  uint64_t now = 0;
  for (const uint64_t d : {100, 100, 100, 106, 103, 900, 900, 900, 100}) p.measured(now += second, d * ms);
  CHECK(p.rtt() == 103 * ms);
  for (int i = 0; i < 9; i++) p.measured(now += second, 200 * ms);
  CHECK(p.rtt() == 200 * ms);
}

TEST_CASE("the minimum holds for 30 s and is forgotten after 40 s") {
  PathEstimator p;
  p.measured(5 * second, 50 * ms);
  for (uint64_t s = 6; s <= 35; s++) p.measured(s * second, 100 * ms);
  CHECK(p.min_rtt() == 50 * ms);
  for (uint64_t s = 36; s <= 45; s++) p.measured(s * second, 100 * ms);
  CHECK(p.min_rtt() == 100 * ms);
  p.measured(200 * second, 300 * ms);
  CHECK(p.min_rtt() == 300 * ms);
}
