// Integers, bits and varints in bytes, the same on every processor.
#pragma once

#include <cstddef>
#include <cstdint>

namespace uplink::detail {

inline uint16_t load16(const uint8_t *p) {
  return static_cast<uint16_t>(p[0] | p[1] << 8);
}

inline void store16(uint8_t *p, uint16_t v) {
  p[0] = static_cast<uint8_t>(v);
  p[1] = static_cast<uint8_t>(v >> 8);
}

inline uint64_t load64(const uint8_t *p) {
  uint64_t v = 0;
  for (int i = 7; i >= 0; i--) v = v << 8 | p[i];
  return v;
}

// highest_bit returns the index of the highest set bit of v; v is not 0.
constexpr int highest_bit(uint64_t v) {
#if defined(__GNUC__)
  return 63 - __builtin_clzll(v);
#else
  int n = 0;
  while ((v >>= 1) != 0) n++;
  return n;
#endif
}

// bit_length returns the number of bits of v without leading zeros.
inline int bit_length(uint64_t v) {
  return v == 0 ? 0 : highest_bit(v) + 1;
}

// fnv is FNV-1a of 64 bits, over numbers or bytes.
class Fnv {
public:
  void put(uint64_t v) { hash_ = (hash_ ^ v) * UINT64_C(1099511628211); }
  void put(const char *text) {
    for (; *text != 0; text++) put(static_cast<uint8_t>(*text));
  }
  uint64_t sum() const { return hash_; }

private:
  uint64_t hash_ = UINT64_C(14695981039346656037);
};

// fold returns the four parts of 16 bits, XORed together.
inline uint16_t fold(uint64_t h) {
  return static_cast<uint16_t>(h ^ h >> 16 ^ h >> 32 ^ h >> 48);
}

// Writer appends to a buffer of fixed size. A write beyond its end sets failed.
class Writer {
public:
  Writer(uint8_t *data, size_t capacity) : data_(data), capacity_(capacity) {}

  void byte(uint8_t b) {
    if (size_ < capacity_)
      data_[size_++] = b;
    else
      failed_ = true;
  }
  void varint(uint64_t v) {
    for (; v >= 0x80; v >>= 7) byte(static_cast<uint8_t>(v | 0x80));
    byte(static_cast<uint8_t>(v));
  }
  uint8_t *data() { return data_; }
  size_t size() const { return size_; }
  size_t capacity() const { return capacity_; }
  bool failed() const { return failed_; }

private:
  uint8_t *data_;
  size_t capacity_;
  size_t size_ = 0;
  bool failed_ = false;
};

// BitWriter writes numbers of up to 40 bits, from the least significant bit of each byte.
class BitWriter {
public:
  explicit BitWriter(Writer &out) : out_(out) {}

  void bits(uint64_t v, int n) {
    pending_ |= (v & ((UINT64_C(1) << n) - 1)) << held_;
    for (held_ += n; held_ >= 8; held_ -= 8) {
      out_.byte(static_cast<uint8_t>(pending_));
      pending_ >>= 8;
    }
  }
  // flush fills the last byte with zeros.
  void flush() {
    if (held_ > 0) bits(0, 8 - held_);
  }

private:
  Writer &out_;
  uint64_t pending_ = 0;
  int held_ = 0;
};

// BitReader is the counterpart of BitWriter. A read beyond the end sets failed.
class BitReader {
public:
  BitReader(const uint8_t *data, size_t size) : data_(data), size_(size) {}

  uint64_t bits(int n) {
    while (held_ < n) {
      if (at_ == size_) {
        failed_ = true;
        return 0;
      }
      pending_ |= static_cast<uint64_t>(data_[at_++]) << held_;
      held_ += 8;
    }
    uint64_t v = pending_ & ((UINT64_C(1) << n) - 1);
    pending_ >>= n;
    held_ -= n;
    return v;
  }
  // rest skips to the next byte boundary, and reports whether the skipped bits are 0. at is then
  // the number of bytes read.
  bool rest() {
    bool zero = pending_ == 0;
    pending_ = 0;
    held_ = 0;
    return zero;
  }
  size_t at() const { return at_; }
  bool failed() const { return failed_; }

private:
  const uint8_t *data_;
  size_t size_;
  size_t at_ = 0;
  uint64_t pending_ = 0;
  int held_ = 0;
  bool failed_ = false;
};

} // namespace uplink::detail
