// Interpolation of poses between snapshots. docs/interpolation.md. It has no wire format.
#include <algorithm>
#include <cmath>

#include "src/base/text.hpp"
#include "src/downlink/set.hpp"
#include "src/downlink/timeline.hpp"

namespace uplink {

using namespace detail;
using namespace detail::downlink;

namespace {

constexpr uint64_t ms = 1000000, second = 1000000000, hour = 3600 * second;
constexpr size_t max_snapshots = 1024;
constexpr int restart_after = 3; // number of consecutive snapshots older by a gap
constexpr double nearly_same = 1 - 1e-6;

struct Held {
  int64_t time = 0;
  Set set;
  Array<double> poses; // values of each object's pose fields, followed by its teleports
};

// Target is the part of a pose that a field sets.
enum class Target : uint8_t { position, velocity, orientation, angles, numbers };

// PosePart maps the values of a field to values of a pose.
struct PosePart {
  size_t field = 0;
  Target target = Target::position;
  size_t first = 0; // first value in the target
  size_t n = 0;

  double *of(Pose *p) const {
    double *const targets[] = {p->position, p->velocity, p->orientation, p->angles, p->numbers};
    return targets[static_cast<size_t>(target)] + first;
  }
};

// Fields are the fields of a type that form the pose.
struct Fields {
  PosePart parts[3 + max_blended];
  size_t n = 0;
  size_t angles = 0, numbers = 0; // number of angles and numbers in use
  int teleports = -1;             // index of the field
};

struct InterpolatorImpl final : Interpolator {
  Allocator allocator;
  const TypeImpl *type = nullptr;
  InterpolatorConfig config;
  Fields fields;
  Frame *frame = nullptr;
  Timeline line;
  Array<Held> memory;
  Array<Held *> held;  // stored snapshots, oldest first
  Array<Held *> spare; // unused entries
  size_t held_n = 0, spare_n = 0;
  int older = 0; // number of consecutive snapshots older than the newest by a gap
  bool starved = false;
  int64_t played = 0; // latest now passed to play
  InterpolatorStats counts;
  Array<Pose> shown; // poses of the last sample

