// Bytes in hexadecimal digits, as vectors and recorded sessions contain them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "uplink/base.hpp"

namespace uplink_test {

using Data = std::vector<uint8_t>;

inline Data unhex(const std::string &s) {
  Data out;
  for (size_t i = 0; i + 1 < s.size(); i += 2)
    out.push_back(static_cast<uint8_t>(std::stoul(s.substr(i, 2), nullptr, 16)));
  return out;
}

inline std::string hex(const uint8_t *b, size_t n) {
  static const char digits[] = "0123456789abcdef";
  std::string s;
  for (size_t i = 0; i < n; i++) {
    s += digits[b[i] >> 4];
    s += digits[b[i] & 15];
  }
  return s;
}

inline uplink::Bytes bytes(const Data &d) {
  return {d.data(), d.size()};
}

} // namespace uplink_test
