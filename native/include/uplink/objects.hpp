// Objects of a world as their codecs see them: an id, a generation and a row of integers.
// docs/spec/snapshots.md, 2, specifies them.
#pragma once

#include "uplink/codec.hpp"

namespace uplink {

// Object names an object. An id whose generation changed is another object.
struct Object {
  uint16_t id = 0;
  uint8_t generation = 0;
};

// max_objects is the maximum number of objects of a type in a world.
constexpr size_t max_objects = 4096;

// ObjectClass is how the components of a field are coded.
enum class ObjectClass : uint8_t {
  number,  // 1 to 3 numbers that change together; the first field of this class is the position
  angle,   // 1 to 3 angles, which wrap: the value after hi is lo
  quat,    // an orientation: the index of the largest element, and the three others
  integer, // one integer
  bytes    // a byte string: its length, then 4 bytes in each component, the low byte first
};

// ObjectField is a field of a row.
struct ObjectField {
  ObjectClass type = ObjectClass::number;
  uint8_t components = 0; // 4 of a quat; of bytes 1 + (hi + 3)/4
  int32_t lo = 0;         // bounds of the components, and of the length of a byte string
  int32_t hi = 0;
};

// ObjectType describes the rows of objects. It is immutable.
class ObjectType {
public:
  // create returns the type of the objects of a schema, which it copies. Error::invalid: a row has
  // more than 32 fields or 128 components, a field with more than 3 numbers counted as several.
  static Error create(const Allocator &a, const Schema &s, ObjectType **out);
  // create returns a type without a schema.
  static Error create(const Allocator &a, const ObjectField *fields, size_t n, ObjectType **out);
  static void destroy(ObjectType *t);

  // components returns the number of integers of a row.
  size_t components() const;
  // schema returns the schema; null if the type has none.
  const Schema *schema() const;
  // restore stores a row in a frame of the schema. Error::invalid: the type has none.
  Error restore(const int32_t *row, Frame *f) const;

protected:
  ObjectType() = default;
  ~ObjectType() = default;
};

// Objects are objects of one type, by ascending id. They are a view of a decoder's memory.
struct Objects {
  size_t n = 0;
  size_t components = 0; // of a row
  const Object *objects = nullptr;
  const int32_t *rows = nullptr;
  // ages are by how much objects are older than their snapshot, in ticks, from an AreaDecoder in numbers
  // of snapshots. It is null if none is older, which is always so without areas.
  const uint64_t *ages = nullptr;

  const int32_t *row(size_t i) const { return rows + i * components; }
};

} // namespace uplink
