// Search for the nearest moving object. docs/spec/snapshots.md, 8.
#pragma once

#include "src/base/memory.hpp"
#include "src/downlink/integer.hpp"

namespace uplink::detail::downlink {

// Grid finds the minimum of a quarter of the squared distances within reach.
class Grid {
public:
  // create makes room for n objects.
  bool create(const Allocator &a, size_t n);
  void start() {
    n_ = 0;
    searching_ = listed_ = false;
  }
  void add(const Int (&position)[3]);
  // search prepares for calls of closest.
  void search(Int reach);
  Int closest(const Int (&position)[3]) const;

private:
  void list();
  void enter(size_t i);
  Int quarter(size_t i, const Int (&p)[3]) const;

  struct Position {
    Int at[3];
  };
  Array<Position> at_;
  Array<uint32_t> next_;  // 1 + index of the next object in its list
  Array<uint32_t> heads_; // 1 + index of the first object of a list
  size_t n_ = 0;
  int bits_ = 0;
  Int reach_, inverse_;
  bool searching_ = false, listed_ = false;
};

} // namespace uplink::detail::downlink
