// Packets of state synchronization: the input is a list of them, each after its length in one byte.
// What is decoded is within the bounds of its fields.
#include <cstdlib>

#include "src/downlink/state/receiver.hpp"

using namespace uplink;
using detail::state::StateImpl;
using detail::state::StatePlan;

namespace {

// The fields of statesync/testdata/kinds.golden.
constexpr ObjectField fields[] = {
    {ObjectClass::integer, 1, -5, 1 << 20}, {ObjectClass::number, 3, -90000, 90000},
    {ObjectClass::bytes, 4, 0, 9},          {ObjectClass::angle, 1, 0, 4095},
    {ObjectClass::number, 1, -2000, 2000},  {ObjectClass::quat, 4, -511, 511},
    {ObjectClass::angle, 3, -512, 511},     {ObjectClass::number, 3, -4000, 4000},
    {ObjectClass::number, 2, 10, 100000},   {ObjectClass::integer, 1, 0, 1}};
constexpr size_t fields_n = sizeof fields / sizeof *fields;

StatePlan everything() {
  ObjectType *type = nullptr;
  StatePlan p;
  if (ObjectType::create({}, fields, fields_n, &type) != Error::ok) std::abort();
  p.begin(detail::downlink::impl(*type));
  if (!p.link(1, 7, 8738) || !p.link(3, 4, -17476)) std::abort();
  p.finish();
  p.rest = 9;
  ObjectType::destroy(type);
  return p;
}

void check(const StateImpl &r, const StateUpdate &u) {
  for (size_t i = 0; i < u.objects; i++) {
    StateObject o = r.object(i);
    if (i > 0 && r.object(i - 1).id >= o.id) std::abort();
    for (size_t f = 0; f < fields_n && !o.removed; f++) {
      const detail::state::StateField &field = r.plan().fields[f];
      for (size_t k = 0; k < field.n; k++) {
        int32_t lo, hi, v = o.components[field.first + k];
        field.bounds(k, &lo, &hi);
        if (v < lo || v > hi) std::abort();
      }
    }
  }
  for (size_t i = 0; i < u.inputs; i++) {
    TickInputs t = r.inputs(i);
    uint8_t player;
    Bytes data;
    size_t players = 0;
    while (next_input(&t.inputs, &player, &data)) players++;
    if (t.inputs.size != 0 || players > 256) std::abort();
  }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const StatePlan plan = everything();
  StateImpl r({});
  StateConfig c;
  c.objects = 40;
  c.updates = 1000;
  c.input_bytes = 64;
  if (r.create(plan, c) != Error::ok) std::abort();
  for (size_t at = 0; at < size;) {
    size_t n = data[at++];
    if (n > size - at) n = size - at;
    StateUpdate u;
    if (r.receive({data + at, n}, &u) == Error::ok)
      check(r, u);
    else if (u.objects + u.inputs > 0)
      std::abort();
    uint8_t ack[max_ack];
    if (r.ack(ack) > max_ack) std::abort();
    at += n;
  }
  return 0;
}
