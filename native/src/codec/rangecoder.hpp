// The range coder of docs/spec/adaptive.md, 2.
#pragma once

#include <cstddef>
#include <cstdint>

namespace uplink::detail {

// RangeEncoder writes decisions, symbols and raw bits to a buffer.
class RangeEncoder {
public:
  // begin starts after size bytes of a buffer. Free low bits of the last of these bytes become part
  // of the code.
  void begin(uint8_t *out, size_t size, size_t capacity, int free_bits) {
    out_ = out;
    capacity_ = capacity;
    failed_ = false;
    low_ = over_ = 0;
    range_ = UINT64_MAX;
    header_ = free_bits > 0;
    if (header_) {
      size--;
      low_ = static_cast<uint64_t>(out[size]) << 56;
      range_ = UINT64_C(1) << (56 + free_bits);
    }
    start_ = size_ = size;
  }

  void decide(bool b, uint32_t chance_of_0) {
    uint64_t t = (range_ >> 16) * chance_of_0, mask = 0 - static_cast<uint64_t>(b);
    add(t & mask);
    range_ = t + ((range_ - t - t) & mask);
    renormalize();
  }

  // symbol codes s by its cumulative frequencies: cumulative[s] to cumulative[s + 1], modulo 2^16.
  void symbol(const uint16_t *cumulative, unsigned s) {
    uint64_t r = range_ >> 16;
    add(r * cumulative[s]);
    range_ = r * static_cast<uint16_t>(cumulative[s + 1] - cumulative[s]);
    renormalize();
  }

  void raw(uint64_t v, unsigned n) {
    while (n > 0) {
      unsigned k = n < 16 ? n : 16;
      n -= k;
      range_ >>= k;
      add(range_ * ((v >> (n & 63)) & ((UINT64_C(1) << k) - 1)));
      renormalize();
    }
  }

  // finish returns the number of bytes in the buffer; 0 if the buffer is too small.
  size_t finish();

private:
  void add(uint64_t x) {
    low_ += x;
    over_ += low_ < x ? 1 : 0;
  }
  void renormalize() {
    if (range_ >> 32 == 0) output();
  }
  void output();
  void carry();
  void write(uint8_t b) {
    if (size_ < capacity_)
      out_[size_++] = b;
    else
      failed_ = true;
  }

  uint64_t low_ = 0;
  // Carry: 1 if low overflowed since bytes were written, so these must be incremented by one.
  uint64_t over_ = 0;
  uint64_t range_ = 0;
  uint8_t *out_ = nullptr;
  size_t size_ = 0;
  size_t start_ = 0;
  size_t capacity_ = 0;
  bool header_ = false; // the byte at start_ also contains a part of the header
  bool failed_ = false;
};

// RangeDecoder is the counterpart of RangeEncoder. It accepts any bytes. finish reports whether an
// encoder can have written them.
class RangeDecoder {
public:
  // begin reads from data. If free_bits is not 0, the code begins in the free_bits low bits of the
  // first byte.
  void begin(const uint8_t *data, size_t size, int free_bits);

  bool decide(uint32_t chance_of_0) {
    uint64_t t = (range_ >> 16) * chance_of_0;
    bool b = code_ >= t;
    uint64_t mask = 0 - static_cast<uint64_t>(b);
    code_ -= t & mask;
    range_ = t + ((range_ - t - t) & mask);
    renormalize();
    return b;
  }

  unsigned symbol(const uint16_t *cumulative);
  uint64_t raw(unsigned n);

  bool failed() const { return failed_; }
  // finish reports whether the input was used completely and is canonical.
  bool finish() const;

private:
  void check() {
    if (code_ >= range_) {
      code_ = range_ - 1;
      failed_ = true;
    }
  }
  void renormalize() {
    if (range_ >> 32 == 0) fill();
  }
  void fill();
  uint64_t next() { return pos_ < size_ ? data_[pos_++] : (pos_++, 0); }

  uint64_t code_ = 0;
  uint64_t range_ = 0;
  const uint8_t *data_ = nullptr;
  size_t size_ = 0;
  size_t pos_ = 0;
  bool header_ = false;
  bool failed_ = false;
};

} // namespace uplink::detail
