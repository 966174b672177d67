// Snapshots between which poses are interpolated. docs/interpolation.md. Nothing of it is sent.
#include <algorithm>
#include <cmath>

#include "src/downlink/set.hpp"
#include "src/downlink/timeline.hpp"

namespace uplink {

using namespace detail;
using namespace detail::downlink;

namespace {

constexpr uint64_t ms = 1000000, second = 1000000000, hour = 3600 * second;
constexpr size_t max_snapshots = 1024;
constexpr int restart_after = 3; // snapshots in succession that are older by a gap
constexpr double nearly_same = 1 - 1e-6;

struct Held {
  int64_t time = 0;
  Set set;
  Array<Pose> poses;
};

// Fields are the indices of the fields of a pose, or -1.
struct Fields {
  int position = -1, velocity = -1, orientation = -1, teleports = -1;
};

struct InterpolatorImpl final : Interpolator {
  Allocator allocator;
  const TypeImpl *type = nullptr;
  InterpolatorConfig config;
  Fields fields;
  Frame *frame = nullptr;
  Timeline line;
  Array<Held> memory;
  Array<Held *> held;  // oldest first
  Array<Held *> spare; // the others
  size_t held_n = 0, spare_n = 0;
  int older = 0; // consecutive snapshots older than the newest by a gap
  bool starved = false;
  InterpolatorStats counts;
  Array<Pose> shown; // of the last sample

