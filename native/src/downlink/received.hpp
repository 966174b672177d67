// State about received messages that the decoders of both formats share. docs/spec/snapshots.md, 13
// and 14.
#pragma once

#include "src/codec/header.hpp"
#include "uplink/base.hpp"

namespace uplink::detail::downlink {

constexpr uint64_t ring = 64; // number of stored messages
constexpr uint64_t max_distance = 62;

// unwrap returns the number with the given low bits.
inline uint64_t unwrap(uint64_t low, int bits, uint64_t next) {
  const uint64_t size = uint64_t{1} << bits, behind = bits == 16 ? 256 : 512;
  const uint64_t distance = (next - low) & (size - 1);
  return distance > behind || distance > next ? next + size - distance : next - distance;
}

// Received are the numbers of decoded messages, and the state of resets.
class Received {
public:
  uint64_t next = 0;  // newest number plus one
  uint64_t floor = 0; // newest baseline
  uint64_t first = 0; // number of the requested message without a baseline
  bool no_initial = false;

  bool has(uint64_t n) const {
    if (!any_ || n > newest_) return false;
    return n == newest_ || (newest_ - n <= 64 && (bits_ >> (newest_ - n - 1) & 1) != 0);
  }
  // is_old reports whether a message is too late, or was decoded before.
  bool is_old(uint64_t n) const { return n + ring < next || has(n); }

  Error missing() {
    request_reset();
    return Error::no_baseline;
  }
  Error desync() {
    request_reset();
    any_ = false;
    newest_ = bits_ = 0;
    return Error::desync;
  }
  // count counts malformed messages. Many of them indicate that the encoder uses other baselines.
  void count(Error e) {
    if (e != Error::malformed) return;
    if (++malformed_ < 8) return;
    malformed_ = 0;
    request_reset();
  }
  void add(uint64_t n, bool has_baseline) {
    malformed_ = 0;
    if (!any_ || n > newest_) {
      const uint64_t step = any_ ? n - newest_ : 0;
      if (step > 0) bits_ = (step > 63 ? 0 : bits_ << step) | (step > 64 ? 0 : uint64_t{1} << (step - 1));
      any_ = true;
      newest_ = n;
    } else if (n < newest_ && newest_ - n <= 64) {
      bits_ |= uint64_t{1} << (newest_ - n - 1);
    }
    if (n >= next) next = n + 1;
    if (has_baseline || !waiting_) return;
    waiting_ = false;
    first = n;
  }

  size_t ack(uint8_t *to) const {
    AckForm a;
    a.request = no_initial ? 1 : 0;
    a.epoch = epoch_;
    a.none = !any_;
    if (any_) {
      // An ack covers at most 63 messages before the newest one.
      a.newest = static_cast<uint16_t>(newest_);
      a.whole = true;
      a.window = bits_ & UINT64_MAX >> 1;
      a.length = static_cast<uint8_t>(bit_length(a.window));
    }
    return write_ack(a, to);
  }

private:
  void request_reset() {
    if (waiting_) return;
    epoch_++;
    waiting_ = true;
  }

  bool any_ = false;
  uint64_t newest_ = 0, bits_ = 0;
  uint8_t epoch_ = 0;
  bool waiting_ = false;
  int malformed_ = 0; // consecutive malformed messages
};

} // namespace uplink::detail::downlink
