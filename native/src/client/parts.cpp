#include "src/client/parts.hpp"

#include <algorithm>

namespace uplink::detail::client {

Assembly::Body *Assembly::find(uint64_t first, const DatagramPart &p) {
  Body *to = nullptr;
  for (Body &b : bodies_) {
    if (b.count != 0 && b.first == first) return &b;
    // Uses a free entry or, if there is none, the oldest entry.
    if (to == nullptr || (to->count != 0 && (b.count == 0 || b.first < to->first))) to = &b;
  }
  if (to == nullptr || (to->count != 0 && to->first > first)) return nullptr;
  to->first = first;
  to->reliable = p.reliable;
  to->count = p.count;
  to->size = to->bytes = 0;
  to->arrived = 0;
  return to;
}

const Assembly::Body *Assembly::add(uint64_t number, Bytes part) {
  DatagramPart p;
  if (!parse_part(part, &p) || number < p.index) return nullptr;
  if (bodies_.size() == 0 && !bodies_.create(allocator_, max_bodies)) return nullptr;
  Body *b = find(number - p.index, p);
  if (b == nullptr || b->reliable != p.reliable || b->count != p.count || (b->arrived >> p.index & 1) != 0)
    return nullptr;
  copy(b->data + p.offset, p.data.data, p.data.size);
  b->size = static_cast<uint16_t>(std::max<size_t>(b->size, p.offset + p.data.size));
  b->bytes = static_cast<uint16_t>(b->bytes + p.data.size);
  b->arrived = static_cast<uint8_t>(b->arrived | 1U << p.index);
  if (b->arrived != (1U << b->count) - 1) return nullptr;
  b->count = 0;
  return b->bytes == b->size ? b : nullptr;
}

void Splitter::start(uint8_t kind, Bytes body, size_t room) {
  reliable_ = kind == reliable;
  size_ = static_cast<uint16_t>(body.size);
  count_ = static_cast<uint8_t>((body.size + room - 1) / room);
  index_ = 0;
  at_ = 0;
  copy(data_, body.data, body.size);
}

size_t Splitter::next(uint8_t *to) {
  const size_t end = size_t{size_} * (index_ + 1U) / count_;
  DatagramPart p;
  p.reliable = reliable_;
  p.count = count_;
  p.index = index_++;
  p.offset = at_;
  p.data = {data_ + at_, end - at_};
  at_ = static_cast<uint16_t>(end);
  return format_part(to, p);
}

} // namespace uplink::detail::client
