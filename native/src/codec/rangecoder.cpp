#include "src/codec/rangecoder.hpp"

namespace uplink::detail {

void RangeEncoder::emit() {
  for (int shift = 56; shift >= 32; shift -= 8) write(static_cast<uint8_t>(low_ >> shift));
  low_ <<= 32;
  range_ <<= 32;
}

size_t RangeEncoder::finish() {
  for (int k = 0; k <= 8; k++) {
    uint64_t low_bits = k == 0 ? UINT64_MAX : k == 8 ? 0 : UINT64_MAX >> (8 * k);
    uint64_t v = (low_ + low_bits) & ~low_bits; // modulo 2^64
    if (v - low_ >= range_) continue;
    if (v < low_) carry();
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
  for (int i = 0; i < 4; i++) code_ = code_ << 8 | next();
  range_ <<= 32;
}

unsigned RangeDecoder::symbol(const uint16_t *cumulative) {
  uint64_t r = range_ >> 16, x = code_ / r;
  if (x > 65535) x = 65535;
  unsigned s = 0;
  for (unsigned step = 32; step > 0; step /= 2) {
    if (cumulative[s + step] <= x) s += step;
  }
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
