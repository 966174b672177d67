// Contexts and numbers of coded parts. docs/spec/snapshots.md, 4 and 5.
#include <algorithm>

#include "src/downlink/part.hpp"
#include "src/downlink/tables.hpp"

namespace uplink::detail::downlink {
namespace {

constexpr size_t number_size = 4 * integer_size, quat_size = 322 + 2 * integer_size, flag_size = 130;
constexpr size_t bytes_size = 5, same_size = 64, object_size = 1065;
constexpr uint16_t even = 32770;

int middle(int level) {
  return (level + 1) / 3;
}

size_t size_of(const RowField &f) {
  switch (f.type) {
  case ObjectClass::number:
    return number_size;
  case ObjectClass::angle:
    return integer_size;
  case ObjectClass::quat:
    return quat_size;
  case ObjectClass::integer:
    return flag_size;
  case ObjectClass::bytes:
    return bytes_size;
  }
  return 0;
}

} // namespace

bool ObjectCoder::create(const Allocator &a, const TypeImpl &t) {
  type_ = &t;
  allocator_ = a;
  size_t n = object_size;
  for (size_t i = 0; i < t.fields_n; i++) n += size_of(t.fields[i]) + same_size;
  if (!contexts_.create(a, n)) return false;
  uint16_t *at = contexts_.data();
  const auto take = [&](size_t size) {
    at += size;
    return at - size;
  };
  for (size_t i = 0; i < t.fields_n; i++) {
    of_field_[i] = take(size_of(t.fields[i]));
    same_[i] = take(same_size);
  }
  changed_ = take(256);
  disturbed_ = take(512);
  how_ = take(256);
  quiet_ = take(3);
  removed_ = take(2);
  added_ = take(12);
  gap_ = take(12);
  physics_ = take(12);
  return true;
}

void ObjectCoder::start_contexts() {
  for (size_t i = 0; i < type_->fields_n; i++) {
    const RowField &f = type_->fields[i];
    const size_t further = f.number == 0 ? 0 : 1;
    const uint16_t *start = nullptr, *same = nullptr;
    switch (f.type) {
    case ObjectClass::number:
      start = number_start[model_][further];
      same = same_start[model_][1 + further];
      break;
    case ObjectClass::angle:
      start = angle_start;
      break;
    case ObjectClass::quat:
      start = quat_start[model_];
      same = same_start[model_][0];
      break;
    case ObjectClass::integer:
      start = integer_start[model_];
      same = same_start[model_][3];
      break;
    case ObjectClass::bytes:
      break;
    }
    if (start != nullptr)
      std::memcpy(of_field_[i], start, size_of(f) * sizeof(uint16_t));
    else
      std::fill(of_field_[i], of_field_[i] + size_of(f), even);
    if (same != nullptr)
      std::memcpy(same_[i], same, same_size * sizeof(uint16_t));
    else
      std::fill(same_[i], same_[i] + same_size, even);
  }
  std::memcpy(changed_, object_start[model_], object_size * sizeof(uint16_t));
}

uint64_t ObjectCoder::begin(Bytes coded, bool has_step) {
  in_.begin(coded.data, coded.size, 0);
  bad_ = false;
  step_ = 0;
  const auto decide = [&](uint32_t chance_of_1) { return in_.decide(65536 - chance_of_1); };
  if (has_step && !decide(2048)) {
    step_ = 1;
    if (decide(4096)) {
      step_ = 2;
      if (decide(32768)) step_ = decide(32768) ? 4 : 3;
    }
  }
  return step_;
}

bool ObjectCoder::bit(uint16_t *context) {
  const int p = *context & ~7, r = *context & 7;
  const bool b = in_.decide(static_cast<uint32_t>(65536 - p));
  const int to = b ? 65520 : 16;
  *context = static_cast<uint16_t>(((p + ((to - p) >> (r + 2))) & ~7) | r);
  return b;
}

int ObjectCoder::length(uint16_t *c, int middle) {
  int n = middle;
  if (bit(c + 5)) {
    n++;
    while (n < 32 && bit(c + 5 + std::min(n - middle, 6))) n++;
    return n;
  }
  while (n > 0 && !bit(c + (5 - std::min(middle - n + 1, 5)))) n--;
  return n;
}

Int ObjectCoder::integer(uint16_t *c, Int level, Int sign) {
  const int mid = middle(static_cast<int>(level.v));
  const int n = length(c + 12 * level.index(), mid);
  if (n == 0) return 0;
  const bool negative = bit(c + 480 + sign.index());
  uint64_t m = 1;
  if (n > 1) {
    uint16_t *first = c + 633 + 4 * std::clamp(n - mid + 8, 0, 15);
    int left = n - 1;
    for (; left > 0 && m < 4; left--) m = m << 1 | static_cast<uint64_t>(bit(first + m));
    if (left > 0) m = m << left | in_.raw(static_cast<unsigned>(left));
  }
  return negative ? -wrapped(m) : wrapped(m);
}

uint64_t ObjectCoder::count(uint16_t *c, int level) {
  const int n = length(c, middle(level));
  if (n < 2) return static_cast<uint64_t>(n);
  return uint64_t{1} << (n - 1) | in_.raw(static_cast<unsigned>(n - 1));
}

int32_t ObjectCoder::uniform(int32_t lo, int32_t hi) {
  const uint32_t span = static_cast<uint32_t>(hi) - static_cast<uint32_t>(lo);
  const int64_t v = lo + static_cast<int64_t>(in_.raw(static_cast<unsigned>(bit_length(span))));
  if (v > hi) {
    bad_ = true;
    return lo;
  }
  return static_cast<int32_t>(v);
}

Int ObjectCoder::component(uint16_t *c, Int level, Int sign, Int guess, const RowField &f, int32_t *to) {
  Int v = (guess + 8) >> 4;
  if (level < 9) sign = 81 + (level / 3 * 8 + (guess - v * 16 + 8) / 2) * 3 + (sign - sign / 3 * 3);
  v = v + integer(c, level, sign);
  if (v < f.lo || v > f.hi) {
    bad_ = true;
    v = f.lo;
  }
  *to = static_cast<int32_t>(v.v);
  return v * 16 - guess;
}

} // namespace uplink::detail::downlink
