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
  int velocity = -1;  // the field that is its rate of change
  int64_t factor = 0; // Q16 in steps, of a quat Q30 in radians
  bool is_velocity = false;
  bool zero_at_rest = false;
  int trend = -1;                // the first one, of fields that have trends
  uint8_t weights = 2;           // with a velocity 0, a velocity 1, others 2
  downlink::Quantizer quantizer; // of a quat

  // bounds returns those of component k.
  void bounds(size_t k, int32_t *low, int32_t *high) const {
    *low = lo, *high = hi;
    if (type == ObjectClass::quat && k == 0) *low = 0, *high = 3;
    if (type == ObjectClass::bytes && k > 0) *low = INT32_MIN, *high = INT32_MAX;
  }
};

struct StatePlan {
  size_t n = 0; // fields
  size_t components = 0;
  int position = -1; // field
  StateField fields[max_object_fields];
  uint8_t order[max_object_fields] = {}; // of predicted fields
  size_t order_n = 0;
  bool rest_fields = false; // some are zero at rest
  int rest = -1;            // the field that marks rest
  size_t trends = 0;
  int position_level = 0; // of rare numbers

  // begin takes the fields of a type.
  void begin(const TypeImpl &t);
  // link makes a field the velocity of another one. factor is that of an offer. It reports whether
  // they go together.
  bool link(size_t field, size_t velocity, int64_t factor);
  // finish determines the order, after all links.
  void finish();

  // part_of returns the first part of a field of the schema that is no byte string.
  size_t part_of(const FieldInfo &f) const;

  bool zero(const int32_t *row) const;
  bool rests(const int32_t *row) const;
};

// plan_of makes the plan for a type with a schema. factors are those of an offer; null means those of the
// schema. It reports whether they can be received.
bool plan_of(const TypeImpl &t, const int64_t *factors, StatePlan *plan);

// Chance is an adaptive probability of true.
struct Chance {
  uint16_t p;
  uint16_t n;
};

// Models of a packet.
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
  Chance changed[4]; // of a flag or a text
  Chance length;     // of a text
  Chance differs[2];
  Chance flip[8];
};

void reset(StateModels *m);
void reset(FieldModels *m);

// Rare numbers are 0 most of the time.
enum Rare { rare_tick, rare_ticks, rare_behind, rare_bytes, rare_position, rare_id };

// byte_of returns byte i of the components of a byte string.
inline uint8_t byte_of(const int32_t *c, size_t i) {
  return static_cast<uint8_t>(static_cast<uint32_t>(c[1 + i / 4]) >> (i % 4 * 8));
}
// put_byte sets byte i, which is 0.
inline void put_byte(int32_t *c, size_t i, uint8_t b) {
  uint32_t word = static_cast<uint32_t>(c[1 + i / 4]) | static_cast<uint32_t>(b) << (i % 4 * 8);
  c[1 + i / 4] = static_cast<int32_t>(word);
}

} // namespace uplink::detail::state
