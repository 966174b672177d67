#include "src/codec/rangecoder.hpp"

namespace uplink::detail {

void RangeEncoder::carry() {
  if (over_ == 0 || failed_) return;
  over_ = 0;
  for (size_t i = size_; i > start_;) {
    if (++out_[--i] != 0) return;
  }
}

void RangeEncoder::output() {
  carry();
  if (capacity_ - size_ >= 4) {
    for (size_t i = 0; i < 4; i++) out_[size_ + i] = static_cast<uint8_t>(low_ >> (56 - 8 * i));
    size_ += 4;
  } else {
    failed_ = true;
  }
  low_ <<= 32;
  range_ <<= 32;
}

size_t RangeEncoder::finish() {
  for (int k = 0; k <= 8; k++) {
    uint64_t low_bits = k == 0 ? UINT64_MAX : k == 8 ? 0 : UINT64_MAX >> (8 * k);
    uint64_t v = (low_ + low_bits) & ~low_bits; // modulo 2^64
    if (v - low_ >= range_) continue;
    over_ += v < low_ ? 1 : 0;
    carry();
    for (int i = 0; i < k; i++) write(static_cast<uint8_t>(v >> (56 - 8 * i)));
    break;
  }
  if (failed_) return 0;
  size_t least = start_ + (header_ ? 1 : 0);
  while (size_ > least && out_[size_ - 1] == 0) size_--;
  if (size_ < least) write(0);
  return failed_ ? 0 : size_;
}

void RangeDecoder::begin(const uint8_t *data, size_t size, int free_bits) {
  data_ = data;
  size_ = size;
  pos_ = 0;
  failed_ = false;
  header_ = free_bits > 0;
  range_ = UINT64_MAX;
  code_ = 0;
  for (int i = 0; i < 8; i++) code_ = code_ << 8 | next();
  if (header_) {
    range_ = UINT64_C(1) << (56 + free_bits);
    code_ &= range_ - 1;
  }
  check();
}

void RangeDecoder::fill() {
  uint64_t v = 0;
  if (size_ >= 4 && pos_ <= size_ - 4) {
    const uint8_t *from = data_ + pos_;
    v = static_cast<uint64_t>(from[0]) << 24 | static_cast<uint64_t>(from[1]) << 16 |
        static_cast<uint64_t>(from[2]) << 8 | from[3];
    pos_ += 4;
  } else {
    for (int i = 0; i < 4; i++) v = v << 8 | next();
  }
  code_ = code_ << 32 | v;
  range_ <<= 32;
}

unsigned RangeDecoder::symbol(const uint16_t *cumulative) {
  uint64_t r = range_ >> 16, x = code_ / r;
  if (x > 65535) x = 65535;
  // Bisects without branches, which would be hard to predict.
  const uint16_t *at = cumulative;
  for (size_t step = 16; step > 0; step /= 4)
    at += step * (static_cast<size_t>(at[step] <= x) + static_cast<size_t>(at[2 * step] <= x) +
                  static_cast<size_t>(at[3 * step] <= x));
  unsigned s = static_cast<unsigned>(at - cumulative);
  code_ -= r * cumulative[s];
  range_ = r * static_cast<uint16_t>(cumulative[s + 1] - cumulative[s]);
  check();
  renormalize();
  return s;
}

uint64_t RangeDecoder::raw(unsigned n) {
  uint64_t v = 0;
  while (n > 0) {
    unsigned k = n < 16 ? n : 16;
    n -= k;
    range_ >>= k;
    uint64_t x = code_ / range_, most = (UINT64_C(1) << k) - 1;
    if (x > most) x = most;
    code_ -= x * range_;
    check();
    renormalize();
    v = v << k | x;
  }
  return v;
}

bool RangeDecoder::finish() const {
  if (failed_ || size_ > pos_) return false;
  if (size_ > (header_ ? 1u : 0u) && data_[size_ - 1] == 0) return false;
  size_t missing = pos_ - size_;
  return missing >= 8 || code_ >> (8 * missing) == 0;
}

} // namespace uplink::detail
