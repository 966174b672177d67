#include "src/codec/rle.hpp"

#include <cstring>

namespace uplink::detail {

namespace {

int group_limit(const FieldInfo &f) {
  constexpr int32_t usual = 1 << 23;
  return f.is_vector() && (f.lo < -usual || f.hi > usual - 1) ? 31 : 24;
}

void write_truncated(BitWriter &w, unsigned v, unsigned limit) {
  unsigned mask = 1, value = 0;
  while (value + mask < limit) {
    bool bit = (v & mask) != 0;
    w.bits(bit, 1);
    if (bit) value += mask;
    mask *= 2;
  }
}

unsigned read_truncated(BitReader &r, unsigned limit) {
  unsigned mask = 1, value = 0;
  while (value + mask < limit) {
    if (r.bits(1) != 0) value += mask;
    mask *= 2;
  }
  return value;
}

// write_group writes the numbers of a group, and reports whether they fit.
bool write_group(BitWriter &w, const int64_t *d, size_t n, int limit) {
  uint64_t most = 0;
  for (size_t i = 0; i < n; i++) {
    uint64_t m = d[i] < 0 ? static_cast<uint64_t>(-d[i]) : static_cast<uint64_t>(d[i]);
    if (m > most) most = m;
  }
  int b = bit_length(most) < 1 ? 0 : bit_length(most) - 1;
  if (b >= limit) return false;
  write_truncated(w, static_cast<unsigned>(b), static_cast<unsigned>(limit));
  for (size_t i = 0; i < n; i++) w.bits(static_cast<uint64_t>(d[i] + (INT64_C(1) << (b + 1))), b + 2);
  return true;
}

void read_group(BitReader &r, int64_t *d, size_t n, int limit) {
  int b = static_cast<int>(read_truncated(r, static_cast<unsigned>(limit)));
  for (size_t i = 0; i < n; i++) d[i] = static_cast<int64_t>(r.bits(b + 2)) - (INT64_C(1) << (b + 1));
}

int64_t wrapped(int64_t v, int bits) {
  int64_t half = INT64_C(1) << (bits - 1);
  return ((v + half) & ((INT64_C(1) << bits) - 1)) - half;
}

bool write_numbers(const FieldInfo &f, const int32_t *c, const int32_t *base, BitWriter &w) {
  int64_t d[max_components];
  switch (f.kind) {
  case Kind::angle:
    for (size_t i = 0; i < f.components; i++) {
      if (base != nullptr) {
        d[i] = wrapped(static_cast<int64_t>(c[i]) - base[i], f.bits);
        continue;
      }
      w.bits(c[i] != 0, 1);
      if (c[i] != 0) w.bits(static_cast<uint64_t>(c[i]), f.bits);
    }
    return base == nullptr || write_group(w, d, f.components, group_limit(f));
  case Kind::quat:
    if (base != nullptr) {
      bool same = c[0] == base[0];
      w.bits(same, 1);
      if (same) {
        for (size_t i = 0; i < 3; i++) d[i] = static_cast<int64_t>(c[1 + i]) - base[1 + i];
        return write_group(w, d, 3, group_limit(f));
      }
    }
    w.bits(static_cast<uint64_t>(c[0]), 2);
    for (size_t i = 1; i < 4; i++) w.bits(static_cast<uint32_t>(c[i]), f.bits);
    return true;
  default:
    for (size_t i = 0; i < f.components; i++)
      d[i] = static_cast<int64_t>(c[i]) - (base == nullptr ? 0 : base[i]);
    return write_group(w, d, f.components, group_limit(f));
  }
}

void read_numbers(const FieldInfo &f, BitReader &r, const int32_t *base, int64_t *c) {
  switch (f.kind) {
  case Kind::angle:
    if (base == nullptr) {
      for (size_t i = 0; i < f.components; i++)
        c[i] = r.bits(1) == 0 ? 0 : static_cast<int64_t>(r.bits(f.bits));
      return;
    }
    read_group(r, c, f.components, group_limit(f));
    for (size_t i = 0; i < f.components; i++) c[i] = (base[i] + c[i]) & f.hi;
    return;
  case Kind::quat:
    if (base != nullptr && r.bits(1) != 0) {
      c[0] = base[0];
      read_group(r, c + 1, 3, group_limit(f));
      for (size_t i = 1; i < 4; i++) c[i] += base[i];
      return;
    }
    c[0] = static_cast<int64_t>(r.bits(2));
    for (size_t i = 1; i < 4; i++) c[i] = wrapped(static_cast<int64_t>(r.bits(f.bits)), f.bits);
    return;
  default:
    read_group(r, c, f.components, group_limit(f));
    if (base == nullptr) return;
    for (size_t i = 0; i < f.components; i++) c[i] += base[i];
  }
}

// part_bytes returns the number of bytes of component i of an integer field.
int part_bytes(const FieldInfo &f, size_t i) {
  return (f.part_width(i) + 7) / 8;
}

// is_signed reports whether component i of an integer field is sign-extended.
bool is_signed(const FieldInfo &f, size_t i) {
  return f.kind == Kind::int_ && (f.width <= 32 || i % 2 == 1);
}

size_t put_binary(const SchemaImpl &s, const FrameView &f, const FrameView *base, uint8_t *to) {
  Writer w(to, s.binary);
  for (const FieldInfo &i : s.infos) {
    for (size_t k = 0; i.is_integer() && k < i.components; k++) {
      uint32_t v = static_cast<uint32_t>(f.c[i.first + k]);
      if (base != nullptr) v ^= static_cast<uint32_t>(base->c[i.first + k]);
      for (int b = part_bytes(i, k); b > 0; b--, v >>= 8) w.byte(static_cast<uint8_t>(v));
    }
    if (!i.is_string()) continue;
    size_t n = static_cast<size_t>(i.string), size = f.lengths[n];
    if (i.kind == Kind::bytes) w.varint(size);
    const uint8_t *b = f.bytes + s.offsets[n];
    for (size_t k = 0; k < size; k++)
      w.byte(base != nullptr && k < base->lengths[n] ? b[k] ^ base->bytes[s.offsets[n] + k] : b[k]);
  }
  return w.size();
}

// BinaryReader reads the binary part.
struct BinaryReader {
  const uint8_t *data;
  size_t size;
  size_t at = 0;
  bool failed = false;