  Error setup(const InterpolatorConfig &c);
  bool load(Held *to, const Objects &o);
  Pose pose(const int32_t *row);
  // Poses of stored snapshots contain only the values that objects have, stride of them.
  void pack(Held *h, size_t i, Pose p) const;
  Pose unpack(const Held &h, size_t i) const;
  size_t stride() const;
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

template <size_t n> bool same_values(const double (&a)[n], const double (&b)[n]) {
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

// cubic computes the Hermite interpolation of positions and velocities, and its derivative.
void cubic(const Pose &a, const Pose &b, double f, double dt, Pose *out) {
  const double g = 1 - f;
  for (int i = 0; i < 3; i++) {
    out->position[i] = (1 + 2 * f) * g * g * a.position[i] + f * f * (3 - 2 * f) * b.position[i] +
                       f * g * g * dt * a.velocity[i] - f * f * g * dt * b.velocity[i];
    out->velocity[i] = 6 * f * g / dt * (b.position[i] - a.position[i]) + g * (1 - 3 * f) * a.velocity[i] +
                       f * (3 * f - 2) * b.velocity[i];
  }
}

// turn returns the turn from a to b in the shorter direction, in degrees.
double turn(double a, double b) {
  const double d = std::remainder(b - a, 360);
  return d == d ? (d == 180 ? -180 : d) : 0;
}

void mix_values(const Pose &a, const Pose &b, double f, Pose *out) {
  for (size_t i = 0; i < max_pose_angles; i++) {
    const double d = turn(a.angles[i], b.angles[i]);
    out->angles[i] = d == 0 ? a.angles[i] : turn(0, a.angles[i] + f * d);
  }
  for (size_t i = 0; i < max_pose_numbers; i++) out->numbers[i] = (1 - f) * a.numbers[i] + f * b.numbers[i];
}

// blend sets the pose at fraction f, 0 to 1, of the time dt in s from a to b.
void blend(Interpolation m, const Pose &a, const Pose &b, double f, double dt, Pose *out) {
  if (f <= 0 || a.teleports != b.teleports) return;
  mix_values(a, b, f, out);
  slerp(a.orientation, b.orientation, f, out->orientation);
  // If an object starts or stops at the same position, a cubic would move it away and back.
  const bool rests = same_values(a.position, b.position) && (is_zero(a.velocity) || is_zero(b.velocity));
  if (m == Interpolation::hermite && !rests) {
    cubic(a, b, f, dt, out);
    return;
  }
  mix(a.position, 1 - f, b.position, f, out->position);
  mix(a.velocity, 1 - f, b.velocity, f, out->velocity);
}

// extrapolate sets the pose at a time after b. dt is the time from a to b. Both are in s.
void extrapolate(Interpolation m, const Pose &a, const Pose &b, double dt, double on, Pose *out) {
  const double f = on / dt;
  mix_values(a, b, 1 + f, out);
  slerp(a.orientation, b.orientation, 1 + f, out->orientation);
  if (m == Interpolation::hermite)
    mix(b.position, 1, b.velocity, on, out->position);
  else
    mix(a.position, -f, b.position, 1 + f, out->position);
}

double seconds(int64_t t) {
  return static_cast<double>(t) / 1e9;
}

// Finder finds the fields of a pose, and reports why a field is not suitable.
class Finder {
public:
  Finder(const SchemaImpl &s, Fields *f, Text *why) : schema_(s), fields_(*f), why_(*why) {}

  bool find(const InterpolatorConfig &c) {
    if (!vector("position", c.position, Target::position) ||
        !vector("velocity", c.velocity, Target::velocity))
      return false;
    if (!orientation(c.orientation) || !teleports(c.teleports)) return false;
    for (const char *name : c.blended)
      if (!blended(name)) return false;
    return true;
  }

private:
  const FieldInfo *info(const char *what, const char *name) {
    for (const FieldInfo &f : schema_.infos)
      if (std::strcmp(f.name, name) == 0) return &f;
    why_.add(what);
    why_.add(": the schema has no field ");
    why_.quote({reinterpret_cast<const uint8_t *>(name), std::strlen(name)});
    return nullptr;
  }
  bool refuse(const char *what, const FieldInfo &f, const char *possible) {
    why_.add(what);
    why_.add(": the field ");
    why_.quote({reinterpret_cast<const uint8_t *>(f.name), std::strlen(f.name)});
    why_.add(" is of kind ");
    why_.add(kind_name(f.kind));
    why_.number(" with ", f.values);
    why_.add(" values, possible are ");
    why_.add(possible);
    return false;
  }
  void add(const FieldInfo &f, Target target, size_t first) {
    fields_.parts[fields_.n++] = {static_cast<size_t>(&f - schema_.infos.data()), target, first, f.values};
  }
  bool vector(const char *what, const char *name, Target target) {
    if (name == nullptr) return true;
    const FieldInfo *f = info(what, name);
    if (f == nullptr) return false;
    if (!f->is_vector() || f->values < 2 || f->values > 3)
      return refuse(what, *f, "vec2, vec3, and scalar with 2 or 3 values");
    add(*f, target, 0);
    return true;
  }
  bool angles(const FieldInfo &f, const char *what) {
    if (fields_.angles + f.values > max_pose_angles) return refuse(what, f, "4 angles of an object together");
    add(f, Target::angles, fields_.angles);
    fields_.angles += f.values;
    return true;
  }
  bool orientation(const char *name) {
    if (name == nullptr) return true;
    const FieldInfo *f = info("orientation", name);
    if (f == nullptr) return false;
    if (f->kind == Kind::angle) return angles(*f, "orientation");
    if (f->kind != Kind::quat) return refuse("orientation", *f, "quat, and angle with up to 4 values");
    add(*f, Target::orientation, 0);
    return true;
  }
  bool teleports(const char *name) {
    if (name == nullptr) return true;
    const FieldInfo *f = info("teleports", name);
    if (f == nullptr) return false;
    if (!f->is_integer() || f->kind == Kind::int_ || f->values != 1 || f->width > 32)
      return refuse("teleports", *f, "bool, and uint and bits with one value of up to 32 bits");
    fields_.teleports = static_cast<int>(f - schema_.infos.data());
    return true;
  }
  bool blended(const char *name) {
    if (name == nullptr) return true;
    const FieldInfo *f = info("blended", name);
    if (f == nullptr) return false;
    if (f->kind == Kind::angle) return angles(*f, "blended");
    if (!f->is_vector()) return refuse("blended", *f, "vec2, vec3, scalar and angle");
    if (fields_.numbers + f->values > max_pose_numbers)
      return refuse("blended", *f, "8 numbers of an object together");
    add(*f, Target::numbers, fields_.numbers);
    fields_.numbers += f->values;
    return true;
  }

  const SchemaImpl &schema_;
  Fields &fields_;
  Text &why_;
};

bool find_fields(const SchemaImpl &s, const InterpolatorConfig &c, Fields *f) {
  Text ignored(nullptr, 0);
  return Finder(s, f, &ignored).find(c);
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
  for (size_t i = 0; i < fields.n; i++) {
    const PosePart &part = fields.parts[i];
    (void)frame->get(part.field, part.of(&p), part.n);
  }
  if (fields.teleports >= 0) (void)frame->get_integers(static_cast<size_t>(fields.teleports), &teleports, 1);
  p.teleports = static_cast<uint32_t>(teleports);
  return p;
}

size_t InterpolatorImpl::stride() const {
  size_t n = 1;
  for (size_t i = 0; i < fields.n; i++) n += fields.parts[i].n;
  return n;
}

void InterpolatorImpl::pack(Held *h, size_t i, Pose p) const {
  double *to = h->poses.data() + i * stride();
  for (size_t k = 0; k < fields.n; k++) {
    const PosePart &part = fields.parts[k];
    std::copy(part.of(&p), part.of(&p) + part.n, to);
    to += part.n;
  }
  *to = p.teleports;
}

Pose InterpolatorImpl::unpack(const Held &h, size_t i) const {
  Pose p;
  const double *from = h.poses.data() + i * stride();
  for (size_t k = 0; k < fields.n; k++) {
    const PosePart &part = fields.parts[k];
    std::copy(from, from + part.n, part.of(&p));
    from += part.n;
  }
  p.teleports = static_cast<uint32_t>(*from);
  return p;
}

bool InterpolatorImpl::load(Held *to, const Objects &o) {
  to->set.clear();
  if (!to->set.reserve(allocator, o.n)) return false;
  if (to->poses.size() < o.n * stride() &&
      !to->poses.create(allocator, std::min(2 * o.n, max_objects) * stride()))
    return false;
  for (size_t i = 0; i < o.n; i++) {
    to->set.push(o.objects[i]);
    std::memcpy(to->set.row(i), o.row(i), type->row * sizeof(int32_t));
    pack(to, i, pose(o.row(i)));
  }
  return true;
}

// bracket returns the last snapshot up to a time and the next one, or one snapshot twice.
void InterpolatorImpl::bracket(int64_t time, size_t *at, size_t *until) const {
  *at = held_n - 1;
  while (*at > 0 && held[*at]->time > time) --*at;
  *until = time < held[*at]->time || *at == held_n - 1 ? *at : *at + 1;
}

void InterpolatorImpl::move_one(const Held &from, size_t i, const Held &other, size_t k, int64_t time) {
  const Pose p = shown[i], q = unpack(other, k);
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

bool interpolation_problem(const Schema &s, const InterpolatorConfig &c, char *to, size_t capacity) {
  Fields fields;
  Text why(to, capacity);
  const bool ok = Finder(detail::impl(s), &fields, &why).find(c);
  why.end();
  return !ok;
}

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
  if (time > latest_time || now > latest_time) return Error::invalid;
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
  if (b.held_n == 0 || now > latest_time) return false;
  const int64_t at = static_cast<int64_t>(now);
  if (b.starved && at > b.played) b.counts.starved += static_cast<uint64_t>(at - b.played);
  b.played = std::max(b.played, at);
  const int64_t t = b.line.play(at);
  const bool starved = t > b.held[b.held_n - 1]->time;
  if (starved && !b.starved) b.counts.hitches++;
  b.starved = starved;
  *time = static_cast<uint64_t>(std::max<int64_t>(t, 0));
  return true;
}

bool Interpolator::at(uint64_t time, Sample *s) {
  InterpolatorImpl &b = impl(this);
  if (b.held_n == 0 || time > latest_time) return false;
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
  for (size_t i = 0; i < n; i++) b.shown[i] = b.unpack(*from, i);
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
