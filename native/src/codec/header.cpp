#include "src/codec/header.hpp"

#include <cstring>

namespace uplink::detail {

namespace {

// HeaderBits writes numbers from their most significant bit, as short headers require.
struct HeaderBits {
  uint64_t value = 0;
  int count = 0;

  void put(uint64_t v, int n) {
    value = value << n | v;
    count += n;
  }
};

// ShortReader reads numbers written by HeaderBits.
struct ShortReader {
  const uint8_t *data;
  size_t size;
  size_t at = 0; // position in bits
  bool failed = false;

  uint16_t bits(int n) {
    unsigned v = 0;
    for (; n > 0; n--, at++) {
      if (at / 8 >= size) {
        failed = true;
        return 0;
      }
      v = v << 1 | (data[at / 8] >> (7 - at % 8) & 1u);
    }
    return static_cast<uint16_t>(v);
  }
};

bool fits_short(const Header &h) {
  return h.distance >= 1 && h.distance <= 64 && h.rpc <= (h.has_hash ? 3 : 10);
}

bool parse_short(const uint8_t *b, size_t n, Header *h) {
  ShortReader r{b, n};
  r.bits(1);
  unsigned rpc = r.bits(1);
  if (rpc == 1) {
    rpc = r.bits(2);
    if (rpc == 0) {
      rpc = r.bits(3) + 4u;
      if (rpc == 11) { // 100111: a hash follows
        h->has_hash = true;
        rpc = r.bits(1);
        if (rpc == 1) {
          rpc = r.bits(2);
          if (rpc == 0) return false; // the RPC number is above 3
        }
      }
    }
  }
  h->rpc = static_cast<uint8_t>(rpc);
  if (r.bits(1) == 0)
    h->distance = static_cast<uint16_t>(r.bits(4) + 1);
  else if (r.bits(1) == 0)
    h->distance = static_cast<uint16_t>(r.bits(4) + 17);
  else
    h->distance = static_cast<uint16_t>(r.bits(5) + 33);
  h->low = r.bits(7);
  if (h->has_hash) h->hash = r.bits(16);
  h->size = (r.at + 7) / 8;
  h->free_bits = static_cast<int>(8 * h->size - r.at);
  return !r.failed;
}

} // namespace

void write_header(Header &h, uint64_t sequence, uint8_t *to) {
  h.is_long = !fits_short(h);
  if (h.is_long) {
    to[0] = static_cast<uint8_t>(0x80 | (h.distance != 0 ? 0x20 : 0) | (h.has_hash ? 0x10 : 0));
    to[1] = h.rpc;
    store16(to + 2, static_cast<uint16_t>(sequence));
    to[4] = static_cast<uint8_t>(h.distance != 0 ? h.distance : h.epoch);
    if (h.has_hash) store16(to + 5, h.hash);
    h.size = h.has_hash ? 7 : 5;
    h.free_bits = 0;
    return;
  }
  HeaderBits w;
  w.put(0, 1);
  if (h.has_hash) w.put(39, 6);
  if (h.rpc == 0)
    w.put(0, 1);
  else if (h.rpc <= 3)
    w.put(4u | h.rpc, 3);
  else
    w.put(32u | (h.rpc - 4u), 6);
  if (h.distance <= 16)
    w.put(h.distance - 1u, 5);
  else if (h.distance <= 32)
    w.put(32u | (h.distance - 17u), 6);
  else
    w.put(96u | (h.distance - 33u), 7);
  w.put(sequence & 127, 7);
  if (h.has_hash) w.put(h.hash, 16);
  h.size = static_cast<size_t>(w.count + 7) / 8;
  h.free_bits = static_cast<int>(8 * h.size) - w.count;
  uint64_t v = w.value << h.free_bits;
  for (size_t i = h.size; i > 0; v >>= 8) to[--i] = static_cast<uint8_t>(v);
}

bool parse_header(const uint8_t *b, size_t n, Header *h) {
  *h = Header();
  if (n == 0) return false;
  if (b[0] < 0x80) return parse_short(b, n, h);
  h->is_long = true;
  h->has_hash = (b[0] & 0x10) != 0;
  h->size = h->has_hash ? 7 : 5;
  if ((b[0] & 0x4f) != 0 || n < h->size) return false;
  h->rpc = b[1];
  h->low = load16(b + 2);
  if ((b[0] & 0x20) != 0) {
    h->distance = b[4];
    if (h->distance == 0) return false;
  } else {
    h->epoch = b[4];
    if (h->epoch > 7 || h->has_hash) return false;
  }
  if (h->has_hash) h->hash = load16(b + 5);
  return true;
}

bool unwrap(const Header &h, uint64_t newest, uint64_t *sequence) {
  uint64_t size = h.is_long ? 1 << 16 : 1 << 7, behind = h.is_long ? 1023 : 63;
  uint64_t distance = (newest - h.low) & (size - 1);
  *sequence = distance > behind || distance > newest ? newest + size - distance : newest - distance;
  return *sequence < newest + size - behind;
}

namespace {

uint64_t mask(unsigned n) {
  return n >= 64 ? UINT64_MAX : (UINT64_C(1) << n) - 1;
}

// gap_bytes returns the number of bytes after the first byte of a window that is not a single run.
size_t gap_bytes(unsigned length) {
  return (length < 5 ? 7 : length + 2u) / 8;
}

// one_run reports whether the missing bits form one run of 1 to 7 bits that begins below bit 32.
bool one_run(uint64_t missing, unsigned *first, unsigned *size) {
  unsigned i = 0;
  while ((missing >> i & 1) == 0) i++;
  uint64_t run = missing >> i;
  unsigned n = static_cast<unsigned>(bit_length(run));
  *first = i;
  *size = n;
  return i < 32 && n <= 7 && run == mask(n);
}

size_t write_gaps(const AckForm &a, uint64_t missing, uint8_t *to) {
  unsigned first, size;
  if (one_run(missing, &first, &size)) {
    to[0] = static_cast<uint8_t>((size - 1) << 5 | first);
    return 1;
  }
  to[0] = static_cast<uint8_t>(7 << 5 | (a.window & 31));
  size_t n = gap_bytes(a.length);
  uint64_t rest = a.window >> 5;
  for (size_t i = 0; i < n; i++, rest >>= 8) to[1 + i] = static_cast<uint8_t>(rest);
  return 1 + n;
}

// read_gaps sets the window of an ack. It returns the number of bytes read, 0 if there are too few.
size_t read_gaps(AckForm &a, const uint8_t *b, size_t n) {
  if (n < 1) return 0;
  unsigned size = b[0] >> 5;
  if (size < 7) {
    a.window = mask(a.length) & ~(mask(size + 1) << (b[0] & 31));
    return 1;
  }
  size_t more = gap_bytes(a.length);
  if (n < 1 + more) return 0;
  a.window = b[0] & 31;
  for (size_t i = 0; i < more; i++) {
    unsigned shift = static_cast<unsigned>(5 + 8 * i);
    if (shift < 64) a.window |= static_cast<uint64_t>(b[1 + i]) << shift;
  }
  return 1 + more;
}

size_t parse_any_ack(const uint8_t *b, size_t n, AckForm *a) {
  size_t at;
  bool gaps = false;
  if (n < 1) return 0;
  if ((b[0] & 0x81) == 0x81) {
    if (n < 2) return 0;
    a->length = b[0] >> 1 & 15;
    a->newest = static_cast<uint16_t>((b[0] >> 5 & 3) << 8 | b[1]);
    at = 2;
  } else if ((b[0] & 1) == 0) {
    if (n < 3) return 0;
    a->stream = b[0] >> 1 & 7;
    a->epoch = b[0] >> 4 & 7;
    gaps = (b[0] & 0x80) != 0;
    a->length = b[1] & 63;
    a->newest = static_cast<uint16_t>(b[1] >> 6 | b[2] << 2);
    at = 3;
  } else {
    a->is_long = true;
    a->request = b[0] >> 1 & 3;
    a->none = (b[0] & 8) != 0;
    a->whole = (b[0] & 16) != 0;
    gaps = (b[0] & 32) != 0;
    at = 1;
    if ((b[0] & 64) != 0) {
      if (n < 3) return 0;
      a->stream = b[1];
      a->epoch = b[2];
      at = 3;
    }
    if (a->none) return at;
    if (n < at + 3) return 0;
    a->newest = load16(b + at);
    a->length = b[at + 2];
    at += 3;
    if (a->length > 63) return 0;
  }
  a->window = mask(a->length);
  if (!gaps) return at;
  size_t used = read_gaps(*a, b + at, n - at);
  return used == 0 || (a->window & ~mask(a->length)) != 0 ? 0 : at + used;
}

} // namespace

size_t write_ack(const AckForm &a, uint8_t *to) {
  uint64_t missing = ~a.window & mask(a.length);
  bool is_long = a.none || a.whole || a.request != 0 || a.length == 63 || a.stream > 7 || a.epoch > 7;
  size_t at;
  if (is_long) {
    bool named = a.stream != 0 || a.epoch != 0, gaps = missing != 0 && !a.none;
    to[0] = static_cast<uint8_t>(1 | a.request << 1 | (a.none ? 8 : 0) | (a.whole && !a.none ? 16 : 0) |
                                 (gaps ? 32 : 0) | (named ? 64 : 0));
    at = 1;
    if (named) {
      to[at++] = a.stream;
      to[at++] = a.epoch;
    }
    if (a.none) return at;
    store16(to + at, a.newest);
    to[at + 2] = a.length;
    at += 3;
  } else if (a.stream == 0 && a.epoch == 0 && a.length <= 15 && missing == 0) {
    to[0] = static_cast<uint8_t>(0x81 | a.length << 1 | (a.newest >> 8 & 3) << 5);
    to[1] = static_cast<uint8_t>(a.newest);
    return 2;
  } else {
    to[0] = static_cast<uint8_t>(a.stream << 1 | a.epoch << 4 | (missing != 0 ? 0x80 : 0));
    to[1] = static_cast<uint8_t>(a.length | (a.newest & 3) << 6);
    to[2] = static_cast<uint8_t>(a.newest >> 2);
    at = 3;
  }
  return missing == 0 ? at : at + write_gaps(a, missing, to + at);
}

size_t parse_ack(const uint8_t *b, size_t n, AckForm *a) {
  *a = AckForm();
  size_t size = parse_any_ack(b, n, a);
  uint8_t again[16];
  if (size == 0 || write_ack(*a, again) != size || std::memcmp(b, again, size) != 0) return 0;
  return size;
}

} // namespace uplink::detail
