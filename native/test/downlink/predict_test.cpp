// Prediction, against a server that delivers, loses and repeats inputs, and whose states arrive late, not
// at all and out of order. The counterpart of predict/predictor_test.go.
#include <cmath>
#include <doctest/doctest.h>
#include <random>
#include <vector>

#include "uplink/predict.hpp"

namespace {

// Body is a state whose future depends on the order of its inputs.
struct Body {
  double at = 0;
  double speed = 0;
};

struct Game {
  using State = Body;
  using Input = int;

  int corrections = 0;

  static void advance(Body &b, int push) {
    b.speed = b.speed / 2 + push;
    b.at += b.speed;
  }
  void step(Body &b, const int &push) { advance(b, push); }
  double distance(const Body &a, const Body &b) { return std::fabs(a.at - b.at); }
  void corrected(const Body &, const Body &) { corrections++; }
};

struct Report {
  uint64_t processed;
  Body state;
};

constexpr size_t capacity = 8;

void play(uint32_t seed) {
  std::mt19937 rng(seed);
  auto below = [&rng](size_t n) { return static_cast<size_t>(rng() % n); };
  Game game;
  uplink::Predictor<Game, capacity> p(game, {});
  std::vector<int> inputs;
  std::vector<Report> reports;
  Body server;
  uint64_t processed = 0, seen = 0;
  int faults = 0;
  for (int i = 0; i < 400; i++) {
    switch (below(3)) {
    case 0:
      inputs.push_back(static_cast<int>(below(19)) - 9);
      REQUIRE(p.apply(inputs.size() - 1, inputs.back()) == uplink::Error::ok);
      continue;
    case 1: {
      if (processed == inputs.size()) continue;
      static const int times[] = {1, 1, 1, 0, 2};
      int n = times[below(seed % 2 == 0 ? 3 : 5)];
      for (int k = 0; k < n; k++) Game::advance(server, inputs[processed]);
      faults += n != 1 ? 1 : 0;
      reports.push_back({++processed, server});
      continue;
    }
    default:
      break;
    }
    if (reports.empty()) continue;
    size_t k = reports.size() - 1 - below(reports.size() < 3 ? reports.size() : 3);
    Report r = reports[k];
    reports.erase(reports.begin() + static_cast<std::ptrdiff_t>(k));
    Body before = p.state();
    p.correct(r.processed, r.state);
    if (r.processed < seen) {
      REQUIRE(p.state().at == before.at);
      continue;
    }
    seen = r.processed;
    size_t from = inputs.size() < capacity ? 0 : inputs.size() - capacity;
    if (from < r.processed) from = r.processed;
    REQUIRE(p.waiting() == inputs.size() - from);
    Body want = r.state;
    for (; from < inputs.size(); from++) Game::advance(want, inputs[from]);
    REQUIRE(p.state().at == want.at);
    REQUIRE(p.state().speed == want.speed);
  }
  CHECK(static_cast<uint64_t>(game.corrections) == p.stats().corrections);
  if (faults == 0 && p.stats().dropped == 0) CHECK(game.corrections == 0);
}

} // namespace

TEST_CASE("prediction against a server") {
  for (uint32_t seed = 1; seed <= 200; seed++) {
    CAPTURE(seed);
    play(seed);
  }
}

TEST_CASE("tolerance and order") {
  Game game;
  uplink::Predictor<Game> p(game, {}, 1);
  CHECK(p.correct(0, {0.5, 0}) == 0.5);
  CHECK(p.state().at == 0.5);
  CHECK(game.corrections == 0);
  CHECK(p.correct(0, {3, 0}) == 2.5);
  CHECK(game.corrections == 1);
  CHECK(p.stats().largest == 2.5);
  p.reset({});
  CHECK(p.apply(0, 1) == uplink::Error::ok);
  CHECK(p.apply(0, 1) == uplink::Error::invalid);
  CHECK(p.state().at == 1);
  CHECK(p.waiting() == 1);
}

TEST_CASE("a state that does not continue the one before") {
  Game game;
  uplink::Predictor<Game> p(game, {});
  for (int i = 0; i < 3; i++) REQUIRE(p.apply(static_cast<uint64_t>(i), i + 1) == uplink::Error::ok);
  p.place(2, {100, 0});
  CHECK(p.state().at == 103);
  CHECK(p.waiting() == 1);
  CHECK(game.corrections == 0);
  p.place(1, {200, 0});
  CHECK(p.state().at == 103);
  CHECK(p.stats().late == 1);
}