  uint8_t byte() {
    if (at == size) {
      failed = true;
      return 0;
    }
    return data[at++];
  }
};

bool read_length(const FieldInfo &i, BinaryReader &r, size_t *size) {
  *size = i.max_length;
  if (i.kind == Kind::fixed) return true;
  uint32_t v = 0;
  for (int shift = 0; shift <= 14; shift += 7) {
    uint8_t b = r.byte();
    v |= static_cast<uint32_t>(b & 0x7f) << shift;
    if (b < 0x80) {
      *size = v;
      return (shift == 0 || b != 0) && v <= i.max_length && !r.failed;
    }
  }
  return false;
}

bool take_binary(const SchemaImpl &s, BinaryReader r, const FrameView *base, const FrameView &f) {
  for (const FieldInfo &i : s.infos) {
    for (size_t k = 0; i.is_integer() && k < i.components; k++) {
      uint32_t v = 0;
      int n = part_bytes(i, k);
      for (int b = 0; b < n; b++) v |= static_cast<uint32_t>(r.byte()) << (8 * b);
      if (base != nullptr) {
        uint32_t old = static_cast<uint32_t>(base->c[i.first + k]);
        v ^= n == 4 ? old : old & ((UINT32_C(1) << (8 * n)) - 1);
      }
      if (is_signed(i, k) && n < 4 && (v >> (8 * n - 1)) != 0) v |= UINT32_MAX << (8 * n);
      f.c[i.first + k] = static_cast<int32_t>(v);
      if (!in_bounds(s, i.first + k, static_cast<int32_t>(v))) return false;
    }
    if (!i.is_string()) continue;
    size_t number = static_cast<size_t>(i.string), size;
    if (!read_length(i, r, &size)) return false;
    f.lengths[number] = static_cast<uint16_t>(size);
    uint8_t *to = f.bytes + s.offsets[number];
    for (size_t k = 0; k < size; k++) {
      to[k] = r.byte();
      if (base != nullptr && k < base->lengths[number]) to[k] ^= base->bytes[s.offsets[number] + k];
    }
  }
  return !r.failed && r.at == r.size;
}

} // namespace

bool encode_rle(const SchemaImpl &s, const FrameView &f, const FrameView *base, uint8_t *scratch,
                Writer &out) {
  BitWriter w(out);
  for (const FieldInfo &i : s.infos) {
    if (i.is_integer() || i.is_string()) continue;
    if (!write_numbers(i, f.c + i.first, base == nullptr ? nullptr : base->c + i.first, w)) return false;
  }
  w.flush();
  encode_runs(scratch, put_binary(s, f, base, scratch), out);
  return !out.failed();
}

bool decode_rle(const SchemaImpl &s, const uint8_t *data, size_t size, const FrameView *base,
                uint8_t *scratch, const FrameView &f) {
  BitReader r(data, size);
  for (const FieldInfo &i : s.infos) {
    if (i.is_integer() || i.is_string()) continue;
    int64_t c[max_components];
    read_numbers(i, r, base == nullptr ? nullptr : base->c + i.first, c);
    if (r.failed()) return false;
    for (size_t k = 0; k < i.components; k++) {
      if (c[k] < INT32_MIN || c[k] > INT32_MAX || !in_bounds(s, i.first + k, static_cast<int32_t>(c[k])))
        return false;
      f.c[i.first + k] = static_cast<int32_t>(c[k]);
    }
  }
  if (!r.rest()) return false;
  ptrdiff_t n = decode_runs(data + r.at(), size - r.at(), scratch, s.binary);
  return n >= 0 && take_binary(s, {scratch, static_cast<size_t>(n)}, base, f);
}

void encode_runs(const uint8_t *s, size_t n, Writer &out) {
  for (size_t at = 0; at < n;) {
    size_t literal_end = at, i = at, pairs = n, end = n;
    while (i < n) {
      size_t run = 1;
      while (i + run < n && s[i + run] == s[i]) run++;
      if (run == 1) {
        if (i - at >= 127) {
          pairs = end = i;
          break;
        }
        literal_end = ++i;
      } else if (run == 2 && literal_end > at) {
        i += 2;
      } else if (run == 2 || run % 128 != 1) {
        pairs = i;
        end = i + run;
        break;
      } else if (literal_end > at && i - at < 127) {
        literal_end = pairs = i + 1;
        end = i + run;
        break;
      } else {
        pairs = i;
        end = i + run - 1;
        break;
      }
    }
    if (literal_end > at) {
      out.byte(static_cast<uint8_t>(128 + literal_end - at));
      for (size_t k = at; k < literal_end; k++) out.byte(s[k]);
    }
    for (size_t k = literal_end; k < pairs; k += 2) {
      out.byte(2);
      out.byte(s[k]);
    }
    for (size_t rest = end - pairs; rest > 0;) {
      size_t k = rest < 128 ? rest : 128;
      out.byte(static_cast<uint8_t>(k));
      out.byte(s[pairs]);
      rest -= k;
    }
    at = end;
  }
}

ptrdiff_t decode_runs(const uint8_t *code, size_t n, uint8_t *to, size_t capacity) {
  size_t size = 0;
  for (size_t at = 0; at < n;) {
    uint8_t c = code[at++];
    size_t count = c <= 128 ? c : c - 128u, read = c <= 128 ? 1 : count;
    if (c == 0 || n - at < read || capacity - size < count) return -1;
    if (c <= 128)
      std::memset(to + size, code[at], count);
    else
      std::memcpy(to + size, code + at, count);
    at += read;
    size += count;
  }
  return static_cast<ptrdiff_t>(size);
}

} // namespace uplink::detail
