// The queue of events.
#pragma once

#include "src/base/memory.hpp"
#include "src/client/bytes.hpp"
#include "uplink/client.hpp"

namespace uplink::detail::client {

// Events stores events and their data in memory of constant size.
class Events {
public:
  // reserve is the number of bytes reserved for events without data of the game.
  static constexpr size_t reserve = 2048;

  bool create(const Allocator &a, size_t size) { return memory_.create(a, size); }
  void clear() { begin_ = end_ = 0; }
  // room returns the maximum size in bytes of data of the game in the next event.
  size_t room() const {
    const size_t left = memory_.size() - (end_ - begin_);
    return left > reserve + sizeof(Event) ? left - reserve - sizeof(Event) : 0;
  }
  // prepare returns memory for the data of the next event, or null if there is no room. The caller
  // may write the data, or a part of it, there before push.
  uint8_t *prepare(size_t size) {
    const size_t n = sizeof(Event) + size;
    if (n > memory_.size() - (end_ - begin_)) return nullptr;
    if (n > memory_.size() - end_) {
      std::memmove(memory_.data(), memory_.data() + begin_, end_ - begin_);
      end_ -= begin_;
      begin_ = 0;
    }
    return memory_.data() + end_ + sizeof(Event);
  }
  // push copies an event and its data. It reports whether there was room.
  bool push(const Event &e) {
    uint8_t *to = prepare(e.data.size);
    if (to == nullptr) return false;
    if (e.data.size > 0) std::memmove(to, e.data.data, e.data.size);
    copy(memory_.data() + end_, &e, sizeof(e));
    end_ += sizeof(e) + e.data.size;
    return true;
  }
  bool pop(Event *e) {
    if (begin_ == end_) return false;
    std::memcpy(static_cast<void *>(e), memory_.data() + begin_, sizeof(*e));
    e->data.data = memory_.data() + begin_ + sizeof(*e);
    begin_ += sizeof(*e) + e->data.size;
    if (begin_ == end_) begin_ = end_ = 0;
    return true;
  }

private:
  Array<uint8_t> memory_;
  size_t begin_ = 0, end_ = 0;
};

} // namespace uplink::detail::client
