// Object types with the data that the codecs of worlds derive from them. docs/spec/snapshots.md, 2.
#pragma once

#include "src/codec/schema.hpp"
#include "uplink/objects.hpp"

namespace uplink::detail::downlink {

constexpr size_t max_object_fields = 32;
constexpr size_t max_row = 128;

struct RowField {
  ObjectClass type = ObjectClass::number;
  uint16_t first = 0; // index of the first component
  uint16_t n = 0;
  uint16_t number = 0; // number of earlier fields of its class
  int32_t lo = 0;
  int32_t hi = 0;

  bool predicted() const { return type != ObjectClass::integer && type != ObjectClass::bytes; }
};

struct TypeImpl final : ObjectType {
  Allocator allocator;
  Schema *source = nullptr;
  size_t fields_n = 0;
  RowField fields[max_object_fields];
  size_t row = 0;     // number of components
  size_t order_n = 0; // number of predicted fields: quats, numbers, angles
  uint8_t order[max_object_fields] = {};
  int position = -1;    // index of the field
  int orientation = -1; // index of the field
  int flag = -1;        // index of the field: the first integer
};

inline const TypeImpl &impl(const ObjectType &t) {
  return static_cast<const TypeImpl &>(t);
}

} // namespace uplink::detail::downlink
