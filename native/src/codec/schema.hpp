// Schemas with the data that codecs derive from them. docs/spec/values.md.
#pragma once

#include <cstdint>

#include "src/base/memory.hpp"
#include "src/codec/bits.hpp"
#include "uplink/codec.hpp"

namespace uplink::detail {

constexpr size_t max_fields = 256;
constexpr size_t max_components = 1024;
constexpr size_t max_bytes = 16384; // maximum size of all integers and byte strings of a frame
constexpr size_t max_name = 255;
// max_description is the maximum size of a field's description with its final zero: up to two
// names, and numbers.
constexpr size_t max_description = 2 * max_name + 256;

// kind_name returns the name of a kind in descriptions.
const char *kind_name(Kind k);

// FieldInfo is a field with its defaults set.
struct FieldInfo {
  const char *name = nullptr;
  Kind kind = Kind::scalar;
  uint16_t values = 0;     // number of values of the program; 0: byte string
  uint16_t first = 0;      // index of the first component
  uint16_t components = 0; // number of components; 0: byte string
  int16_t string = -1;     // index of the byte string
  int16_t velocity = -1;   // index of the velocity's field
  uint8_t bits = 0;
  uint8_t width = 0; // width of an integer or a boolean
  bool bounded = false;
  int32_t lo = 0; // bounds of components that are not integers
  int32_t hi = 0;
  uint32_t min_length = 0; // bounds of the length of a byte string
  uint32_t max_length = 0;
  double resolution = 0;
  double velocity_scale = 1;
  int64_t factor = 0; // factor of the velocity

  bool is_vector() const { return kind == Kind::vec2 || kind == Kind::vec3 || kind == Kind::scalar; }
  bool is_integer() const {
    return kind == Kind::uint || kind == Kind::int_ || kind == Kind::bits || kind == Kind::boolean;
  }
  bool is_string() const { return kind == Kind::fixed || kind == Kind::bytes; }
  // parts returns the number of components of an integer value.
  int parts() const { return width > 32 ? 2 : 1; }
  // part_width returns the number of bits of component i of the field.
  int part_width(size_t i) const {
    if (width <= 32) return width;
    return i % 2 == 0 ? 32 : width - 32;
  }
};

struct SchemaImpl final : Schema {
  Allocator allocator;
  Array<char> names; // names of the RPC and of the fields
  Array<FieldInfo> infos;
  Array<uint16_t> factors; // indexes of fields with a velocity
  Array<uint16_t> strings; // indexes of fields that are byte strings
  Array<uint32_t> offsets; // offsets of byte strings in a frame's bytes
  Array<int32_t> lowest;   // lower bounds of each component
  Array<int32_t> highest;
  const char *rpc_name = nullptr;
  double rate = 60;
  size_t component_count = 0;
  size_t bytes = 0;  // maximum size of a frame's byte strings
  size_t binary = 0; // maximum size of integers and byte strings in rle
  uint64_t print = 0;
};

// clone creates a copy of a schema.
Error clone(const Allocator &a, const Schema &s, Schema **out);

inline const SchemaImpl &impl(const Schema &s) {
  return static_cast<const SchemaImpl &>(s);
}

// FrameView refers to the memory of a frame: its components, and its byte strings.
struct FrameView {
  int32_t *c;
  uint16_t *lengths;
  uint8_t *bytes; // string i is at SchemaImpl::offsets[i]
};

// FrameRing stores frames of consecutive sequences.
class FrameRing {
public:
  // create makes room for n frames, a power of two.
  bool create(const Allocator &a, const SchemaImpl &s, size_t n) {
    schema_ = &s;
    size_ = n;
    return components_.create(a, n * s.component_count) && lengths_.create(a, n * s.strings.size()) &&
           bytes_.create(a, n * s.bytes);
  }
  FrameView at(uint64_t sequence) {
    size_t i = static_cast<size_t>(sequence) & (size_ - 1);
    return {components_.data() + i * schema_->component_count, lengths_.data() + i * schema_->strings.size(),
            bytes_.data() + i * schema_->bytes};
  }
  size_t size() const { return size_; }

private:
  const SchemaImpl *schema_ = nullptr;
  size_t size_ = 0;
  Array<int32_t> components_;
  Array<uint16_t> lengths_;
  Array<uint8_t> bytes_;
};

void copy(const SchemaImpl &s, const FrameView &to, const FrameView &from);

// reset sets all components and byte strings to 0, or to the nearest value within their bounds.
void reset(const SchemaImpl &s, const FrameView &f);

// hash returns the hash of a frame.
uint16_t hash(const SchemaImpl &s, const FrameView &f);

// in_bounds reports whether a value is permitted for component i of a frame.
inline bool in_bounds(const SchemaImpl &s, size_t i, int32_t c) {
  return !(static_cast<int>(c < s.lowest[i]) | static_cast<int>(c > s.highest[i]));
}

struct FrameImpl final : Frame {
  Allocator allocator;
  const SchemaImpl *schema = nullptr;
  FrameRing memory; // memory of one frame
  mutable FrameView view{};
};

inline const FrameImpl &impl(const Frame &f) {
  return static_cast<const FrameImpl &>(f);
}

} // namespace uplink::detail
