// Little-endian integers, and a bounded reader and writer of bytes.
#pragma once

#include <cstring>

#include "uplink/base.hpp"

namespace uplink::detail::client {

inline uint64_t load_little(const uint8_t *b, size_t n) {
  uint64_t v = 0;
  for (size_t i = n; i > 0; i--) v = v << 8 | b[i - 1];
  return v;
}
inline void store_little(uint8_t *b, size_t n, uint64_t v) {
  for (size_t i = 0; i < n; i++) b[i] = static_cast<uint8_t>(v >> 8 * i);
}
inline uint64_t load_big(const uint8_t *b, size_t n) {
  uint64_t v = 0;
  for (size_t i = 0; i < n; i++) v = v << 8 | b[i];
  return v;
}
inline void store_big(uint8_t *b, size_t n, uint64_t v) {
  for (size_t i = 0; i < n; i++) b[i] = static_cast<uint8_t>(v >> 8 * (n - 1 - i));
}
inline void copy(void *to, const void *from, size_t n) {
  if (n > 0) std::memcpy(to, from, n);
}
inline bool equal(Bytes a, Bytes b) {
  return a.size == b.size && (a.size == 0 || std::memcmp(a.data, b.data, a.size) == 0);
}

// Reader reads from bytes. After a read beyond the end, ok is false and all results are 0.
class Reader {
public:
  explicit Reader(Bytes b) : b_(b) {}
  bool ok() const { return ok_; }
  size_t left() const { return b_.size - at_; }
  Bytes bytes(size_t n) {
    if (n > left()) {
      ok_ = false;
      at_ = b_.size;
      return {};
    }
    at_ += n;
    return {b_.data + (at_ - n), n};
  }
  // copy reads n bytes to memory, or zeros beyond the end.
  void copy(void *to, size_t n) {
    const Bytes v = bytes(n);
    if (v.size == n)
      client::copy(to, v.data, n);
    else
      std::memset(to, 0, n);
  }
  Bytes rest() { return bytes(left()); }
  uint64_t little(size_t n) {
    Bytes v = bytes(n);
    return load_little(v.data, v.size);
  }
  uint64_t big(size_t n) {
    Bytes v = bytes(n);
    return load_big(v.data, v.size);
  }
  uint64_t varint() {
    uint64_t v = 0;
    for (unsigned i = 0; i < 10; i++) {
      uint64_t c = little(1);
      if (i == 9 && c > 1) break;
      v |= (c & 0x7f) << 7 * i;
      if (c < 0x80) return ok_ ? v : 0;
    }
    ok_ = false;
    return 0;
  }

private:
  Bytes b_;
  size_t at_ = 0;
  bool ok_ = true;
};

// ByteWriter writes to a buffer. Beyond its end, ok is false and nothing is written.
class ByteWriter {
public:
  explicit ByteWriter(Buffer b) : b_(b) {}
  bool ok() const { return ok_; }
  size_t size() const { return at_; }
  uint8_t *bytes(size_t n) {
    if (!ok_ || n > b_.capacity - at_) {
      ok_ = false;
      return nullptr;
    }
    at_ += n;
    return b_.data + (at_ - n);
  }
  void bytes(Bytes v) {
    if (uint8_t *to = bytes(v.size); to != nullptr) copy(to, v.data, v.size);
  }
  void little(uint64_t v, size_t n) {
    if (uint8_t *to = bytes(n); to != nullptr) store_little(to, n, v);
  }
  void big(uint64_t v, size_t n) {
    if (uint8_t *to = bytes(n); to != nullptr) store_big(to, n, v);
  }
  void zeros(size_t n) {
    if (uint8_t *to = bytes(n); to != nullptr && n > 0) std::memset(to, 0, n);
  }
  void varint(uint64_t v) {
    for (; v >= 0x80; v >>= 7) little((v & 0x7f) | 0x80, 1);
    little(v, 1);
  }

private:
  Buffer b_;
  size_t at_ = 0;
  bool ok_ = true;
};

} // namespace uplink::detail::client
