// Addresses as text.
#include <cstring>

#include "uplink/client.hpp"

namespace uplink {
namespace {

// AddressReader reads the text of an address.
class AddressReader {
public:
  AddressReader(const char *from, const char *end) : at_(from), end_(end) {}
  bool done() const { return at_ == end_; }
  bool skip(const char *text) {
    const size_t n = std::strlen(text);
    if (static_cast<size_t>(end_ - at_) < n || std::memcmp(at_, text, n) != 0) return false;
    at_ += n;
    return true;
  }
  // number reads a number of up to digits digits. It reports false if the number exceeds max.
  bool number(unsigned base, int digits, unsigned max, unsigned *out) {
    unsigned v = 0;
    int n = 0;
    for (; n < digits && at_ < end_; n++, at_++) {
      const int d = digit(*at_);
      if (d < 0 || static_cast<unsigned>(d) >= base) break;
      v = v * base + static_cast<unsigned>(d);
    }
    *out = v;
    return n > 0 && v <= max;
  }
  bool v4(uint8_t *ip) {
    for (int i = 0; i < 4; i++) {
      unsigned v = 0;
      if ((i > 0 && !skip(".")) || !number(10, 3, 255, &v)) return false;
      ip[i] = static_cast<uint8_t>(v);
    }
    return true;
  }
  bool v6(uint8_t *ip) {
    int n = 0, gap = -1; // number of groups, and the index of the group at which zeros are omitted
    if (skip("::")) gap = 0;
    while (!done() && n < 8) {
      const char *group = at_;
      if (n <= 6 && v4(ip + 2 * n) && done()) {
        n += 2;
        break;
      }
      at_ = group;
      unsigned v = 0;
      if (!number(16, 4, 0xffff, &v)) return false;
      ip[2 * n] = static_cast<uint8_t>(v >> 8);
      ip[2 * n + 1] = static_cast<uint8_t>(v);
      n++;
      if (done()) break;
      if (gap < 0 && skip("::"))
        gap = n;
      else if (!skip(":") || done())
        return false;
    }
    if (!done() || (gap < 0 ? n != 8 : n > 7)) return false;
    if (gap < 0) return true;
    const size_t tail = 2 * static_cast<size_t>(n - gap);
    std::memmove(ip + 16 - tail, ip + 2 * gap, tail);
    std::memset(ip + 2 * gap, 0, 16 - 2 * static_cast<size_t>(n));
    return true;
  }

private:
  static int digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
  }

  const char *at_, *end_;
};

} // namespace

Error parse_address(const char *text, Address *a) {
  *a = {};
  const char *end = text + std::strlen(text), *colon = std::strrchr(text, ':');
  if (colon == nullptr) return Error::invalid;
  unsigned port = 0;
  AddressReader digits(colon + 1, end);
  if (!digits.number(10, 5, 65535, &port) || !digits.done() || port == 0) return Error::invalid;
  const bool six = colon - text >= 2 && text[0] == '[' && colon[-1] == ']';
  AddressReader host(six ? text + 1 : text, six ? colon - 1 : colon);
  if (six ? !host.v6(a->ip) : !host.v4(a->ip) || !host.done()) {
    *a = {};
    return Error::invalid;
  }
  a->family = six ? 6 : 4;
  a->port = static_cast<uint16_t>(port);
  return Error::ok;
}

} // namespace uplink
