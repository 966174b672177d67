#include "src/codec/description.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "src/codec/schema.hpp"

namespace uplink::detail {

namespace {

constexpr size_t max_number = 40; // characters of a number, including the final zero

// Words splits a description at single spaces. next terminates each word with a zero.
class Words {
public:
  explicit Words(char *text) : at_(text) {}
  // next returns the next word, or null.
  char *next() {
    char *word = at_;
    if (word == nullptr) return nullptr;
    at_ = std::strchr(word, ' ');
    if (at_ != nullptr) *at_++ = 0;
    return word;
  }

private:
  char *at_;
};

bool parse_kind(const char *text, Kind *k) {
  for (int i = 0; i <= static_cast<int>(Kind::bytes); i++) {
    *k = static_cast<Kind>(i);
    if (std::strcmp(kind_name(*k), text) == 0) return true;
  }
  return false;
}

// parse_whole reads an integer from lo to hi.
template <typename T> bool parse_whole(const char *text, int64_t lo, int64_t hi, T *to) {
  const bool negative = *text == '-';
  const char *digit = negative ? text + 1 : text;
  int64_t v = 0;
  if (*digit == 0) return false;
  for (; *digit != 0; digit++) {
    if (*digit < '0' || *digit > '9' || v > INT64_C(1) << 40) return false;
    v = 10 * v + (*digit - '0');
  }
  if (negative) v = -v;
  *to = static_cast<T>(v);
  return v >= lo && v <= hi;
}

// parse_real reads a number whose decimal point is a dot in any locale.
bool parse_real(const char *text, double *to) {
  char number[max_number], half[8];
  const size_t n = std::strlen(text);
  if (n == 0 || n >= sizeof(number)) return false;
  std::memcpy(number, text, n + 1);
  std::snprintf(half, sizeof(half), "%.1f", 0.5);
  if (char *point = std::strchr(number, '.'); point != nullptr) *point = half[1];
  char *end = nullptr;
  *to = std::strtod(number, &end);
  return *end == 0;
}

// parse_steps reads bounds in steps of the resolution. The resolution must be parsed before.
bool parse_steps(char *text, Field *f) {
  char *dots = std::strstr(text, "..");
  if (dots == nullptr) return false;
  *dots = 0;
  int32_t lo = 0, hi = 0;
  if (!parse_whole(text, -INT32_MAX, INT32_MAX, &lo) || !parse_whole(dots + 2, -INT32_MAX, INT32_MAX, &hi))
    return false;
  f->has_min = f->has_max = true;
  f->min = lo * f->resolution;
  f->max = hi * f->resolution;
  return true;
}

bool parse_option(const char *option, char *value, Field *f) {
  if (std::strcmp(option, "count") == 0) return parse_whole(value, 1, max_components, &f->count);
  if (std::strcmp(option, "bits") == 0) return parse_whole(value, 1, 64, &f->bits);
  if (std::strcmp(option, "width") == 0) return parse_whole(value, 1, 64, &f->width);
  if (std::strcmp(option, "size") == 0 || std::strcmp(option, "max") == 0)
    return parse_whole(value, 1, max_bytes, &f->size);
  if (std::strcmp(option, "resolution") == 0) return parse_real(value, &f->resolution);
  if (std::strcmp(option, "steps") == 0) return parse_steps(value, f);
  if (std::strcmp(option, "velocity_scale") == 0) return parse_real(value, &f->velocity_scale);
  if (std::strcmp(option, "velocity") == 0) f->velocity = value;
  return f->velocity == value;
}

// parse_field reads a description into *f, which refers to the text.
bool parse_field(char *text, Field *f) {
  Words words(text);
  f->name = words.next();
  const char *kind = words.next();
  if (kind == nullptr || !parse_kind(kind, &f->kind)) return false;
  while (char *word = words.next()) {
    char *value = std::strchr(word, '=');
    if (value == nullptr) return false;
    *value++ = 0;
    if (!parse_option(word, value, f)) return false;
  }
  return true;
}

// is_described reports whether description is the field's own. If not, a part of it was misread.
bool is_described(const Schema &s, size_t field, Bytes description) {
  char text[max_description];
  const size_t n = s.description(field, text, sizeof(text));
  return n == description.size && n < sizeof(text) && std::memcmp(text, description.data, n) == 0;
}

} // namespace

Error parse_schema(const Allocator &a, Bytes name, const Bytes *descriptions, size_t n, Schema **out,
                   size_t *field) {
  size_t ignored;
  size_t &wrong = field == nullptr ? ignored : *field;
  wrong = n;
  *out = nullptr;
  if (n > max_fields || name.size > max_name) return Error::malformed;
  size_t size = name.size + 1;
  for (size_t i = 0; i < n; i++) size += descriptions[i].size + 1;
  Array<char> text;
  Array<Field> fields;
  if (!text.create(a, size) || !fields.create(a, n)) return Error::no_memory;
  char *at = text.data();
  if (name.size > 0) std::memcpy(at, name.data, name.size);
  at += name.size + 1;
  for (size_t i = 0; i < n; i++) {
    const Bytes d = descriptions[i];
    if (d.size > 0) std::memcpy(at, d.data, d.size);
    wrong = i;
    if (!parse_field(at, &fields[i])) return Error::malformed;
    at += d.size + 1;
  }
  Error e = Schema::create(a, text.data(), 0, fields.data(), n, out, &wrong);
  if (e == Error::invalid) e = Error::malformed;
  for (size_t i = 0; i < n && e == Error::ok; i++) {
    wrong = i;
    if (!is_described(**out, i, descriptions[i])) e = Error::malformed;
  }
  if (e != Error::ok) {
    Schema::destroy(*out);
    *out = nullptr;
  }
  return e;
}

} // namespace uplink::detail