  Error setup(const InterpolatorConfig &c);
  bool load(Held *to, const Objects &o);
  Pose pose(const int32_t *row);
  void bracket(int64_t time, size_t *at, size_t *until) const;
  void move(const Held &from, const Held &other, int64_t time);
  void move_one(const Held &from, size_t i, const Held &other, size_t k, int64_t time);
};

InterpolatorImpl &impl(Interpolator *i) {
  return *static_cast<InterpolatorImpl *>(i);
}

uint32_t key(Object o) {
  return static_cast<uint32_t>(o.id) << 8 | o.generation;
}

bool is_zero(const double (&v)[3]) {
  return v[0] == 0 && v[1] == 0 && v[2] == 0;
}

template <size_t n> bool equal(const double (&a)[n], const double (&b)[n]) {
  for (size_t i = 0; i < n; i++)
    if (a[i] != b[i]) return false;
  return true;
}

void mix(const double (&a)[3], double p, const double (&b)[3], double q, double (&out)[3]) {
  for (int i = 0; i < 3; i++) out[i] = p * a[i] + q * b[i];
}

bool unit(const double (&q)[4], double (&out)[4]) {
  const double n = std::sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
  const bool ok = n > 0 && n <= 1e300;
  for (int i = 0; i < 4; i++) out[i] = ok ? q[i] / n : 0;
  return ok;
}

// slerp interpolates orientations at constant angular velocity, in the shorter direction.
void slerp(const double (&from)[4], const double (&to)[4], double f, double (&out)[4]) {
  double a[4], b[4], sum[4];
  const bool ok_a = unit(from, a), ok_b = unit(to, b);
  double dot = a[0] * b[0] + a[1] * b[1] + a[2] * b[2] + a[3] * b[3];
  double p = ok_a ? 1 - f : 0, q = ok_b ? f : 0;
  if (!ok_a || !ok_b) {
    p = ok_a ? 1 : 0;
    q = ok_b ? 1 : 0;
  } else if (dot < 0) {
    for (double &e : b) e = -e;
    dot = -dot;
  }
  if (ok_a && ok_b && dot < nearly_same) {
    const double angle = std::acos(dot);
    p = std::sin(p * angle);
    q = std::sin(q * angle);
  }
  for (int i = 0; i < 4; i++) sum[i] = p * a[i] + q * b[i];
  unit(sum, out);
}

// cubic is the Hermite interpolation of positions and velocities, and its derivative.
void cubic(const Pose &a, const Pose &b, double f, double dt, Pose *out) {
  const double g = 1 - f;
  for (int i = 0; i < 3; i++) {
    out->position[i] = (1 + 2 * f) * g * g * a.position[i] + f * f * (3 - 2 * f) * b.position[i] +
                       f * g * g * dt * a.velocity[i] - f * f * g * dt * b.velocity[i];
    out->velocity[i] = 6 * f * g / dt * (b.position[i] - a.position[i]) + g * (1 - 3 * f) * a.velocity[i] +
                       f * (3 * f - 2) * b.velocity[i];
  }
}

// blend sets the pose at the share f, 0 to 1, of the time dt between a and b, in s.
void blend(Interpolation m, const Pose &a, const Pose &b, double f, double dt, Pose *out) {
  if (f <= 0 || a.teleports != b.teleports) return;
  slerp(a.orientation, b.orientation, f, out->orientation);
  // A cubic would move an object out and back that starts or stops at the same position.
  const bool rests = equal(a.position, b.position) && (is_zero(a.velocity) || is_zero(b.velocity));
  if (m == Interpolation::hermite && !rests) {
    cubic(a, b, f, dt, out);
    return;
  }
  mix(a.position, 1 - f, b.position, f, out->position);
  mix(a.velocity, 1 - f, b.velocity, f, out->velocity);
}

// extrapolate sets the pose a time after b. dt is the time between a and b. Both are in s.
void extrapolate(Interpolation m, const Pose &a, const Pose &b, double dt, double on, Pose *out) {
  const double f = on / dt;
  slerp(a.orientation, b.orientation, 1 + f, out->orientation);
  if (m == Interpolation::hermite)
    mix(b.position, 1, b.velocity, on, out->position);
  else
    mix(a.position, -f, b.position, 1 + f, out->position);
}

double seconds(int64_t t) {
  return static_cast<double>(t) / 1e9;
}

bool find(const SchemaImpl &s, const char *name, int *field) {
  if (name == nullptr) return true;
  for (size_t i = 0; i < s.infos.size(); i++)
    if (std::strcmp(s.infos[i].name, name) == 0) *field = static_cast<int>(i);
  return *field >= 0;
}

bool find_fields(const SchemaImpl &s, const InterpolatorConfig &c, Fields *f) {
  if (!find(s, c.position, &f->position) || !find(s, c.velocity, &f->velocity) ||
      !find(s, c.orientation, &f->orientation) || !find(s, c.teleports, &f->teleports))
    return false;
  const auto info = [&](int i) -> const FieldInfo & { return s.infos[static_cast<size_t>(i)]; };
  for (const int i : {f->position, f->velocity})
    if (i >= 0 && (!info(i).is_vector() || info(i).values != 3)) return false;
  if (f->orientation >= 0 && info(f->orientation).kind != Kind::quat) return false;
  if (f->teleports < 0) return true;
  const FieldInfo &t = info(f->teleports);
  return t.is_integer() && t.kind != Kind::int_ && t.values == 1 && t.width <= 32;
}

Error InterpolatorImpl::setup(const InterpolatorConfig &c) {
  config = c;
  const bool shares = c.loss >= 0 && c.loss < 1 && c.late >= 0 && c.late < 1;
  if (type->source == nullptr || c.interval < ms || c.interval > 10 * second || c.delay > hour ||
      c.jitter > hour || c.max_delay > hour || c.extrapolate > hour || c.gap > hour || !shares ||
      c.method > Interpolation::nearest || !find_fields(detail::impl(*type->source), c, &fields))
    return Error::invalid;
  if (c.delay == 0) {
    uint64_t intervals = 1;
    for (double left = c.loss; left > 2e-4 && intervals < 16; left *= c.loss) intervals++;
    config.delay = intervals * c.interval + c.jitter;
  }
  if (c.max_delay == 0) config.max_delay = std::max(second / 2, 6 * c.interval);
  if (c.gap == 0) config.gap = std::max(second, 10 * c.interval);
  const uint64_t longest = c.adaptive ? std::max(config.delay, config.max_delay) : config.delay;
  const uint64_t least = longest / c.interval + 2;
  const size_t n = static_cast<size_t>(std::max<uint64_t>(8, least + least / 4));
  if (n > max_snapshots || config.extrapolate >= config.gap) return Error::invalid;
  line.configure(config);
  if (!memory.create(allocator, n) || !held.create(allocator, n) || !spare.create(allocator, n) ||
      (c.adaptive && !line.needed.create(allocator)))
    return Error::no_memory;
  for (Held &h : memory) {
    h.set.start(*type);
    spare[spare_n++] = &h;
  }
  return Frame::create(allocator, *type->source, &frame);
}

Pose InterpolatorImpl::pose(const int32_t *row) {
  Pose p;
  uint64_t teleports = 0;
  if (type->restore(row, frame) != Error::ok) return p;
  const auto get = [&](int field, double *to, size_t n) {
    if (field >= 0) (void)frame->get(static_cast<size_t>(field), to, n);
  };
  get(fields.position, p.position, 3);
  get(fields.velocity, p.velocity, 3);
  get(fields.orientation, p.orientation, 4);
  if (fields.teleports >= 0) (void)frame->get_integers(static_cast<size_t>(fields.teleports), &teleports, 1);
  p.teleports = static_cast<uint32_t>(teleports);
  return p;
}

bool InterpolatorImpl::load(Held *to, const Objects &o) {
  to->set.clear();
  if (!to->set.reserve(allocator, o.n)) return false;
  if (to->poses.size() < o.n && !to->poses.create(allocator, std::min(2 * o.n, max_objects))) return false;
  for (size_t i = 0; i < o.n; i++) {
    to->set.push(o.objects[i]);
    std::memcpy(to->set.row(i), o.row(i), type->row * sizeof(int32_t));
    to->poses[i] = pose(o.row(i));
  }
  return true;
}

// bracket returns the last snapshot up to a time and the one after it, or the same one twice.
void InterpolatorImpl::bracket(int64_t time, size_t *at, size_t *until) const {
  *at = held_n - 1;
  while (*at > 0 && held[*at]->time > time) --*at;
  *until = time < held[*at]->time || *at == held_n - 1 ? *at : *at + 1;
}

void InterpolatorImpl::move_one(const Held &from, size_t i, const Held &other, size_t k, int64_t time) {
  const Pose &p = from.poses[i], &q = other.poses[k];
  const int64_t interval = other.time - from.time;
  if (interval > 0) {
    blend(config.method, p, q, static_cast<double>(time - from.time) / static_cast<double>(interval),
          seconds(interval), &shown[i]);
  } else if (p.teleports == q.teleports) {
    const int64_t on = std::min(time - from.time, static_cast<int64_t>(config.extrapolate));
    extrapolate(config.method, q, p, seconds(-interval), seconds(on), &shown[i]);
  }
}

void InterpolatorImpl::move(const Held &from, const Held &other, int64_t time) {
  size_t k = 0;
  for (size_t i = 0; i < from.set.size(); i++) {
    const uint32_t id = key(from.set.object(i));
    while (k < other.set.size() && key(other.set.object(k)) < id) k++;
    if (k == other.set.size()) return;
    if (key(other.set.object(k)) == id) move_one(from, i, other, k, time);
  }
}

} // namespace

Error Interpolator::create(const Allocator &a, const ObjectType &t, const InterpolatorConfig &c,
                           Interpolator **out) {
  *out = nullptr;
  auto *i = detail::create<InterpolatorImpl>(a);
  if (i == nullptr) return Error::no_memory;
  i->allocator = a;
  i->type = &detail::downlink::impl(t);
  const Error e = i->setup(c);
  if (e != Error::ok)
    destroy(i);
  else
    *out = i;
  return e;
}

void Interpolator::destroy(Interpolator *i) {
  if (i == nullptr) return;
  auto *all = static_cast<InterpolatorImpl *>(i);
  Frame::destroy(all->frame);
  const Allocator a = all->allocator;
  detail::destroy(a, all);
}

Error Interpolator::add(uint64_t now, uint64_t time, const Objects &o) {
  InterpolatorImpl &b = impl(this);
  const int64_t t = static_cast<int64_t>(time);
  if (b.held_n > 0 && t < b.held[b.held_n - 1]->time - static_cast<int64_t>(b.config.gap)) {
    if (++b.older < restart_after) {
      b.counts.late++;
      return Error::stale;
    }
    reset(); // the server restarted
  }
  b.older = 0;
  if (b.line.arrive(static_cast<int64_t>(now), t)) b.counts.restarts++;
  size_t at = b.held_n;
  while (at > 0 && b.held[at - 1]->time > t) at--;
  if (at > 0 && b.held[at - 1]->time == t) {
    b.counts.duplicate++;
    return Error::duplicate;
  }
  if (at == 0 && b.spare_n == 0) {
    b.counts.late++;
    return Error::stale;
  }
  if (b.spare_n == 0) {
    b.spare[b.spare_n++] = b.held[0];
    std::move(b.held.begin() + 1, b.held.begin() + b.held_n, b.held.begin());
    b.held_n--;
    at--;
  }
  Held *h = b.spare[b.spare_n - 1];
  if (!b.load(h, o)) return Error::no_memory;
  b.spare_n--;
  h->time = t;
  std::move_backward(b.held.begin() + at, b.held.begin() + b.held_n, b.held.begin() + b.held_n + 1);
  b.held[at] = h;
  b.held_n++;
  b.counts.added++;
  return Error::ok;
}

bool Interpolator::play(uint64_t now, uint64_t *time) {
  InterpolatorImpl &b = impl(this);
  if (b.held_n == 0) return false;
  const int64_t t = b.line.play(static_cast<int64_t>(now));
  const bool starved = t > b.held[b.held_n - 1]->time;
  if (starved && !b.starved) b.counts.hitches++;
  b.starved = starved;
  *time = static_cast<uint64_t>(std::max<int64_t>(t, 0));
  return true;
}

bool Interpolator::at(uint64_t time, Sample *s) {
  InterpolatorImpl &b = impl(this);
  if (b.held_n == 0) return false;
  const int64_t t = static_cast<int64_t>(time), gap = static_cast<int64_t>(b.config.gap);
  size_t at = 0, until = 0;
  b.bracket(t, &at, &until);
  const Held *from = b.held[at], *other = nullptr;
  if (at != until)
    other = b.held[until];
  else if (at > 0 && t > from->time && b.config.extrapolate > 0)
    other = b.held[at - 1];
  if (other != nullptr && (from->time - other->time > gap || other->time - from->time > gap)) other = nullptr;
  if (b.config.method == Interpolation::nearest) {
    if (other != nullptr && other->time > from->time && other->time - t < t - from->time) from = other;
    other = nullptr;
  }
  const size_t n = from->set.size();
  if (b.shown.size() < n && !b.shown.create(b.allocator, std::min(2 * n, max_objects))) return false;
  std::copy(from->poses.begin(), from->poses.begin() + n, b.shown.begin());
  if (other != nullptr && t != from->time) b.move(*from, *other, t);
  s->time = time;
  s->starved = t > b.held[b.held_n - 1]->time;
  s->objects = from->set.view();
  s->poses = b.shown.data();
  return true;
}

bool Interpolator::sample(uint64_t now, Sample *s) {
  uint64_t time = 0;
  return play(now, &time) && at(time, s);
}

void Interpolator::reset() {
  InterpolatorImpl &b = impl(this);
  while (b.held_n > 0) b.spare[b.spare_n++] = b.held[--b.held_n];
  b.line.reset();
  b.older = 0;
  b.starved = false;
}

InterpolatorStats Interpolator::stats() const {
  const auto &b = *static_cast<const InterpolatorImpl *>(this);
  InterpolatorStats s = b.counts;
  s.delay = static_cast<uint64_t>(b.line.delay());
  return s;
}

} // namespace uplink
