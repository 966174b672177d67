// Sets of objects. docs/spec/snapshots.md, 2 and 13.
#pragma once

#include <cstring>

#include "src/downlink/integer.hpp"
#include "src/downlink/type.hpp"

namespace uplink::detail::downlink {

// Physics are the ground and the size of objects that an encoder has learned.
struct Physics {
  Int floor[3]; // Q4, -max_floor to max_floor
  Int half[3];  // Q4, 0 to max_half; 0: unknown
  Int contact;  // 0 to max_contact; 0: unknown
};

constexpr int64_t max_floor = (INT64_C(1) << 30) - 1;
constexpr int64_t max_half = INT64_C(1) << 24;
constexpr int64_t max_contact = 16383;

// Set is a set of objects by ascending id. It grows, and reuses its memory.
class Set {
public:
  Physics physics;

  void start(const TypeImpl &t) { type_ = &t; }
  const TypeImpl &type() const { return *type_; }
  void clear() {
    n_ = 0;
    physics = {};
  }
  // reserve allocates memory for n objects and reports whether it succeeded.
  bool reserve(const Allocator &a, size_t n);
  size_t size() const { return n_; }
  const Object &object(size_t i) const { return objects_[i]; }
  const int32_t *row(size_t i) const { return rows_.data() + i * type_->row; }
  int32_t *row(size_t i) { return rows_.data() + i * type_->row; }
  // push appends an object and does not set its row. reserve must have made room for it.
  void push(Object o) { objects_[n_++] = o; }
  // insert inserts an object by id. It reports whether the id is new. reserve must have made room
  // for it.
  bool insert(Object o, const int32_t *row);
  // find returns the index of an id, or -1.
  ptrdiff_t find(uint16_t id) const;
  bool copy(const Allocator &a, const Set &from);
  void swap(Set &o) {
    std::swap(physics, o.physics);
    std::swap(n_, o.n_);
    objects_.swap(o.objects_);
    rows_.swap(o.rows_);
  }
  uint16_t hash() const;
  // content returns the hash of an initial state. docs/spec/streams.md, 2.
  uint64_t content() const;
  Objects view() const { return {n_, type_->row, objects_.data(), rows_.data(), nullptr}; }

private:
  const TypeImpl *type_ = nullptr;
  size_t n_ = 0;
  Array<Object> objects_;
  Array<int32_t> rows_;
};

} // namespace uplink::detail::downlink
