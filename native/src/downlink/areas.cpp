// The decoder of worlds with areas. docs/spec/snapshots.md, 15.
#include <algorithm>

#include "src/downlink/part.hpp"
#include "src/downlink/received.hpp"
#include "uplink/snapshot.hpp"

namespace uplink {

using namespace detail;
using namespace detail::downlink;

namespace {

constexpr size_t max_types = 16;
constexpr size_t max_members = 2048;
constexpr uint16_t no_slot = max_members; // slot of objects whose groups are not in the message
constexpr size_t max_group = 264;
constexpr size_t max_free = 1024; // maximum number of sets of a type that are kept for reuse
constexpr uint64_t max_part = 1 << 20;
constexpr uint64_t max_entered = 512;
constexpr uint64_t keep_messages = 28; // number of messages kept before the newest baseline,
constexpr uint64_t late_baselines = 3; // or this many plus the references, if their step is known
constexpr uint64_t check_every = 64;

struct AreaType;

// List is an array that grows.
template <typename T> struct List {
  Array<T> items;
  size_t n = 0;

  bool add(const Allocator &a, const T &v) {
    if (n == items.size()) {
      Array<T> more;
      if (!more.create(a, n == 0 ? 32 : 2 * n)) return false;
      for (size_t i = 0; i < n; i++) more[i] = items[i];
      items.swap(more);
    }
    items[n++] = v;
    return true;
  }
  T *begin() { return items.data(); }
  T *end() { return items.data() + n; }
};

// Ages is the number of snapshots by which each object is older than its message.
struct Ages {
  List<uint64_t> of;
  bool any = false; // at least one age is above 0
};

// Group is a set that several messages may contain.
struct Group {
  Set set;
  AreaType *type = nullptr;
  size_t used = 0; // number of messages that use it
  Group *next = nullptr;
};

struct AreaType {
  const TypeImpl *type = nullptr;
  ObjectCoder part;
  Group *free = nullptr;
  size_t free_n = 0;
  Set one, before; // an object that entered, and its version in the baseline
  Set shown, merged;
  Ages ages, merged_ages; // ages of the objects in shown and merged
};

// Member is a group in a message.
struct Member {
  uint16_t slot = 0;
  uint64_t age = 0;   // distance to the message that contains the group; 0: up to date
  uint32_t order = 0; // position in its message
  Group *group = nullptr;
};

struct Message {
  bool used = false;
  uint64_t number = 0;
  List<Member> members;
};

// Entry is a group whose coded bytes follow the directory.
struct Entry {
  AreaType *type = nullptr;
  uint64_t distance = 0;
  uint32_t size = 0;
  uint16_t slot = 0;
  bool entered = false; // entered objects follow
  bool counted = false; // later messages may refer to it
  bool skipped = false; // its baseline is missing
};

// Shown is an object of a visible group. Keys are ordered by id, then by precedence.
struct Shown {
  uint64_t key = 0;
  const Set *set = nullptr;
  uint32_t index = 0;
  uint64_t age = 0;
};

struct AreaDecoderImpl final : AreaDecoder {
  Allocator allocator;
  size_t types_n = 0;
  size_t max_objects = 0;
  AreaType types[max_types];
  Message messages[ring];
  Received received;

  // The message that is being decoded:
  uint64_t n = 0, distance = 0;
  List<Member> members, visible;
  List<Member> last; // groups that the newest message shows, by slot
  List<Entry> entries;
  List<Shown> order;
  size_t objects = 0;
  uint64_t step = 0;    // maximum step of the references of its groups, 0: no references
  bool partial = false; // objects of the view are missing

  AreaDecoderImpl() = default;
  AreaDecoderImpl(const AreaDecoderImpl &) = delete;
  AreaDecoderImpl &operator=(const AreaDecoderImpl &) = delete;
  ~AreaDecoderImpl();

