#include "src/codec/adaptive/prior.hpp"

#include <cstring>

#include "src/codec/adaptive/fixed.hpp"
#include "src/codec/adaptive/tables.hpp"

namespace uplink {

using namespace detail;

namespace {

constexpr size_t max_prior = 4 << 20;

constexpr void fill(const Cumulative (*cumulative)[symbol_rows], Costs *costs) {
  for (size_t i = 0; i < symbol_sets; i++) {
    for (size_t row = 0; row < symbol_rows; row++) {
      const uint16_t *c = cumulative[i][row];
      for (size_t s = 0; s < symbols; s++)
        costs[row][s][i] = static_cast<int16_t>(16384 - log(static_cast<uint16_t>(c[s + 1] - c[s]) - 1));
    }
  }
}

struct GenericCosts {
  Costs rows[symbol_rows] = {};

  constexpr GenericCosts() { fill(generic_cumulative, rows); }
};

constexpr GenericCosts generic_costs;

struct Generic {
  PriorImpl prior;

  constexpr Generic() {
    prior.cumulative = generic_cumulative;
    prior.costs = generic_costs.rows;
    prior.name = generic_hash;
    size_t at = 0;
    for (size_t k = 0; k < parameter_kinds; k++) {
      prior.kinds[k] = {generic_values + at, generic_sizes[k]};
      at += generic_sizes[k];
    }
  }
};

constexpr Generic built_in;

uint64_t hash_of(const uint8_t *b, size_t n) {
  Fnv h;
  for (size_t i = 0; i < n; i++) h.put(b[i]);
  uint64_t x = h.sum();
  x = (x ^ x >> 31) * UINT64_C(0x7fb5d329728ea185);
  return x ^ x >> 29;
}

// File reads the file of a prior. It counts the sizes, and stores the contents if there is memory.
struct File {
  const uint8_t *data;
  size_t size;
  size_t at = 0;
  bool failed = false;
  uint16_t *cumulative = nullptr;
  int32_t *values = nullptr;
  FieldParameters *fields = nullptr;
  Parameters *kinds = nullptr;
  size_t value_count = 0;
  size_t field_count = 0;

  uint8_t byte() {
    if (at == size) {
      failed = true;
      return 0;
    }
    return data[at++];
  }

  uint32_t varint() {
    uint32_t v = 0;
    for (int shift = 0; shift < 35; shift += 7) {
      uint8_t b = byte();
      if (shift == 28 && b > 15) break;
      v |= static_cast<uint32_t>(b & 0x7f) << shift;
      if (b < 0x80) {
        if (b == 0 && shift > 0) break; // not the shortest form
        return v;
      }
    }
    failed = true;
    return 0;
  }

  Parameters list() {
    Parameters p{values == nullptr ? nullptr : values + value_count, varint()};
    if (p.size > size - at) failed = true;
    for (size_t i = 0; i < p.size && !failed; i++) {
      uint32_t v = varint();
      if (values != nullptr) values[value_count] = static_cast<int32_t>(v >> 1 ^ (0 - (v & 1)));
      value_count++;
    }
    return p;
  }

  void row(uint16_t *to) {
    unsigned n = byte();
    if (n > symbols) failed = true;
    uint64_t sum = 0;
    for (unsigned s = 0; s < symbols && !failed; s++) {
      if (to != nullptr) to[s] = static_cast<uint16_t>(sum);
      uint64_t f = s < n ? varint() + UINT64_C(1) : 1;
      if (s + 1 == n && f == 1) failed = true;
      sum += f;
    }
    if (to != nullptr) to[symbols] = 0;
    if (sum != 65536) failed = true;
  }

  bool read() {
    static const uint8_t head[] = {'u', 'p', 'l', 'p', 1, 3};
    for (uint8_t b : head) failed = byte() != b || failed;
    for (size_t i = 0; i < symbol_sets * symbol_rows && !failed; i++)
      row(cumulative == nullptr ? nullptr : cumulative + i * (symbols + 1));
    for (size_t k = 0; k < parameter_kinds && !failed; k++) {
      Parameters p = list();
      if (kinds != nullptr) kinds[k] = p;
    }
    size_t n = varint();
    if (n > size - at) failed = true;
    uint64_t previous = 0;
    for (size_t i = 0; i < n && !failed; i++) {
      FieldParameters f;
      if (size - at < 8) return false;
      f.key = load64(data + at);
      at += 8;
      uint32_t kind = varint();
      f.flag_kind = static_cast<uint8_t>(kind);
      f.all = list();
      if (kind > 7 || (i > 0 && f.key <= previous) || f.key == 0) failed = true;
      previous = f.key;
      if (fields != nullptr) fields[i] = f;
    }
    field_count = n;
    return !failed && at == size;
  }
};

} // namespace

namespace detail {

const FieldParameters *PriorImpl::find(uint64_t key) const {
  size_t lo = 0, hi = field_count;
  while (lo < hi) {
    size_t mid = (lo + hi) / 2;
    if (fields[mid].key < key)
      lo = mid + 1;
    else
      hi = mid;
  }
  return lo < field_count && fields[lo].key == key ? fields + lo : nullptr;
}

} // namespace detail

const Prior &Prior::generic() {
  return built_in.prior;
}

uint64_t Prior::hash() const {
  return impl(*this).name;
}

Error Prior::create(const Allocator &a, Bytes file, Prior **out) {
  if (file.data == nullptr || file.size < 14 || file.size > max_prior) return Error::malformed;
  uint64_t name = load64(file.data + file.size - 8);
  if (hash_of(file.data, file.size - 8) != name) return Error::malformed;
  File sizes{file.data, file.size - 8};
  if (!sizes.read()) return Error::malformed;
  size_t cumulative = symbol_sets * symbol_rows * (symbols + 1) * sizeof(uint16_t);
  size_t fields = sizes.field_count * sizeof(FieldParameters);
  size_t costs = sizeof(Costs) * symbol_rows;
  void *memory = allocate(a, fields + costs + cumulative + sizes.value_count * sizeof(int32_t));
  PriorImpl *p = detail::create<PriorImpl>(a);
  if (memory == nullptr || p == nullptr) {
    detail::destroy(a, p);
    if (memory != nullptr) release(a, memory);
    return Error::no_memory;
  }
  File f{file.data, file.size - 8};
  uint8_t *at = static_cast<uint8_t *>(memory);
  f.fields = reinterpret_cast<FieldParameters *>(at);
  f.values = reinterpret_cast<int32_t *>(at + fields);
  f.cumulative = reinterpret_cast<uint16_t *>(at + fields + sizes.value_count * sizeof(int32_t));
  f.kinds = p->kinds;
  f.read();
  p->cumulative = reinterpret_cast<const Cumulative(*)[symbol_rows]>(f.cumulative);
  Costs *rows = reinterpret_cast<Costs *>(f.cumulative + cumulative / sizeof(uint16_t));
  fill(p->cumulative, rows);
  p->costs = rows;
  p->fields = f.fields;
  p->field_count = f.field_count;
  p->name = name;
  p->allocator = a;
  p->memory = memory;
  *out = p;
  return Error::ok;
}

void Prior::destroy(Prior *prior) {
  PriorImpl *p = static_cast<PriorImpl *>(prior);
  if (p == nullptr || p->memory == nullptr) return; // the built-in prior is not destroyed
  Allocator a = p->allocator;
  release(a, p->memory);
  detail::destroy(a, p);
}

} // namespace uplink
