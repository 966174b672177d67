// A queue of bytes in memory that grows and shrinks with its contents.
#pragma once

#include <algorithm>

#include "src/base/memory.hpp"
#include "src/client/bytes.hpp"

namespace uplink::detail::client {

// Ring is a queue of bytes. It allocates nothing before the first byte, and then at most twice the
// size of its contents, or kept bytes. Memory up to kept bytes is released only at the end, so that
// occasional small contents allocate nothing.
class Ring {
public:
  static constexpr size_t kept = 2048;

  Ring() = default;
  Ring(const Ring &) = delete;
  Ring &operator=(const Ring &) = delete;
  ~Ring() { release(); }
  void create(const Allocator &a) { allocator_ = a; }

  size_t size() const { return size_; }
  uint8_t operator[](size_t at) const { return data_[place(at)]; }
  // reserve allocates memory for n more bytes and reports whether it succeeded.
  bool reserve(size_t n) {
    if (size_ + n <= capacity_) return true;
    const size_t capacity = std::max(size_ + n, std::max(2 * capacity_, kept));
    auto *to = static_cast<uint8_t *>(allocate(allocator_, capacity));
    if (to == nullptr) return false;
    const size_t n_before = size_;
    read(0, to, n_before);
    release();
    data_ = to;
    capacity_ = capacity;
    size_ = n_before;
    return true;
  }
  // push appends bytes. reserve must have made room for them.
  void push(Bytes b) {
    if (b.size == 0) return;
    const size_t at = place(size_), first = std::min(b.size, capacity_ - at);
    copy(data_ + at, b.data, first);
    copy(data_, b.data + first, b.size - first);
    size_ += b.size;
  }
  // read copies n bytes from the position at.
  void read(size_t at, uint8_t *to, size_t n) const {
    if (n == 0) return;
    const size_t from = place(at), first = std::min(n, capacity_ - from);
    copy(to, data_ + from, first);
    copy(to + first, data_, n - first);
  }
  // pop removes the first n bytes.
  void pop(size_t n) {
    if (n == 0) return;
    start_ = place(n);
    size_ -= n;
    if (size_ == 0 && capacity_ > kept) release();
  }
  void clear() { pop(size_); }

private:
  size_t place(size_t at) const {
    const size_t p = start_ + at;
    return p < capacity_ ? p : p - capacity_;
  }
  void release() {
    if (data_ != nullptr) detail::release(allocator_, data_);
    data_ = nullptr;
    capacity_ = start_ = size_ = 0;
  }

  Allocator allocator_;
  uint8_t *data_ = nullptr;
  size_t capacity_ = 0, start_ = 0, size_ = 0;
};

} // namespace uplink::detail::client
