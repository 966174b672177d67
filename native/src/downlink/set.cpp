#include "src/downlink/set.hpp"

#include <algorithm>

namespace uplink::detail::downlink {

bool Set::reserve(const Allocator &a, size_t n) {
  if (n <= objects_.size()) return true;
  // Doubles the memory, so that growing sets rarely allocate.
  const size_t capacity = std::min(std::max(n, 2 * objects_.size()), max_objects);
  Set grown;
  if (!grown.objects_.create(a, capacity) || !grown.rows_.create(a, capacity * type_->row)) return false;
  if (n_ > 0) {
    std::memcpy(grown.objects_.data(), objects_.data(), n_ * sizeof(Object));
    std::memcpy(grown.rows_.data(), rows_.data(), n_ * type_->row * sizeof(int32_t));
  }
  objects_.swap(grown.objects_);
  rows_.swap(grown.rows_);
  return true;
}

ptrdiff_t Set::find(uint16_t id) const {
  size_t lo = 0, hi = n_;
  while (lo < hi) {
    const size_t middle = (lo + hi) / 2;
    if (objects_[middle].id < id)
      lo = middle + 1;
    else
      hi = middle;
  }
  return lo < n_ && objects_[lo].id == id ? static_cast<ptrdiff_t>(lo) : -1;
}

bool Set::insert(Object o, const int32_t *from) {
  size_t at = n_;
  while (at > 0 && objects_[at - 1].id > o.id) at--;
  if (at > 0 && objects_[at - 1].id == o.id) return false;
  const size_t width = type_->row, after = n_ - at;
  if (after > 0) {
    std::memmove(objects_.data() + at + 1, objects_.data() + at, after * sizeof(Object));
    std::memmove(row(at + 1), row(at), after * width * sizeof(int32_t));
  }
  objects_[at] = o;
  std::memcpy(row(at), from, width * sizeof(int32_t));
  n_++;
  return true;
}

bool Set::copy(const Allocator &a, const Set &from) {
  type_ = from.type_;
  clear();
  if (!reserve(a, from.n_)) return false;
  physics = from.physics;
  n_ = from.n_;
  if (n_ > 0) {
    std::memcpy(objects_.data(), from.objects_.data(), n_ * sizeof(Object));
    std::memcpy(rows_.data(), from.rows_.data(), n_ * type_->row * sizeof(int32_t));
  }
  return true;
}

uint16_t Set::hash() const {
  Fnv h;
  for (size_t i = 0; i < n_; i++) h.put(static_cast<uint64_t>(objects_[i].id << 8 | objects_[i].generation));
  for (size_t i = 0; i < n_ * type_->row; i++) h.put(static_cast<uint32_t>(rows_[i]));
  for (int k = 0; k < 3; k++) {
    h.put(bits_of(physics.floor[k]));
    h.put(bits_of(physics.half[k]));
  }
  h.put(bits_of(physics.contact));
  return fold(h.sum());
}

uint64_t Set::content() const {
  if (n_ == 0) return 0;
  Fnv h;
  for (size_t i = 0; i < n_; i++) {
    h.put(objects_[i].id & 255);
    h.put(static_cast<uint64_t>(objects_[i].id >> 8));
    h.put(objects_[i].generation);
    for (size_t k = 0; k < type_->row; k++) {
      const uint32_t v = static_cast<uint32_t>(row(i)[k]);
      for (int b = 0; b < 32; b += 8) h.put(v >> b & 255);
    }
  }
  return h.sum();
}

} // namespace uplink::detail::downlink