  Message *at(uint64_t back) {
    Message &m = messages[(n - back) % ring];
    return back <= n && m.used && m.number == n - back ? &m : nullptr;
  }
  Group *find(uint64_t back, uint16_t slot);
  Error missing() { return n + 1 < received.next ? Error::stale : received.missing(); }
  Error desync() {
    forget(UINT64_MAX);
    release(&last);
    return received.desync();
  }
  void release(List<Member> *list);
  void remove(Message *m);
  void forget(uint64_t end);
  Group *take(AreaType *t);

  Error decode_message(BitReader *bits, Bytes message);
  Error member(BitReader *bits, const Member &m);
  Error entry(BitReader *bits, uint64_t kind);
  Error add_entry(BitReader *bits, Entry e);
  Error keyframe(BitReader *bits, Entry e);
  Error keep(const Member &m, bool counted);
  Error keep_before(uint16_t slot);
  Error decode_entry(const Entry &e, Bytes *rest);
  Error entered(const Entry &e, Set *set, Bytes *rest);
  Error one_object(const Entry &e, Bytes coded, bool delta, Set *set);
  // source returns the distance to the message that contained the entered objects.
  uint64_t source(const Entry &e) const { return e.distance > 0 ? e.distance : distance; }
  bool find_object(const Entry &e, uint16_t id);
  Error merge();
  Error accept();
};

AreaDecoderImpl &impl(AreaDecoder *d) {
  return *static_cast<AreaDecoderImpl *>(d);
}

uint64_t read_count(BitReader *bits, int digit) {
  uint64_t v = 0;
  for (int at = 0; at < 20; at += digit) {
    const uint64_t x = bits->bits(digit + 1);
    v |= (x & ((uint64_t{1} << digit) - 1)) << at;
    if (x >> digit == 0) return v;
  }
  return max_part;
}

// read_varint removes a varint from the start of b, and reports whether there is one.
bool read_varint(Bytes *b, uint64_t *v) {
  *v = 0;
  for (size_t i = 0; i < b->size && i < 10; i++) {
    const uint64_t c = b->data[i];
    if (i == 9 && c > 1) return false;
    *v |= (c & 0x7f) << 7 * i;
    if (c >= 0x80) continue;
    *b = {b->data + i + 1, b->size - i - 1};
    return true;
  }
  return false;
}

AreaDecoderImpl::~AreaDecoderImpl() {
  release(&visible);
  release(&last);
  forget(UINT64_MAX);
  for (AreaType &t : types) {
    while (t.free != nullptr) {
      Group *g = t.free;
      t.free = g->next;
      detail::destroy(allocator, g);
    }
  }
}

Group *AreaDecoderImpl::take(AreaType *t) {
  Group *g = t->free;
  if (g != nullptr) {
    t->free = g->next;
    t->free_n--;
  } else {
    g = detail::create<Group>(allocator);
    if (g == nullptr) return nullptr;
    g->set.start(*t->type);
    g->type = t;
  }
  g->used = 0;
  return g;
}

// release frees the groups that no message contains any more.
void AreaDecoderImpl::release(List<Member> *list) {
  for (const Member &m : *list) {
    Group *g = m.group;
    if (--g->used > 0) continue;
    if (g->type->free_n == max_free) {
      detail::destroy(allocator, g);
      continue;
    }
    g->next = g->type->free;
    g->type->free = g;
    g->type->free_n++;
  }
  list->n = 0;
}

void AreaDecoderImpl::remove(Message *m) {
  release(&m->members);
  m->used = false;
}

void AreaDecoderImpl::forget(uint64_t end) {
  for (Message &m : messages)
    if (m.used && m.number < end) remove(&m);
}

bool below(const Member &m, uint16_t slot) {
  return m.slot < slot;
}

void sort_by_slot(List<Member> *list) {
  for (size_t i = 0; i < list->n; i++) list->items[i].order = static_cast<uint32_t>(i);
  std::sort(list->begin(), list->end(), [](const Member &a, const Member &b) {
    return a.slot != b.slot ? a.slot < b.slot : a.order < b.order;
  });
}

// find returns the group of a slot in the message that is distance messages older, or null.
Group *AreaDecoderImpl::find(uint64_t back, uint16_t slot) {
  Message *m = at(back);
  if (m == nullptr) return nullptr;
  const Member *found = std::lower_bound(m->members.begin(), m->members.end(), slot, below);
  return found != m->members.end() && found->slot == slot ? found->group : nullptr;
}

// keep adds a group to the message. It bounds the work, because a short message can refer to many
// objects, and to the same ones more than once.
Error AreaDecoderImpl::keep(const Member &m, bool counted) {
  if (objects + m.group->set.size() > uplink::max_objects * types_n) return Error::malformed;
  if (!visible.add(allocator, m)) return Error::no_memory;
  m.group->used++;
  objects += m.group->set.size();
  return !counted || members.add(allocator, m) ? Error::ok : Error::no_memory;
}

// keep_before adds the group that the newest message shows in a slot. It does so only if the
// current message is newer, but not so much newer that the slot may contain another group.
Error AreaDecoderImpl::keep_before(uint16_t slot) {
  const Member *found = std::lower_bound(last.begin(), last.end(), slot, below);
  if (n < received.next || n + 1 - received.next > max_distance || found == last.end() ||
      found->slot != slot) {
    partial = true;
    return Error::ok;
  }
  Member m = *found;
  m.age += n + 1 - received.next;
  return keep(m, false);
}

Error AreaDecoderImpl::add_entry(BitReader *bits, Entry e) {
  const uint64_t size = read_count(bits, 5);
  e.entered = bits->bits(1) == 1;
  if (size >= max_part || bits->failed()) return Error::malformed;
  e.size = static_cast<uint32_t>(size);
  return entries.add(allocator, e) ? Error::ok : Error::no_memory;
}

// member reads the code of a group that the baseline's message contains.
Error AreaDecoderImpl::member(BitReader *bits, const Member &m) {
  if (bits->bits(1) == 1) {
    Entry e;
    e.slot = m.slot;
    e.type = m.group->type;
    e.distance = distance;
    e.counted = true;
    return add_entry(bits, e);
  }
  if (bits->bits(1) == 1) return keep({m.slot, 0, 0, m.group}, true);
  if (bits->bits(1) == 1) return keep({m.slot, distance, 0, m.group}, false);
  return Error::ok;
}

// entry reads the entry of a group that the baseline's message does not contain.
Error AreaDecoderImpl::entry(BitReader *bits, uint64_t kind) {
  const uint64_t slot = read_count(bits, 5);
  if (slot >= max_members || visible.n + entries.n >= max_members) return Error::malformed;
  Entry e;
  e.slot = static_cast<uint16_t>(slot);
  e.counted = kind != 3;
  if (kind == 1) return keyframe(bits, e);
  e.distance = bits->bits(6);
  if (kind == 3 && e.distance == 0) {
    e.slot = no_slot;
    return keyframe(bits, e);
  }
  if (kind == 3 && e.distance > max_distance) { // objects of the view have not been sent yet
    partial = true;
    return Error::ok;
  }
  const bool changed = bits->bits(1) == 1;
  if (e.distance == 0 || e.distance > max_distance || bits->failed()) return Error::malformed;
  Group *g = find(e.distance, e.slot);
  if (g == nullptr) {
    if (e.counted) return missing();
    if (!changed) return keep_before(e.slot);
    e.skipped = true;
    return add_entry(bits, e);
  }
  if (!changed) return keep({e.slot, e.counted ? 0 : e.distance, 0, g}, e.counted);
  e.type = g->type;
  return add_entry(bits, e);
}

// keyframe reads the entry of a group without a baseline.
Error AreaDecoderImpl::keyframe(BitReader *bits, Entry e) {
  const uint64_t type = read_count(bits, 2);
  if (type >= types_n) return Error::malformed;
  e.type = &types[type];
  return add_entry(bits, e);
}

// find_object copies the object with an id from the baseline's message.
bool AreaDecoderImpl::find_object(const Entry &e, uint16_t id) {
  Message *m = at(source(e));
  if (m == nullptr) return false;
  for (const Member &member : m->members) {
    if (member.group->type != e.type) continue;
    const Set &s = member.group->set;
    const ptrdiff_t i = s.find(id);
    if (i < 0) continue;
    Set &to = e.type->before;
    to.clear();
    return to.reserve(allocator, 1) &&
           to.insert(s.object(static_cast<size_t>(i)), s.row(static_cast<size_t>(i)));
  }
  return false;
}

Error AreaDecoderImpl::one_object(const Entry &e, Bytes coded, bool delta, Set *set) {
  AreaType &t = *e.type;
  t.before.clear();
  if (delta) {
    if (!find_object(e, load16(coded.data))) return Error::malformed;
    coded = {coded.data + 2, coded.size - 2};
  }
  const Set *const none[reference_count] = {};
  if (t.part.begin(coded, delta) > 0) return Error::malformed;
  const Error error = t.part.decode(t.before, delta ? source(e) : 1, none, &t.one);
  if (error != Error::ok) return error;
  objects++;
  if (t.one.size() != 1 || objects > uplink::max_objects * types_n) return Error::malformed;
  if (!set->reserve(allocator, set->size() + 1)) return Error::no_memory;
  return set->insert(t.one.object(0), t.one.row(0)) ? Error::ok : Error::malformed;
}

// entered decodes the objects that entered a group, or skips them if set is null.
Error AreaDecoderImpl::entered(const Entry &e, Set *set, Bytes *rest) {
  uint64_t count = 0;
  if (!read_varint(rest, &count) || count > max_entered) return Error::malformed;
  for (uint64_t i = 0; i < count; i++) {
    uint64_t v = 0;
    if (!read_varint(rest, &v)) return Error::malformed;
    const bool delta = (v & 1) != 0;
    const uint64_t size = (v >> 1) + (delta ? 2 : 0);
    if (size > rest->size) return Error::malformed;
    const Bytes coded = {rest->data, static_cast<size_t>(size)};
    *rest = {rest->data + coded.size, rest->size - coded.size};
    const Error error = set == nullptr ? Error::ok : one_object(e, coded, delta, set);
    if (error != Error::ok) return error;
  }
  return Error::ok;
}

Error AreaDecoderImpl::decode_entry(const Entry &e, Bytes *rest) {
  if (e.size > rest->size) return Error::malformed;
  Bytes coded = {rest->data, e.size};
  *rest = {rest->data + e.size, rest->size - e.size};
  if (e.skipped) {
    const Error error = keep_before(e.slot);
    return error != Error::ok || !e.entered ? error : entered(e, nullptr, rest);
  }
  const auto before = [&](uint64_t age) -> const Set * {
    const Group *g = find(e.distance + age, e.slot);
    return g != nullptr && g->type == e.type ? &g->set : nullptr;
  };
  AreaType &t = *e.type;
  t.before.clear();
  const Set *base = e.distance > 0 ? before(0) : &t.before;
  if (base == nullptr) return missing();
  if (e.distance > 0 && n % check_every == 0) {
    if (coded.size < 2) return Error::malformed;
    if (load16(coded.data) != base->hash()) return desync();
    coded = {coded.data + 2, coded.size - 2};
  }
  const Set *references[reference_count] = {};
  const uint64_t own_step = t.part.begin(coded, e.distance > 0);
  for (size_t i = 0; i < reference_count && own_step > 0; i++) {
    references[i] = before(ages[i] * own_step);
    if (references[i] == nullptr) return missing();
  }
  step = std::max(step, own_step);
  // Grows the list before the group is acquired, so that the group is not lost without memory.
  if (!visible.add(allocator, {})) return Error::no_memory;
  visible.n--;
  Group *g = take(&t);
  if (g == nullptr) return Error::no_memory;
  g->set.clear();
  Error error = keep({e.slot, 0, 0, g}, e.counted);
  if (error == Error::ok)
    error = t.part.decode(*base, std::max<uint64_t>(e.distance, 1), references, &g->set);
  if (error != Error::ok) return error;
  if (g->set.size() > max_group) return Error::malformed;
  objects += g->set.size();
  if (objects > uplink::max_objects * types_n) return Error::malformed;
  return e.entered ? entered(e, &g->set, rest) : Error::ok;
}

// merge collects the visible objects by type, in ascending order of ids.
Error AreaDecoderImpl::merge() {
  if (objects > max_objects) return Error::no_memory;
  for (size_t i = 0; i < visible.n; i++) visible.items[i].order = static_cast<uint32_t>(i);
  std::sort(visible.begin(), visible.end(), [](const Member &a, const Member &b) {
    return a.age != b.age ? a.age < b.age : a.order < b.order;
  });
  for (size_t k = 0; k < types_n; k++) {
    AreaType &t = types[k];
    order.n = 0;
    for (const Member &m : visible) {
      if (m.group->type != &t) continue;
      const Set &s = m.group->set;
      for (size_t i = 0; i < s.size(); i++) {
        const uint64_t key = static_cast<uint64_t>(s.object(i).id) << 32 | order.n;
        if (!order.add(allocator, {key, &s, static_cast<uint32_t>(i), m.age})) return Error::no_memory;
      }
    }
    std::sort(order.begin(), order.end(), [](const Shown &a, const Shown &b) { return a.key < b.key; });
    size_t distinct = 0;
    for (size_t i = 0; i < order.n; i++)
      if (i == 0 || order.items[i].key >> 32 != order.items[i - 1].key >> 32)
        order.items[distinct++] = order.items[i];
    if (distinct > uplink::max_objects) return Error::malformed;
    t.merged.clear();
    t.merged_ages.of.n = 0;
    t.merged_ages.any = false;
    if (!t.merged.reserve(allocator, distinct)) return Error::no_memory;
    for (size_t i = 0; i < distinct; i++) {
      const Shown &s = order.items[i];
      if (!t.merged_ages.of.add(allocator, s.age)) return Error::no_memory;
      t.merged_ages.any = t.merged_ages.any || s.age > 0;
      t.merged.push(s.set->object(s.index));
      std::memcpy(t.merged.row(i), s.set->row(s.index), t.type->row * sizeof(int32_t));
    }
  }
  return Error::ok;
}

Error AreaDecoderImpl::decode_message(BitReader *bits, Bytes message) {
  release(&visible);
  members.n = entries.n = objects = 0;
  step = 0;
  partial = false;
  Error e = Error::ok;
  if (distance > 0) {
    Message *base = at(distance);
    for (size_t i = 0; i < base->members.n && e == Error::ok; i++) e = member(bits, base->members.items[i]);
  }
  while (e == Error::ok) {
    const uint64_t kind = bits->bits(2);
    if (bits->failed()) return Error::malformed;
    if (kind == 0) break;
    e = entry(bits, kind);
  }
  if (e == Error::ok && !bits->rest()) return Error::malformed;
  Bytes rest = {message.data + bits->at(), message.size - bits->at()};
  for (size_t i = 0; i < entries.n && e == Error::ok; i++) e = decode_entry(entries.items[i], &rest);
  if (e == Error::ok && rest.size > 0) e = Error::malformed;
  return e == Error::ok ? merge() : e;
}

Error AreaDecoderImpl::accept() {
  const uint64_t end = std::max(received.next, n + 1);
  forget(end - std::min(end, ring));
  Message &m = messages[n % ring];
  sort_by_slot(&members);
  for (const Member &member : members) {
    if (!m.members.add(allocator, member)) {
      release(&m.members);
      return Error::no_memory;
    }
    member.group->used++;
  }
  m.used = true;
  m.number = n;
  for (size_t k = 0; k < types_n; k++) {
    AreaType &t = types[k];
    t.shown.swap(t.merged);
    t.ages.of.items.swap(t.merged_ages.of.items);
    std::swap(t.ages.of.n, t.merged_ages.of.n);
    std::swap(t.ages.any, t.merged_ages.any);
  }
  if (n >= received.next) {
    release(&last);
    last.items.swap(visible.items);
    std::swap(last.n, visible.n);
    sort_by_slot(&last);
  }
  received.add(n, distance > 0);
  if (distance == 0) return Error::ok;
  received.floor = std::max(received.floor, n - distance);
  const bool newest = n + 1 == received.next;
  const uint64_t before =
      step > 0 && newest ? late_baselines + ages[reference_count - 1] * step : keep_messages;
  forget(received.floor - std::min(received.floor, before));
  return Error::ok;
}

} // namespace

Error AreaDecoder::create(const Allocator &a, const ObjectType *const *types, size_t n, AreaDecoder **out,
                          size_t most_objects) {
  *out = nullptr;
  if (n < 1 || n > max_types) return Error::invalid;
  auto *d = detail::create<AreaDecoderImpl>(a);
  if (d == nullptr) return Error::no_memory;
  d->allocator = a;
  d->types_n = n;
  d->max_objects = most_objects;
  bool ok = true;
  for (size_t k = 0; k < n; k++) {
    AreaType &t = d->types[k];
    t.type = &detail::downlink::impl(*types[k]);
    for (Set *s : {&t.one, &t.before, &t.shown, &t.merged}) s->start(*t.type);
    ok = ok && t.part.create(a, *t.type);
  }
  if (!ok) {
    destroy(d);
    return Error::no_memory;
  }
  *out = d;
  return Error::ok;
}

void AreaDecoder::destroy(AreaDecoder *d) {
  if (d == nullptr) return;
  auto *i = static_cast<AreaDecoderImpl *>(d);
  const Allocator a = i->allocator;
  detail::destroy(a, i);
}

Error AreaDecoder::decode(Bytes message, SnapshotInfo *info) {
  AreaDecoderImpl &d = impl(this);
  BitReader bits(message.data, message.size);
  const uint64_t distance = bits.bits(6);
  uint64_t low = bits.bits(10);
  if (distance == 0) low |= bits.bits(8) << 10;
  if (bits.failed() || distance > max_distance || low >> 16 != 0) return Error::malformed;
  d.n = downlink::unwrap(low, distance == 0 ? 16 : 10, d.received.next);
  d.distance = distance;
  if (d.received.is_old(d.n)) return Error::stale;
  if (distance > 0 && d.at(distance) == nullptr) {
    const bool discarded = distance <= d.n && d.n - distance < d.received.floor;
    return discarded || d.n < d.received.first ? Error::stale : d.missing();
  }
  Error e = d.decode_message(&bits, message);
  if (e == Error::ok) e = d.accept();
  if (e != Error::ok) {
    d.release(&d.visible);
    d.received.count(e);
    return e;
  }
  info->number = static_cast<uint16_t>(d.n);
  info->distance = static_cast<uint8_t>(distance);
  return Error::ok;
}

Objects AreaDecoder::shown(size_t type) const {
  const auto &d = *static_cast<const AreaDecoderImpl *>(this);
  if (type >= d.types_n) return {};
  const AreaType &t = d.types[type];
  Objects o = t.shown.view();
  if (t.ages.any) o.ages = t.ages.of.items.data();
  return o;
}

bool AreaDecoder::complete() const {
  return !static_cast<const AreaDecoderImpl *>(this)->partial;
}

size_t AreaDecoder::ack(uint8_t *to) const {
  return static_cast<const AreaDecoderImpl *>(this)->received.ack(to);
}

} // namespace uplink
