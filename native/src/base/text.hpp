// Text in memory of constant size.
#pragma once

#include <cstdio>

#include "uplink/base.hpp"

namespace uplink::detail {

// Text writes to a buffer and counts the characters that do not fit.
class Text {
public:
  Text(char *to, size_t capacity) : to_(to), capacity_(capacity) {}
  size_t size() const { return size_; }
  const char *text() const { return to_; }

  void add(char c) {
    if (size_ + 1 < capacity_) to_[size_] = c;
    size_++;
  }
  void add(const char *s) {
    for (; *s != 0; s++) add(*s);
  }
  // quote adds text of the other end in quotes. Each control character becomes a question mark.
  void quote(Bytes b) {
    add('"');
    for (size_t i = 0; i < b.size; i++)
      add(b.data[i] < ' ' || b.data[i] == 127 ? '?' : static_cast<char>(b.data[i]));
    add('"');
  }
  void number(const char *name, long long v) {
    char b[32];
    std::snprintf(b, sizeof b, "%lld", v);
    add(name);
    add(b);
  }
  // real writes a number with 6 digits, for messages.
  void real(double v) {
    char b[32];
    std::snprintf(b, sizeof b, "%g", v);
    add(b);
  }
  // end adds a zero, which may replace the last character, and returns the number of characters.
  size_t end() {
    if (capacity_ == 0) return 0;
    const size_t n = size_ < capacity_ ? size_ : capacity_ - 1;
    to_[n] = 0;
    return n;
  }

private:
  char *to_;
  size_t capacity_;
  size_t size_ = 0;
};

} // namespace uplink::detail
