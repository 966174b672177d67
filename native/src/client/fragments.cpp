#include "src/client/fragments.hpp"

namespace uplink::detail::client {

void Assembler::reset() {
  any_ = false;
  for (Message &m : messages_) m.used = false;
}

Error Assembler::add(const Allocator &a, Bytes fragment, Bytes *message) {
  *message = {};
  Reader r(fragment);
  const uint16_t number = static_cast<uint16_t>(r.little(2));
  const size_t index = static_cast<size_t>(r.little(1)), count = static_cast<size_t>(r.little(1)) + 1;
  const Bytes body = r.rest();
  if (!r.ok() || body.size == 0 || count < 2 || count > 64 || index >= count || body.size > part ||
      (body.size < part && index + 1 != count))
    return Error::malformed;
  const uint16_t behind = static_cast<uint16_t>(newest_ - number);
  const bool newer = !any_ || behind >= 0x8000;
  if (!newer && behind >= window) return Error::stale;
  Message &m = messages_[number % window];
  if (!m.used || m.number != number) {
    if (m.bytes.size() < count * part && !m.bytes.create(a, count * part)) {
      m.used = false;
      return Error::no_memory;
    }
    if (newer) {
      any_ = true;
      newest_ = number;
      for (Message &old : messages_)
        old.used = old.used && static_cast<uint16_t>(number - old.number) < window;
    }
    m.used = true;
    m.number = number;
    m.count = count;
    m.size = 0;
    m.received = 0;
  }
  if (m.count != count) return Error::malformed;
  if ((m.received >> index & 1) != 0) return Error::duplicate;
  copy(m.bytes.data() + index * part, body.data, body.size);
  m.received |= uint64_t{1} << index;
  if (index + 1 == count) m.size = index * part + body.size;
  if (m.received == UINT64_MAX >> (64 - count)) *message = {m.bytes.data(), m.size};
  return Error::ok;
}

} // namespace uplink::detail::client
