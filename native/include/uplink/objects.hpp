// Objects of a world in the form that the codecs use: an id, a generation and a row of integers.
// docs/spec/snapshots.md, 2, specifies them.
#pragma once

#include "uplink/codec.hpp"

namespace uplink {

// Object identifies an object. The same id with another generation is another object.
struct Object {
  uint16_t id = 0;
  uint8_t generation = 0;
};

// max_objects is the maximum number of objects of a type in a world.
constexpr size_t max_objects = 4096;

// ObjectClass selects the coding of the components of a field.
enum class ObjectClass : uint8_t {
  number,  // 1 to 3 numbers that change together; the first field of this class is the position
  angle,   // 1 to 3 angles, which wrap: the value after hi is lo
  quat,    // an orientation: the index of the largest element, and the three others
  integer, // a single integer
  bytes    // a byte string: its length, then 4 bytes per component, low byte first
};

// ObjectField is a field of a row.
struct ObjectField {
  ObjectClass type = ObjectClass::number;
  uint8_t components = 0; // number of components; 4 for quat, 1 + (hi + 3)/4 for bytes
  int32_t lo = 0;         // bounds of the components or, for bytes, of the length
  int32_t hi = 0;
};

// ObjectType describes the rows of objects. It is immutable.
class ObjectType {
public:
  // create returns the type of the objects that a schema describes, which it copies.
  // Error::invalid: a row has more than 32 fields or 128 components. A field with more than 3
  // numbers counts as several.
  static Error create(const Allocator &a, const Schema &s, ObjectType **out);
  // create returns a type without a schema.
  static Error create(const Allocator &a, const ObjectField *fields, size_t n, ObjectType **out);
  static void destroy(ObjectType *t);

  // components returns the number of integers of a row.
  size_t components() const;
  // schema returns the schema, or null for a type without one.
  const Schema *schema() const;
  // restore sets a frame of the schema to a row. Error::invalid: the type has no schema.
  Error restore(const int32_t *row, Frame *f) const;

protected:
  ObjectType() = default;
  ~ObjectType() = default;
};

// Objects lists objects of one type by ascending id. It is a view of a decoder's memory.
struct Objects {
  size_t n = 0;
  size_t components = 0; // number of components of each row
  const Object *objects = nullptr;
  const int32_t *rows = nullptr;
  // Age of each object's state relative to the snapshot, in ticks, or in snapshots if the Objects
  // come from an AreaDecoder. Null if all are 0, which is always the case without areas.
  const uint64_t *ages = nullptr;

  const int32_t *row(size_t i) const { return rows + i * components; }
};

} // namespace uplink
