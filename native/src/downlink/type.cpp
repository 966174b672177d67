#include "src/downlink/type.hpp"

#include <algorithm>

namespace uplink {

using namespace detail;
using namespace detail::downlink;

namespace {

bool is_valid(const ObjectField &f) {
  const int64_t span = static_cast<int64_t>(f.hi) - f.lo;
  const bool few = f.components >= 1 && f.components <= 3;
  if (span < 0) return false;
  switch (f.type) {
  case ObjectClass::number:
    return few;
  case ObjectClass::angle:
    return few && span >= 1 && span < INT64_C(1) << 31;
  case ObjectClass::quat:
    return f.components == 4 && span >= 2 && span <= 1 << 20;
  case ObjectClass::integer:
    return f.components == 1;
  case ObjectClass::bytes:
    return f.lo >= 0 && f.hi >= 1 && f.hi <= 4 * static_cast<int32_t>(max_row) &&
           f.components == 1 + (f.hi + 3) / 4;
  }
  return false;
}

bool add(TypeImpl *t, const ObjectField &f) {
  if (!is_valid(f) || t->fields_n == max_object_fields || t->row + f.components > max_row) return false;
  RowField &to = t->fields[t->fields_n];
  to.type = f.type;
  to.first = static_cast<uint16_t>(t->row);
  to.n = f.components;
  to.lo = f.lo;
  to.hi = f.hi;
  for (size_t i = 0; i < t->fields_n; i++)
    if (t->fields[i].type == f.type) to.number++;
  const int index = static_cast<int>(t->fields_n++);
  if (f.type == ObjectClass::number && t->position < 0) t->position = index;
  if (f.type == ObjectClass::quat && t->orientation < 0) t->orientation = index;
  if (f.type == ObjectClass::integer && t->flag < 0) t->flag = index;
  t->row += f.components;
  return true;
}

void finish(TypeImpl *t) {
  for (const ObjectClass c : {ObjectClass::quat, ObjectClass::number, ObjectClass::angle})
    for (size_t i = 0; i < t->fields_n; i++)
      if (t->fields[i].type == c) t->order[t->order_n++] = static_cast<uint8_t>(i);
}

ObjectClass class_of(const FieldInfo &f) {
  if (f.is_integer()) return ObjectClass::integer;
  if (f.kind == Kind::quat) return ObjectClass::quat;
  return f.kind == Kind::angle ? ObjectClass::angle : ObjectClass::number;
}

// add splits a field that has more components than a field of a row.
bool add(TypeImpl *t, const SchemaImpl &s, const FieldInfo &f) {
  ObjectField o;
  o.type = class_of(f);
  const size_t most = o.type == ObjectClass::integer ? 1 : o.type == ObjectClass::quat ? 4 : 3;
  for (size_t k = 0; k < f.components; k += most) {
    const size_t at = f.first + k + (o.type == ObjectClass::quat ? 1 : 0);
    o.components = static_cast<uint8_t>(std::min(most, f.components - k));
    o.lo = s.lowest[at];
    o.hi = s.highest[at];
    if (!add(t, o)) return false;
  }
  return true;
}

bool fill(TypeImpl *t, const SchemaImpl &s) {
  for (const FieldInfo &f : s.infos)
    if (!f.is_string() && !add(t, s, f)) return false;
  for (const FieldInfo &f : s.infos) {
    if (!f.is_string()) continue;
    ObjectField o;
    o.type = ObjectClass::bytes;
    o.lo = static_cast<int32_t>(f.min_length);
    o.hi = static_cast<int32_t>(f.max_length);
    if (f.max_length > 4 * max_row) return false;
    o.components = static_cast<uint8_t>(1 + (o.hi + 3) / 4);
    if (!add(t, o)) return false;
  }
  return t->fields_n > 0;
}

} // namespace

Error ObjectType::create(const Allocator &a, const Schema &s, ObjectType **out) {
  *out = nullptr;
  auto *t = detail::create<TypeImpl>(a);
  if (t == nullptr) return Error::no_memory;
  t->allocator = a;
  Error e = fill(t, detail::impl(s)) ? clone(a, s, &t->source) : Error::invalid;
  if (e != Error::ok) {
    destroy(t);
    return e;
  }
  finish(t);
  *out = t;
  return Error::ok;
}

Error ObjectType::create(const Allocator &a, const ObjectField *fields, size_t n, ObjectType **out) {
  *out = nullptr;
  auto *t = detail::create<TypeImpl>(a);
  if (t == nullptr) return Error::no_memory;
  t->allocator = a;
  bool ok = n > 0;
  for (size_t i = 0; i < n && ok; i++) ok = add(t, fields[i]);
  if (!ok) {
    destroy(t);
    return Error::invalid;
  }
  finish(t);
  *out = t;
  return Error::ok;
}

void ObjectType::destroy(ObjectType *t) {
  if (t == nullptr) return;
  auto *i = static_cast<TypeImpl *>(t);
  Schema::destroy(i->source);
  const Allocator a = i->allocator;
  detail::destroy(a, i);
}

size_t ObjectType::components() const {
  return detail::downlink::impl(*this).row;
}

const Schema *ObjectType::schema() const {
  return detail::downlink::impl(*this).source;
}

Error ObjectType::restore(const int32_t *row, Frame *f) const {
  const TypeImpl &t = detail::downlink::impl(*this);
  if (t.source == nullptr) return Error::invalid;
  const SchemaImpl &s = detail::impl(*t.source);
  Error e = f->set_components(row, s.component_count);
  const int32_t *at = row + s.component_count;
  for (size_t i = 0; i < s.strings.size() && e == Error::ok; i++) {
    const FieldInfo &info = s.infos[s.strings[i]];
    uint8_t bytes[4 * max_row];
    for (uint32_t k = 0; k < info.max_length; k++)
      bytes[k] = static_cast<uint8_t>(static_cast<uint32_t>(at[1 + k / 4]) >> (8 * (k % 4)));
    e = f->set_bytes(s.strings[i], {bytes, static_cast<size_t>(at[0])});
    at += 1 + (info.max_length + 3) / 4;
  }
  return e;
}

} // namespace uplink
