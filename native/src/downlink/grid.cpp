#include "src/downlink/grid.hpp"

#include <algorithm>

namespace uplink::detail::downlink {
namespace {

constexpr size_t max_unlisted = 6, max_scan = 64;
constexpr uint64_t hash_factors[3] = {0xd1b54a32d192ed03, 0xabc98388fb8fac03, 0x8cb92ba72f3d8dd7};

} // namespace

bool Grid::create(const Allocator &a, size_t n) {
  // A table has up to 2^(bit_length(n) + 1) lists.
  return at_.create(a, n) && next_.create(a, n) &&
         heads_.create(a, size_t{1} << std::max(bit_length(n) + 1, 5));
}

void Grid::add(const Int (&p)[3]) {
  for (int k = 0; k < 3; k++) at_[n_].at[k] = p[k];
  n_++;
  if (listed_)
    enter(n_ - 1);
  else if (searching_ && n_ > max_unlisted)
    list();
}

void Grid::search(Int reach) {
  reach_ = reach;
  inverse_ = Int{1 << 24} / (root(reach * 4) + 1);
  searching_ = true;
  if (n_ > max_unlisted) list();
}

void Grid::list() {
  listed_ = true;
  bits_ = std::max(bit_length(n_) + 1, 5);
  std::fill(heads_.begin(), heads_.begin() + (ptrdiff_t{1} << bits_), 0U);
  for (size_t i = 0; i < n_; i++) enter(i);
}

void Grid::enter(size_t i) {
  uint64_t h = 0;
  for (size_t k = 0; k < 3; k++) h += bits_of(at_[i].at[k] * inverse_ >> 25) * hash_factors[k];
  uint32_t &head = heads_[static_cast<size_t>(h >> (64 - bits_))];
  next_[i] = head;
  head = static_cast<uint32_t>(i + 1);
}

Int Grid::quarter(size_t i, const Int (&p)[3]) const {
  Int sum = 0;
  for (int k = 0; k < 3; k++) {
    const Int d = at_[i].at[k] - p[k];
    sum += d * d;
  }
  return sum >> 2;
}

Int Grid::closest(const Int (&p)[3]) const {
  Int result = reach_;
  if (!listed_) {
    for (size_t i = 0; i < n_; i++) result = least(result, quarter(i, p));
    return result;
  }
  uint64_t lowest = 0;
  for (size_t k = 0; k < 3; k++) lowest += bits_of(((p[k] * inverse_ >> 24) - 1) >> 1) * hash_factors[k];
  size_t scanned = 0;
  for (unsigned c = 0; c < 8; c++) {
    const uint64_t h =
        lowest + (c & 1) * hash_factors[0] + (c >> 1 & 1) * hash_factors[1] + (c >> 2 & 1) * hash_factors[2];
    for (uint32_t i = heads_[static_cast<size_t>(h >> (64 - bits_))]; i != 0; i = next_[i - 1]) {
      result = least(result, quarter(i - 1, p));
      if (++scanned == max_scan) return result;
    }
  }
  return result;
}

} // namespace uplink::detail::downlink
