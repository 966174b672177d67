// The parts of a payload: physics, the list of objects, and their rows. docs/spec/snapshots.md, 6 to 8.
#include "src/downlink/part.hpp"

#include <algorithm>

namespace uplink::detail::downlink {
namespace {

size_t model_of(uint64_t distance) {
  constexpr uint64_t limits[] = {2, 4, 7, 11};
  size_t m = 1;
  for (const uint64_t l : limits) m += distance > l ? 1 : 0;
  return m;
}

int32_t byte_of(const int32_t *string, int32_t i) {
  return static_cast<int32_t>(static_cast<uint32_t>(string[1 + i / 4]) >> (8 * (i % 4)) & 255);
}

void put_byte(int32_t *string, int32_t i, uint64_t b) {
  int32_t &word = string[1 + i / 4];
  word = static_cast<int32_t>(static_cast<uint32_t>(word) | static_cast<uint32_t>(b) << (8 * (i % 4)));
}

// same_row searches a set for an object, from index *at on. It is called with ascending ids.
int32_t same_object(const Set &s, Object o, size_t *at) {
  while (*at < s.size() && s.object(*at).id < o.id) ++*at;
  const bool same = *at < s.size() && s.object(*at).id == o.id && s.object(*at).generation == o.generation;
  return same ? static_cast<int32_t>(*at) : -1;
}

} // namespace

Error ObjectCoder::decode(const Set &base, uint64_t distance, const Set *const (&references)[reference_count],
                          Set *out) {
  distance_ = wrapped(distance);
  model_ = step_ == 0 ? 0 : model_of(distance);
  start_contexts();
  out->clear();
  decode_physics(base, out);
  use_physics(base, out->physics);
  if (pairs_.size() < base.size() && !pairs_.create(allocator_, base.size())) return Error::no_memory;
  if (!decode_list(base)) return bad_ ? Error::malformed : Error::no_memory;
  if (!find_references(base, references) || !out->reserve(allocator_, pairs_n_)) return Error::no_memory;
  if (resting_.size() < pairs_n_) {
    const size_t n = std::min(2 * pairs_n_, max_objects);
    if (!resting_.create(allocator_, n) || !grid_.create(allocator_, n)) return Error::no_memory;
  }
  return decode_rows(base, out) ? Error::ok : Error::malformed;
}

void ObjectCoder::decode_physics(const Set &base, Set *out) {
  out->physics = base.physics;
  if (type_->position < 0 || !in_.decide(65536 - 512)) return;
  const auto change = [&](Int *v, int64_t lo, int64_t hi) {
    const uint64_t u = count(physics_, 18); // at most 32 bits, so no sum overflows
    *v += wrapped(u >> 1 ^ (0 - (u & 1)));
    if (*v < lo || *v > hi) {
      bad_ = true;
      *v = 0;
    }
  };
  for (int k = 0; k < 3; k++) {
    change(&out->physics.floor[k], -max_floor, max_floor);
    change(&out->physics.half[k], 0, max_half);
  }
  change(&out->physics.contact, 0, max_contact);
}

void ObjectCoder::use_physics(const Set &base, const Physics &p) {
  used_ = p;
  bool unknown = true;
  for (int k = 0; k < 3; k++) unknown = unknown && p.floor[k] == 0 && p.half[k] == 0;
  for (int k = 0; k < 3; k++) {
    if (p.half[k] != 0) continue;
    used_.half[k] = 64;
    used_.floor[k] = Int{-(INT64_C(1) << 40)} * 16;
  }
  if (unknown && type_->position >= 0) {
    Int lowest[3];
    for (size_t i = 0; i < base.size(); i++) {
      Int at[3];
      position_of(base.row(i), at);
      for (int k = 0; k < 3; k++) lowest[k] = i == 0 ? at[k] : least(lowest[k], at[k]);
    }
    for (int k = 0; k < 3; k++) used_.floor[k] = lowest[k] * 16;
  }
  if (used_.contact == 0) used_.contact = 10240;
  const Int c = clamp(used_.contact, 0, 11520);
  reach_ = (256 + modulo(c, 256)) << static_cast<int>(c.v / 256) >> 4;
}

bool ObjectCoder::decode_list(const Set &base) {
  const bool gone = bit(removed_);
  pairs_n_ = 0;
  for (size_t i = 0; i < base.size(); i++)
    if (!gone || !bit(removed_ + 1)) pairs_[pairs_n_++] = {base.object(i), static_cast<int32_t>(i)};
  const uint64_t added = count(added_, 0);
  if (added == 0) return true;
  if (added + pairs_n_ > max_objects) {
    bad_ = true;
    return false;
  }
  const size_t n = pairs_n_ + static_cast<size_t>(added);
  if (merged_.size() < n && !merged_.create(allocator_, std::min(2 * n, max_objects))) return false;
  int64_t id = -1;
  size_t at = 0, to = 0;
  for (uint64_t i = 0; i < added; i++) {
    id += 1 + static_cast<int64_t>(count(gap_, 6));
    if (id > 65535) {
      bad_ = true;
      return false;
    }
    while (at < pairs_n_ && pairs_[at].object.id < id) merged_[to++] = pairs_[at++];
    if (at < pairs_n_ && pairs_[at].object.id == id) {
      bad_ = true;
      return false;
    }
    merged_[to++] = {{static_cast<uint16_t>(id), static_cast<uint8_t>(in_.raw(8))}, -1};
  }
  while (at < pairs_n_) merged_[to++] = pairs_[at++];
  pairs_.swap(merged_);
  pairs_n_ = n;
  return true;
}

bool ObjectCoder::find_references(const Set &base, const Set *const (&references)[reference_count]) {
  for (size_t r = 0; r < reference_count && step_ > 0; r++) {
    references_[r] = references[r];
    if (index_[r].size() < base.size() && !index_[r].create(allocator_, base.size())) return false;
    size_t at = 0;
    for (size_t i = 0; i < base.size(); i++) index_[r][i] = same_object(*references[r], base.object(i), &at);
  }
  return true;
}

void ObjectCoder::position_of(const int32_t *row, Int (&p)[3]) const {
  p[0] = p[1] = p[2] = 0;
  if (type_->position < 0) return;
  const RowField &f = type_->fields[type_->position];
  for (size_t k = 0; k < f.n; k++) p[k] = row[f.first + k];
}

bool ObjectCoder::differ(const int32_t *a, const int32_t *b) const {
  for (size_t i = 0; i < type_->order_n; i++) {
    const RowField &f = type_->fields[type_->order[i]];
    if (std::memcmp(a + f.first, b + f.first, f.n * sizeof(int32_t)) != 0) return true;
  }
  return false;
}

int ObjectCoder::flag_of(const int32_t *row) const {
  if (type_->flag < 0) return 0;
  const RowField &f = type_->fields[type_->flag];
  return row[f.first] != f.lo ? 1 : 0;
}

bool ObjectCoder::decode_rows(const Set &base, Set *out) {
  nearby_n_ = resting_n_ = 0;
  changes_ = 0;
  grid_.start();
  for (size_t i = 0; i < pairs_n_; i++) out->push(pairs_[i].object);
  for (size_t i = 0; i < pairs_n_; i++) {
    const int32_t at = pairs_[i].base;
    if (at < 0) {
      absolute_row(out->row(i));
      continue;
    }
    base_ = base.row(static_cast<size_t>(at));
    if (step_ > 0 && at_rest(static_cast<size_t>(at))) {
      resting_[resting_n_++] = static_cast<uint32_t>(i);
      continue;
    }
    load(base, static_cast<size_t>(at));
    active(out->row(i));
  }
  resting(base, out);
  return !bad_ && in_.finish();
}

bool ObjectCoder::at_rest(size_t at) const {
  for (const size_t r : {size_t{0}, reference_count - 1}) {
    const int32_t i = index_[r][at];
    if (i < 0) return false;
    const int32_t *row = references_[r]->row(static_cast<size_t>(i));
    if (std::memcmp(row, base_, type_->row * sizeof(int32_t)) != 0) return false;
  }
  return true;
}

void ObjectCoder::absolute_row(int32_t *row) {
  std::fill(row, row + type_->row, 0);
  for (size_t i = 0; i < type_->fields_n; i++) {
    const RowField &f = type_->fields[i];
    int32_t *to = row + f.first;
    if (f.type == ObjectClass::bytes) {
      to[0] = uniform(f.lo, f.hi);
      for (int32_t k = 0; k < to[0]; k++) put_byte(to, k, in_.raw(8));
      continue;
    }
    for (size_t k = 0; k < f.n; k++) {
      const bool index = f.type == ObjectClass::quat && k == 0;
      to[k] = index ? uniform(0, 3) : uniform(f.lo, f.hi);
    }
  }
}

// load finds the row of an object in the baseline and in the references.
void ObjectCoder::load(const Set &base, size_t at) {
  base_ = base.row(at);
  const int32_t *newer = base_;
  Int lag = 0;
  for (size_t r = 0; r < reference_count; r++) {
    if (step_ > 0 && index_[r][at] >= 0) {
      newer = references_[r]->row(static_cast<size_t>(index_[r][at]));
      lag = wrapped(ages[r] * step_);
    }
    rows_[r] = newer;
    lag_[r] = lag;
  }
}

void ObjectCoder::active(int32_t *row) {
  moved_ = (differ(base_, rows_[0]) ? 1U : 0U) | (differ(base_, rows_[1]) ? 2U : 0U) |
           (differ(base_, rows_[3]) ? 4U : 0U);
  rest_ = false;
  flag_ = flag_of(base_);
  speed_context_ = 0;
  if (type_->position >= 0) {
    Int here[3], there[3], distance = 0;
    position_of(base_, here);
    position_of(rows_[3], there);
    for (int k = 0; k < 3; k++) distance += absolute(here[k] - there[k]);
    speed_context_ = static_cast<unsigned>(std::min(bit_length(bits_of(distance)) / 2, 3));
  }
  changes_ <<= 1;
  bool moved = false;
  if (type_->order_n > 0) {
    moved = bit(changed_ + ((changes_ >> 1 & 3) << 6 | speed_context_ << 4 | moved_ << 1 |
                            static_cast<unsigned>(flag_)));
    if (moved) changes_ |= 1;
  }
  kept(moved, row);
  if (moved) motion(row);
}

void ObjectCoder::kept(bool moved, int32_t *row) {
  std::memcpy(row, base_, type_->row * sizeof(int32_t));
  for (size_t i = 0; i < type_->fields_n; i++) {
    const RowField &f = type_->fields[i];
    if (f.type != ObjectClass::integer) continue;
    const int32_t v = base_[f.first];
    unsigned c = moved_ + (moved ? 8U : 0U) + (v != f.lo ? 16U : 0U);
    if (!rest_) c += (rows_[0][f.first] != v ? 32U : 0U) + (rows_[3][f.first] != v ? 64U : 0U);
    if (rest_ && !moved) c = 128 + (c >> 4 & 1);
    if (!bit(of_field_[i] + c)) continue;
    const bool two = static_cast<int64_t>(f.hi) - f.lo == 1;
    row[f.first] = two ? (v == f.lo ? f.hi : f.lo) : uniform(f.lo, f.hi);
  }
  for (size_t i = 0; i < type_->fields_n; i++)
    if (type_->fields[i].type == ObjectClass::bytes) kept_bytes(type_->fields[i], of_field_[i], moved, row);
}

void ObjectCoder::kept_bytes(const RowField &f, uint16_t *contexts, bool moved, int32_t *row) {
  if (!bit(contexts + (moved ? 1 : 0))) return;
  const int32_t *old = base_ + f.first;
  int32_t *to = row + f.first;
  std::fill(to, to + f.n, 0);
  to[0] = bit(contexts + 2) ? uniform(f.lo, f.hi) : old[0];
  int last = 1;
  for (int32_t i = 0; i < to[0]; i++) {
    if (i < old[0]) {
      last = bit(contexts + 3 + last) ? 1 : 0;
      if (last == 1) {
        put_byte(to, i, static_cast<uint64_t>(byte_of(old, i)));
        continue;
      }
    }
    put_byte(to, i, in_.raw(8));
  }
}

void ObjectCoder::resting(const Set &base, Set *out) {
  if (resting_n_ == 0) return;
  grid_.search(reach_);
  size_t quiet = 0;
  for (size_t i = 0; i < resting_n_; i++) {
    const size_t at = resting_[i], from = static_cast<size_t>(pairs_[at].base);
    const int32_t *row = base.row(from);
    Int closest = reach_;
    if (type_->position >= 0) {
      Int p[3];
      position_of(row, p);
      closest = grid_.closest(p);
    }
    const int f = flag_of(row);
    if (closest == reach_ && f == 0) {
      resting_[quiet++] = static_cast<uint32_t>(at);
      continue;
    }
    const size_t k = closest < reach_ ? clamp((log(closest) + 256) * 2 / 256 + 1, 1, 127).index() : none_near;
    if (bit(disturbed_ + 4 * k + 2 * (changes_ & 1) + static_cast<size_t>(f))) {
      disturbed(base, from, k, out->row(at));
      continue;
    }
    changes_ <<= 1;
    std::memcpy(out->row(at), row, type_->row * sizeof(int32_t));
  }
  if (quiet == 0) return;
  const bool some = bit(quiet_);
  bool here = false;
  for (size_t i = 0; i < quiet; i++) {
    if (i % 32 == 0) here = some && bit(quiet_ + 1);
    const size_t at = resting_[i], from = static_cast<size_t>(pairs_[at].base);
    if (here && bit(quiet_ + 2))
      disturbed(base, from, none_near, out->row(at));
    else
      std::memcpy(out->row(at), base.row(from), type_->row * sizeof(int32_t));
  }
}

void ObjectCoder::disturbed(const Set &base, size_t index, size_t contact, int32_t *row) {
  load(base, index);
  moved_ = speed_context_ = 0;
  rest_ = true;
  flag_ = flag_of(base_);
  changes_ <<= 1;
  bool moved = false;
  if (type_->order_n > 0) {
    moved = bit(how_ + 2 * contact + static_cast<size_t>(flag_));
    if (moved) changes_ |= 1;
  }
  kept(moved, row);
  if (moved) motion(row);
}

} // namespace uplink::detail::downlink
