// State that both ends learn from accepted frames. docs/spec/adaptive.md, 4.
#pragma once

#include "src/codec/adaptive/model.hpp"
#include "src/codec/adaptive/prior.hpp"

namespace uplink::detail {

constexpr size_t classes = 3;

// ClassState is the state of a component in one class of distances.
struct ClassState {
  int32_t fast = 2048; // mean sizes of residuals, Q8
  int32_t slow = 2048;
  int32_t recent = 2048;
  int16_t weight[max_weights] = {};
  int16_t scalar_weight[4] = {};
  int16_t cost[max_experts] = {};
  int16_t shape_cost[symbol_sets] = {5120, 4820, 5020};
  // Derived from the fields above.
  int16_t expected = 0;
  uint8_t expert = 0;
  uint8_t shape = 0;

  // expect sets expected; choose sets the expert and the shape.
  void expect() {
    int64_t mean = 2 * static_cast<int64_t>(fast) + 4 * static_cast<int64_t>(slow) + recent;
    expected = static_cast<int16_t>(log(mean / 28));
  }
  void choose() {
    auto least = [](int a, int b) { return a < b ? a : b; };
    // The low bits of the compared values contain the rank, so that the first of equal values is
    // the lowest.
    static_assert(max_experts == 4 && symbol_sets == 3);
    expert = least(least(cost[0] * 4, cost[1] * 4 + 1), least((cost[2] + 100) * 4 + 2, cost[3] * 4 + 3)) & 3;
    int set = least(least(shape_cost[1] * 4, shape_cost[0] * 4 + 1), shape_cost[2] * 4 + 2) & 3;
    shape = static_cast<uint8_t>(set == 2 ? 2 : 1 - set); // 1 ranks before 0
  }
};

constexpr size_t max_frequent = 6;

struct ComponentState {
  ClassState of[classes];
  int16_t lean[3] = {1000, 1500, 0};
  int16_t flag_bias = 0;
  int16_t flag_w[4] = {};
  // The following fields apply to components outside of quats.
  int32_t value[max_frequent] = {}; // frequent values
  uint16_t rank[max_frequent] = {26000, 26000, 26000, 26000, 26000, 26000};
  uint16_t any = 8000;
  int16_t gain = -200;
  uint8_t count[max_frequent] = {};
  uint8_t n = 0;
  bool asks = false;
};

struct GroupState {
  int16_t bias[classes] = {};
  int16_t w[4] = {};
  uint16_t uses = 0;
  uint16_t steps = 0;
};

struct BitState {
  uint16_t bit[4] = {64600, 62000, 64600, 62000};
};

struct StringState {
  uint16_t same[4] = {58000, 36000, 30000, 16000};
  uint16_t same_bit[16] = {};
};

struct QuatState {
  uint16_t index[10] = {};
};

struct State {
  const Model *model = nullptr;
  uint64_t accepted = 0;
  uint16_t enough[3][15] = {};
  uint16_t none[2] = {60500, 5000};
  uint8_t last = 1;
  bool repeated = false;
  Array<GroupState> groups;
  Array<ComponentState> components;
  Array<BitState> flags;
  Array<StringState> strings;
  Array<QuatState> quats; // one for each quat, in coding order

  bool create(const Allocator &a, const Model &m);
  // start sets the initial state.
  void start(const PriorImpl &p);
  void copy(const State &s);
  uint16_t hash() const;

  // enough_of returns the probability that a payload with at least i frames has exactly i.
  uint16_t &enough_of(int i) { return enough[last < i ? 0 : last == i ? 1 : 2][i - 1]; }
  uint16_t enough_of(int i) const { return enough[last < i ? 0 : last == i ? 1 : 2][i - 1]; }
};

} // namespace uplink::detail
