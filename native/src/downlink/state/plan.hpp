// Relations between the fields of objects, and the models of packets. docs/spec/state.md, 1 and 4.
#pragma once

#include "src/downlink/orientation.hpp"
#include "src/downlink/state/arithmetic.hpp"
#include "src/downlink/type.hpp"

namespace uplink::detail::state {

using downlink::max_object_fields;
using downlink::RowField;
using downlink::TypeImpl;

struct StateField : RowField {
  int velocity = -1;  // index of the field that is its rate of change
  int64_t factor = 0; // Q16 in steps, for a quat Q30 in radians
  bool is_velocity = false;
  bool zero_at_rest = false;
  int trend = -1;                // index of the first trend, for fields that have trends
  uint8_t weights = 2;           // set of weights: with a velocity 0, a velocity 1, others 2
  downlink::Quantizer quantizer; // quantizer of a quat

  // bounds returns the bounds of component k.
  void bounds(size_t k, int32_t *low, int32_t *high) const {
    *low = lo, *high = hi;
    if (type == ObjectClass::quat && k == 0) *low = 0, *high = 3;
    if (type == ObjectClass::bytes && k > 0) *low = INT32_MIN, *high = INT32_MAX;
  }
};

struct StatePlan {
  size_t n = 0; // number of fields
  size_t components = 0;
  int position = -1; // index of the position's field
  StateField fields[max_object_fields];
  uint8_t order[max_object_fields] = {}; // order of predicted fields
  size_t order_n = 0;
  bool rest_fields = false; // some fields are zero at rest
  int rest = -1;            // index of the field that marks rest
  size_t trends = 0;
  int position_level = 0; // level of rare numbers

  // begin sets the fields of a type.
  void begin(const TypeImpl &t);
  // link makes a field the velocity of another one. factor is from an offer. It reports whether the
  // fields are compatible.
  bool link(size_t field, size_t velocity, int64_t factor);
  // finish determines the order. Call it after all calls of link.
  void finish();

  // part_of returns the first part of a field of the schema that is not a byte string.
  size_t part_of(const FieldInfo &f) const;

  bool zero(const int32_t *row) const;
  bool rests(const int32_t *row) const;
};

// plan_of makes the plan for a type with a schema. factors are from an offer; null means the
// schema's factors. It reports whether the type can be received.
bool plan_of(const TypeImpl &t, const int64_t *factors, StatePlan *plan);

// Chance is the adaptive probability of true.
struct Chance {
  uint16_t p;
  uint16_t n;
};

// Models are the adaptive models of a packet.
struct StateModels {
  Chance largest[levels][8];
  Chance other[2];
  Chance same[4][8];
  Chance zero[3];
  Chance near_viewer;
  Chance member[4][8];
  Chance gone[2];
  Chance regenerated;
  Chance held[2];
  Chance more[4];
  Chance viewer[3];
  Chance input[3];
  Chance differs[2];
  Chance flip[8];
  Chance rare[6];
  uint16_t view; // id of the viewer object
  int64_t pace;  // ticks per packet
};

struct FieldModels {
  int32_t bias[3]; // Q12
  Chance kept[2];
  Chance changed[4]; // changed flag or text
  Chance length;     // length of a text
  Chance differs[2];
  Chance flip[8];
};

void reset(StateModels *m);
void reset(FieldModels *m);

// Rare numbers are usually 0.
enum Rare { rare_tick, rare_ticks, rare_behind, rare_bytes, rare_position, rare_id };

// byte_of returns byte i of the components of a byte string.
inline uint8_t byte_of(const int32_t *c, size_t i) {
  return static_cast<uint8_t>(static_cast<uint32_t>(c[1 + i / 4]) >> (i % 4 * 8));
}
// put_byte sets byte i, which must be 0 before.
inline void put_byte(int32_t *c, size_t i, uint8_t b) {
  uint32_t word = static_cast<uint32_t>(c[1 + i / 4]) | static_cast<uint32_t>(b) << (i % 4 * 8);
  c[1 + i / 4] = static_cast<int32_t>(word);
}

} // namespace uplink::detail::state
