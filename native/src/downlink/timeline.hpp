// The playback clock of an interpolator. docs/interpolation.md. It has no wire format.
#pragma once

#include <algorithm>

#include "src/base/memory.hpp"
#include "uplink/clock.hpp"
#include "uplink/interpolate.hpp"

namespace uplink::detail::downlink {

// Window contains the delays of the last length ns, sorted both by age and by size.
class Window {
public:
  bool create(const Allocator &a) { return recent_.create(a, size) && sorted_.create(a, size); }
  void clear() { n_ = 0; }
  size_t count() const { return n_; }
  void add(int64_t at, int64_t value);
  // quantile returns the lowest value that at most a share of the values exceeds.
  int64_t quantile(double share) const {
    return sorted_[n_ - 1 - static_cast<size_t>(share * static_cast<double>(n_))];
  }

private:
  static constexpr size_t size = 1024;
  static constexpr int64_t length = 30000000000; // ns

  struct Timed {
    int64_t at, value;
  };
  Array<Timed> recent_; // ring buffer
  Array<int64_t> sorted_;
  size_t first_ = 0, n_ = 0;
};

// Timeline maps the client's time to the server's time to show. Times are ns.
class Timeline {
public:
  Window needed; // delays that would have sufficed for recent snapshots

  void configure(const InterpolatorConfig &c) {
    config_ = c;
    line_ = Line(static_cast<int64_t>(c.interval));
  }
  // arrive records the arrival of a snapshot, and reports whether the clock restarts with it.
  bool arrive(int64_t now, int64_t time);
  int64_t play(int64_t now);
  int64_t delay() const;
  double rate() const { return static_cast<double>(line_.rate()) / static_cast<double>(Line::one); }
  void reset();

private:
  void restart();

  InterpolatorConfig config_;
  bool started_ = false;
  int64_t newest_ = 0, arrived_ = 0, offset_ = 0;
  Line line_;
  Playback playback_;
};

} // namespace uplink::detail::downlink
