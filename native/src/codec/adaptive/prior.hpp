// Priors. docs/spec/adaptive.md, 14.
#pragma once

#include "src/base/memory.hpp"
#include "uplink/codec.hpp"

namespace uplink::detail {

constexpr size_t symbol_sets = 3;
constexpr size_t symbol_rows = 48;
constexpr size_t symbols = 64;
constexpr size_t parameter_kinds = 31;

// Cumulative are the cumulative frequencies of one row. Symbol s occupies element s to element s +
// 1, modulo 2^16.
using Cumulative = uint16_t[symbols + 1];

// Costs are the sizes of the symbols of one row in each set, in bits, Q10.
using Costs = int16_t[symbols][symbol_sets];

// Parameters are initial values of parameters.
struct Parameters {
  const int32_t *values = nullptr;
  size_t size = 0;
};

// FieldParameters are the parameters of a known field.
struct FieldParameters {
  uint64_t key = 0;
  uint8_t flag_kind = 0;
  Parameters all;
};

struct PriorImpl final : Prior {
  constexpr PriorImpl() = default;

  const Cumulative (*cumulative)[symbol_rows] = nullptr;
  const Costs *costs = nullptr; // costs of each row
  Parameters kinds[parameter_kinds];
  const FieldParameters *fields = nullptr; // by ascending key
  size_t field_count = 0;
  uint64_t name = 0;

  // Memory of a parsed prior.
  Allocator allocator;
  void *memory = nullptr;

  const FieldParameters *find(uint64_t key) const;
};

inline const PriorImpl &impl(const Prior &p) {
  return static_cast<const PriorImpl &>(p);
}

} // namespace uplink::detail
