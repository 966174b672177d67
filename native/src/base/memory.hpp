// Memory through the caller's allocator.
#pragma once

#include <cstddef>
#include <new>
#include <type_traits>
#include <utility>

#include "uplink/base.hpp"

namespace uplink::detail {

void *allocate(const Allocator &a, size_t size);
void release(const Allocator &a, void *memory);

// Array is a fixed number of elements, zero at the beginning. It is allocated once.
template <typename T> class Array {
public:
  Array() = default;
  Array(const Array &) = delete;
  Array &operator=(const Array &) = delete;
  ~Array() { clear(); }

  // create allocates memory for n elements and reports whether it succeeded.
  bool create(const Allocator &a, size_t n) {
    static_assert(std::is_nothrow_default_constructible_v<T>);
    clear();
    allocator_ = a;
    if (n == 0) return true;
    if (n > SIZE_MAX / sizeof(T)) return false;
    data_ = static_cast<T *>(allocate(a, n * sizeof(T)));
    if (data_ == nullptr) return false;
    size_ = n;
    for (size_t i = 0; i < n; i++) new (data_ + i) T();
    return true;
  }

  void clear() {
    if (data_ == nullptr) return;
    for (size_t i = size_; i > 0; i--) data_[i - 1].~T();
    release(allocator_, data_);
    data_ = nullptr;
    size_ = 0;
  }

  void swap(Array &o) {
    std::swap(allocator_, o.allocator_);
    std::swap(data_, o.data_);
    std::swap(size_, o.size_);
  }

  T *data() { return data_; }
  const T *data() const { return data_; }
  size_t size() const { return size_; }
  T &operator[](size_t i) { return data_[i]; }
  const T &operator[](size_t i) const { return data_[i]; }
  T *begin() { return data_; }
  T *end() { return data_ + size_; }
  const T *begin() const { return data_; }
  const T *end() const { return data_ + size_; }

private:
  Allocator allocator_;
  T *data_ = nullptr;
  size_t size_ = 0;
};

// create returns a new T, or null if there is no memory. destroy destroys it.
template <typename T, typename... Args> T *create(const Allocator &a, Args &&...args) {
  void *memory = allocate(a, sizeof(T));
  return memory == nullptr ? nullptr : new (memory) T(std::forward<Args>(args)...);
}

template <typename T> void destroy(const Allocator &a, T *object) {
  if (object == nullptr) return;
  object->~T();
  release(a, object);
}

} // namespace uplink::detail
