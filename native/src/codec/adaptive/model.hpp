// The coding order of fields, and their parameters. docs/spec/adaptive.md, 3.
#pragma once

#include "src/codec/adaptive/fixed.hpp"
#include "src/codec/schema.hpp"

namespace uplink::detail {

enum class Family : uint8_t { plain, angled, derived, turned, extrapolated };

constexpr size_t families = 5;
constexpr uint8_t expert_counts[families] = {3, 4, 2, 1, 3};
constexpr uint8_t weight_counts[families] = {6, 6, 4, 1, 2};
constexpr size_t max_experts = 4;
constexpr size_t max_weights = 6;

// Group is a field in coding order.
struct Group {
  enum class Type : uint8_t { numbers, quat, flags, string };

  Type type = Type::numbers;
  Family family = Family::plain;
  bool counter = false;
  bool has_signs = false;  // signs are coded in frames without a reference
  uint8_t flag_kind = 0;   // kind of the flag's parameters in a prior
  uint16_t first = 0;      // first component in the frame
  uint16_t count = 0;      // number of components in the frame
  uint16_t state = 0;      // index of its first State::components, flags, quats or strings
  uint16_t predicted = 0;  // number of predicted components
  uint16_t quat = 0;       // index of the quat
  uint16_t derivative = 0; // first component of the derivative
  int64_t factor = 0;      // factor of the derivative
  int64_t scale = 0;       // scale of a quat
  int32_t lo = 0;          // bounds of components that do not wrap
  int32_t hi = 0;
  uint8_t widths[2] = {}; // width of even and of odd components
  bool signs[2] = {};     // even and odd components: two's complement
  uint8_t most = 0;       // bits of the largest possible magnitude of a component
  const FieldInfo *field = nullptr;

  // width returns the width of component k.
  int width(size_t k) const { return widths[k & 1]; }
  bool is_signed(size_t k) const { return signs[k & 1]; }

  // fit brings x into the range of component k: modulo the range, or clamped.
  int32_t fit(int64_t x, size_t k) const {
    int w = width(k);
    if (w == 0) return static_cast<int32_t>(clamp(x, lo, hi));
    if (is_signed(k)) return static_cast<int32_t>(wrap(x, w));
    return static_cast<int32_t>(static_cast<uint32_t>(static_cast<uint64_t>(x) & ((UINT64_C(1) << w) - 1)));
  }
};

struct Model {
  const SchemaImpl *schema = nullptr;
  Array<Group> groups;
  int scalars[2] = {-1, -1}; // components of scalar fields, or -1
  size_t components = 0;     // number of predicted components
  size_t flags = 0;          // number of bits of bit sets and booleans
  size_t quats = 0;
  size_t strings = 0;

  bool create(const Allocator &a, const SchemaImpl &s);
};

} // namespace uplink::detail
