// Decoders of snapshots and of worlds with areas. The first byte selects one: 0 objects of
// snapshot/testdata/cubes.session, 1 those of kinds.session, 2 areas with both types. Messages follow,
// each with its size in front.
#include <cstdlib>

#include "src/codec/bits.hpp"
#include "uplink/snapshot.hpp"

using namespace uplink;

namespace {

const ObjectType *type_of(bool kinds) {
  static const ObjectField cubes_fields[] = {{ObjectClass::quat, 4, 0, 511},
                                             {ObjectClass::number, 3, -4000, 4000},
                                             {ObjectClass::number, 3, -2000, 2000},
                                             {ObjectClass::integer, 1, 0, 1}};
  static const ObjectField kinds_fields[] = {{ObjectClass::angle, 2, 0, 255},
                                             {ObjectClass::integer, 1, INT32_MIN, INT32_MAX},
                                             {ObjectClass::number, 1, INT32_MIN, INT32_MAX},
                                             {ObjectClass::quat, 4, -511, 511},
                                             {ObjectClass::bytes, 4, 0, 9},
                                             {ObjectClass::bytes, 2, 4, 4}};
  const auto make = [](const ObjectField *f, size_t n) {
    ObjectType *t = nullptr;
    if (ObjectType::create({}, f, n, &t) != Error::ok) std::abort();
    return t;
  };
  static const ObjectType *const both[2] = {make(cubes_fields, 4), make(kinds_fields, 6)};
  return both[kinds ? 1 : 0];
}

void check(const Objects &o, const uint8_t *ack, size_t size) {
  if (size == 0 || size > max_ack || ack == nullptr || o.n > max_objects) std::abort();
  for (size_t i = 1; i < o.n; i++)
    if (o.objects[i].id <= o.objects[i - 1].id) std::abort();
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size == 0) return 0;
  const uint8_t mode = data[0] % 3;
  SnapshotDecoder *snapshots = nullptr;
  AreaDecoder *areas = nullptr;
  const ObjectType *const types[] = {type_of(false), type_of(true)};
  if (mode < 2 && SnapshotDecoder::create({}, *types[mode], {}, &snapshots) != Error::ok) std::abort();
  if (mode == 2 && AreaDecoder::create({}, types, 2, &areas) != Error::ok) std::abort();
  for (size_t at = 1; at + 2 <= size;) {
    const size_t n = detail::load16(data + at);
    at += 2;
    const Bytes message = {data + at, n < size - at ? n : size - at};
    at += message.size;
    SnapshotInfo info;
    Objects o;
    uint8_t ack[max_ack];
    if (snapshots != nullptr) {
      if (snapshots->decode(message, &info, &o) == Error::ok) check(o, ack, snapshots->ack(ack));
    } else if (areas->decode(message, &info) == Error::ok) {
      for (size_t k = 0; k < 2; k++) check(areas->shown(k), ack, areas->ack(ack));
    }
  }
  SnapshotDecoder::destroy(snapshots);
  AreaDecoder::destroy(areas);
  return 0;
}
