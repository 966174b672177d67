#include "src/downlink/state/receiver.hpp"

#include <cstring>

#include "src/codec/header.hpp"

namespace uplink::detail::state {

namespace {

constexpr size_t max_packet = 16384;
constexpr uint64_t max_distance = 56;
constexpr uint64_t reorder_limit = 8;
constexpr int64_t max_tick = INT64_C(1) << 53;

// nearest returns the number with the given low bits that is nearest to next, but not below 0.
uint64_t nearest(uint64_t low, unsigned width, uint64_t next) {
  uint64_t size = UINT64_C(1) << width, from = next - size / 2; // modulo 2^64
  uint64_t n = from + ((low - from) & (size - 1));
  return n >> 63 != 0 ? n + size : n;
}

bool parse_tick(const uint8_t *b, size_t n, size_t *used, int64_t *tick) {
  uint64_t v = 0;
  for (size_t i = 0; i < n && i < 10; i++) {
    if (i == 9 && b[i] > 1) return false;
    v |= static_cast<uint64_t>(b[i] & 127) << (7 * i);
    if (b[i] >> 7 != 0) continue;
    if (i > 0 && b[i] == 0) return false;
    *used = i + 1;
    *tick = static_cast<int64_t>(v >> 1 ^ (0 - (v & 1)));
    return *tick >= -max_tick && *tick <= max_tick;
  }
  return false;
}

// next_inputs returns the size of the first player's inputs with the 2 bytes before them, or 0.
size_t next_inputs(const uint8_t *data, size_t size) {
  if (size < 2 || size - 2 < data[1]) return 0;
  return size_t{2} + data[1];
}

bool are_inputs(const uint8_t *data, size_t size) {
  int before = -1;
  while (size > 0) {
    size_t n = next_inputs(data, size);
    if (n == 0 || data[0] <= before) return false;
    before = data[0];
    data += n;
    size -= n;
  }
  return true;
}

} // namespace

Error StateImpl::create(const StatePlan &plan, const StateConfig &c) {
  if (c.objects == 0 || c.objects > 65536 || c.updates < max_updates || c.updates > 64 * max_updates ||
      c.input_bytes > max_input_bytes)
    return Error::invalid;
  plan_ = plan;
  config_ = c;
  size_t fields = plan.n, records = size_t{c.objects} + c.updates;
  // The factors of an offer do not affect which fields have trends.
  stride_ = plan.components + plan.trends;
  if (!records_.create(allocator_, records) || !rows_.create(allocator_, records * stride_) ||
      !misses_.create(allocator_, records * fields) || !known_.create(allocator_, c.objects) ||
      !packets_.create(allocator_, 64) || !models_.create(allocator_, 65) ||
      !fields_.create(allocator_, 65 * fields) ||
      !last_inputs_.create(allocator_, size_t{65} * c.input_bytes) || !log_.create(allocator_, 64) ||
      !bases_.create(allocator_, c.objects) ||
      !tick_data_.create(allocator_, max_ticks * size_t{c.input_bytes}))
    return Error::no_memory;
  do_reset();
  return Error::ok;
}

void StateImpl::do_reset() {
  free_ = no_record;
  free_n_ = 0;
  for (size_t i = records_.size(); i > 0; i--) release(static_cast<uint32_t>(i - 1));
  known_n_ = bases_n_ = updated_n_ = ticks_n_ = news_n_ = 0;
  for (Packet &p : packets_) p = Packet();
  for (TickSlot &t : log_) t = TickSlot();
  any_ = sweep_due_ = restart_ = shown_ = false;
  newest_ = window_ = floor_ = final_ = 0;
  newest_tick_ = 0;
  epoch_ = 0;
  stats_ = StateStats();
}

uint32_t StateImpl::take() {
  uint32_t r = free_;
  if (r == no_record) {
    full_ = true;
    return r;
  }
  free_ = records_[r].older;
  free_n_--;
  records_[r] = Record();
  return r;
}

void StateImpl::release(uint32_t record) {
  records_[record].older = free_;
  free_ = record;
  free_n_++;
}

void StateImpl::release_chain(uint32_t *record) {
  while (*record != no_record) {
    uint32_t older = records_[*record].older;
    release(*record);
    *record = older;
  }
}

const Packet *StateImpl::find(uint64_t number) const {
  const Packet &p = packets_[number % 64];
  return p.kept && p.number == number ? &p : nullptr;
}

bool StateImpl::decoded(uint64_t number) const {
  return any_ && number <= newest_ && newest_ - number < 64 && (window_ >> (newest_ - number) & 1) != 0;
}

void StateImpl::mark(uint64_t number) {
  if (ahead(number)) {
    uint64_t n = any_ ? number - newest_ : 64;
    window_ = n >= 64 ? 1 : window_ << n | 1;
    newest_ = number;
    newest_tick_ = work_.tick;
    any_ = true;
  } else {
    window_ |= UINT64_C(1) << (newest_ - number);
  }
}

bool StateImpl::parse(Bytes packet, Header *h) const {
  if (packet.size < 2 || packet.size > max_packet) return false;
  const uint8_t *b = packet.data;
  uint64_t next = any_ ? newest_ + 1 : 0;
  unsigned word = load16(b);
  h->distance = word & 63;
  if (h->distance > 0) {
    h->number = nearest(word >> 6, 10, next);
    h->coded = {b + 2, packet.size - 2};
    return h->distance <= max_distance;
  }
  if (packet.size < 5 || b[2] >> 6 != 0) return false;
  h->number = nearest(word >> 6 | static_cast<unsigned>(b[2]) << 10, 16, next);
  h->epoch = b[3];
  size_t used = 0;
  if (!parse_tick(b + 4, packet.size - 4, &used, &h->tick)) return false;
  h->coded = {b + 4 + used, packet.size - 4 - used};
  return true;
}

Error StateImpl::check(const Header &h) const {
  if (decoded(h.number)) return Error::duplicate;
  if ((any_ && h.number + 64 <= newest_) || h.distance > h.number) return Error::stale;
  if (h.distance == 0) return !ahead(h.number) && h.epoch != epoch_ ? Error::stale : Error::ok;
  uint64_t base = h.number - h.distance;
  if (find(base) == nullptr) return Error::no_baseline;
  return base < floor_ ? Error::stale : Error::ok;
}

bool StateImpl::is_first(const Header &h) const {
  return !any_ || (h.distance == 0 && h.number > newest_ && static_cast<uint8_t>(h.epoch - epoch_) >= 32);
}

Error StateImpl::do_receive(Bytes packet, StateUpdate *u) {
  *u = StateUpdate();
  // The result of the last update is no longer needed.
  if (!shown_) {
    for (size_t i = 0; i < updated_n_; i++) release(updated_[i]);
  }
  updated_n_ = ticks_n_ = news_n_ = 0;
  shown_ = full_ = false;
  Header h;
  Error e = parse(packet, &h) ? check(h) : Error::malformed;
  if (e == Error::ok) e = decode(h);
  if (e != Error::ok) return fail(e, h);
  accept(h, u);
  return Error::ok;
}

Error StateImpl::fail(Error e, const Header &h) {
  for (size_t i = 0; i < updated_n_; i++) release(updated_[i]);
  updated_n_ = ticks_n_ = 0;
  switch (e) {
  case Error::duplicate:
    stats_.duplicate++;
    break;
  case Error::stale:
    stats_.late++;
    break;
  case Error::no_baseline:
    stats_.no_baseline++;
    restart_ = restart_ || ahead(h.number);
    break;
  case Error::desync:
    stats_.desync++;
    restart_ = true;
    break;
  case Error::full:
    // The cause may be packets kept for too long. The sender restarts.
    stats_.full++;
    restart_ = true;
    clear_packets(final_);
    break;
  default:
    stats_.malformed++;
  }
  return e;
}

bool StateImpl::find_view(uint64_t base) {
  view_.base = base;
  view_.bits = 1;
  for (uint64_t i = 8; i < 64 && i <= base; i++) {
    if (find(base - i) != nullptr) view_.bits |= UINT64_C(1) << i;
  }
  StateModels &m = models_[64];
  bool before = true, all = true;
  for (uint64_t i = 1; i < 8; i++) {
    before = coder_.bit(m.held[before ? 1 : 0]);
    if (!before) continue;
    view_.bits |= UINT64_C(1) << i;
    all = all && i <= base && find(base - i) != nullptr;
  }
  return all;
}

void StateImpl::find_bases() {
  bases_n_ = 0;
  for (size_t i = 0; i < known_n_; i++) {
    uint32_t r = known_[i].newest;
    while (r != no_record && records_[r].number >= final_ && !view_.has(records_[r].number))
      r = records_[r].older;
    if (r != no_record && !records_[r].gone) bases_[bases_n_++] = {known_[i].id, r};
  }
}

const Baseline *StateImpl::base_of(uint16_t id) const {
  size_t from = 0, to = bases_n_;
  while (from < to) {
    size_t mid = (from + to) / 2;
    if (bases_[mid].id < id)
      from = mid + 1;
    else
      to = mid;
  }
  return from < bases_n_ && bases_[from].id == id ? &bases_[from] : nullptr;
}

Error StateImpl::decode(const Header &h) {
  size_t fields = plan_.n;
  StateModels &m = models_[64];
  keyframe_ = h.distance == 0;
  work_ = Packet();
  work_.number = h.number;
  work_.base = h.number - h.distance;
  work_.tick = h.tick;
  bases_n_ = 0;
  const Packet *base = nullptr;
  if (keyframe_) {
    state::reset(&m);
    for (size_t i = 0; i < fields; i++) state::reset(&fields_[64 * fields + i]);
  } else {
    base = find(work_.base);
    size_t at = work_.base % 64;
    m = models_[at];
    for (size_t i = 0; i < fields; i++) fields_[64 * fields + i] = fields_[at * fields + i];
  }
  coder_.begin(h.coded);
  if (!keyframe_) {
    if (!find_view(work_.base)) return Error::no_baseline;
    find_bases();
    int64_t p = static_cast<int64_t>(h.distance);
    work_.tick = base->tick + p * m.pace + coder_.rare(&m, rare_tick, 4);
    if (absolute(work_.tick) > max_tick) return Error::malformed;
    m.pace = clamp((work_.tick - base->tick) / p, 0, 1 << 20);
    if (h.number % 64 == 0 && coder_.raw(16) != hash()) return Error::desync;
  }
  viewer_ = -1;
  located_ = false;
  if (coder_.bit(m.viewer[0])) {
    if (!coder_.bit(m.viewer[1])) m.view = static_cast<uint16_t>(coder_.raw(16));
    viewer_ = m.view;
  }
  bool ok = decode_inputs(base) && updates();
  if (full_) return Error::full;
  if (!ok || !coder_.finish()) return Error::malformed;
  if (!is_first(h)) {
    if (h.number > newest_ ? work_.tick <= newest_tick_ : work_.tick >= newest_tick_) return Error::malformed;
  }
  // New objects need a free entry.
  size_t fresh = 0;
  for (size_t i = 0; i < updated_n_; i++) {
    size_t at = known_at(records_[updated_[i]].id);
    fresh += at == known_n_ || known_[at].id != records_[updated_[i]].id ? 1 : 0;
  }
  return known_n_ + fresh > known_.size() ? Error::full : Error::ok;
}

uint16_t StateImpl::hash() const {
  uint64_t h = UINT64_C(14695981039346656037);
  auto put = [&h](uint64_t x) {
    h = (h ^ x) * UINT64_C(1099511628211);
    h ^= h >> 29;
  };
  size_t n = plan_.n;
  for (size_t i = 0; i < n; i++) {
    for (int32_t b : fields_[64 * n + i].bias) put(static_cast<uint64_t>(int64_t{b}));
  }
  const StateModels &m = models_[64];
  for (size_t i = 0; i < 4; i++) {
    for (size_t k = 0; k < 8; k++) put(static_cast<uint64_t>(m.member[i][k].p) << 16 | m.same[i][k].p);
  }
  for (size_t b = 0; b < bases_n_; b++) {
    const Record &r = records_[bases_[b].record];
    const int32_t *c = row(bases_[b].record);
    put(static_cast<uint64_t>(r.id) << 8 | r.generation);
    uint64_t word = 0;
    unsigned used = 0;
    for (size_t i = 0; i < n; i++) {
      const StateField &f = plan_.fields[i];
      for (size_t k = 0; k < f.n; k++) {
        int32_t lo, hi;
        f.bounds(k, &lo, &hi);
        unsigned bits = static_cast<unsigned>(bit_length(static_cast<uint32_t>(int64_t{hi} - lo)));
        if (f.type == ObjectClass::bytes && k > 0) lo = 0;
        uint64_t v = static_cast<uint32_t>(c[f.first + k]) - static_cast<uint32_t>(lo);
        v &= UINT32_MAX;
        word |= v << used;
        used += bits;
        if (used < 64) continue;
        put(word);
        used -= 64;
        word = used == 0 ? 0 : v >> (bits - used);
      }
    }
    put(word);
  }
  return static_cast<uint16_t>(h >> 48);
}

bool StateImpl::decode_inputs(const Packet *base) {
  StateModels &m = models_[64];
  uint8_t *last = last_inputs_.data() + size_t{64} * config_.input_bytes;
  size_t size = 0;
  int64_t expect = 1;
  if (base != nullptr) {
    size = base->input_bytes;
    expect = base->to - base->from;
    if (size > 0) std::memcpy(last, last_inputs_.data() + base->number % 64 * config_.input_bytes, size);
  }
  int64_t n = expect + coder_.rare(&m, rare_ticks, 4);
  if (n < 0 || n > static_cast<int64_t>(max_ticks)) return false;
  if (n > 0) {
    work_.to = work_.tick + 1 - coder_.rare(&m, rare_behind, 4);
    work_.from = work_.to - n;
  }
  for (ticks_n_ = 0; ticks_n_ < static_cast<size_t>(n); ticks_n_++) {
    TickSlot &t = ticks_[ticks_n_];
    t = TickSlot();
    t.tick = work_.from + static_cast<int64_t>(ticks_n_);
    t.known = coder_.bit(m.input[0]);
    if (t.known && !coder_.bit(m.input[1]) && !decode_tick(&t, last, &size)) return false;
    if (!t.known) continue;
    t.size = size;
    if (size > 0) std::memcpy(tick_data_.data() + ticks_n_ * config_.input_bytes, last, size);
  }
  work_.input_bytes = size;
  return true;
}

// decode_tick decodes the inputs of a tick as differences from the previous tick's.
bool StateImpl::decode_tick(TickSlot *, uint8_t *data, size_t *size) {
  StateModels &m = models_[64];
  size_t before = *size;
  if (!coder_.bit(m.input[2])) {
    int64_t n = coder_.rare(&m, rare_bytes, 15);
    if (n < 0 || n > static_cast<int64_t>(max_input_bytes)) return false;
    *size = static_cast<size_t>(n);
  }
  if (*size > config_.input_bytes) {
    full_ = true;
    return false;
  }
  bool differed = false;
  for (size_t i = 0; i < *size; i++)
    data[i] = coder_.changed_byte(m.differs, m.flip, &differed, i < before ? data[i] : uint8_t{0});
  return are_inputs(data, *size);
}

int StateImpl::age(uint32_t base) const {
  int n = bit_length(work_.base - records_[base].number);
  return n < 7 ? n : 7;
}

void StateImpl::locate(uint32_t record) {
  if (plan_.position < 0) return;
  const StateField &f = plan_.fields[plan_.position];
  for (size_t k = 0; k < f.n; k++) place_[k] = row(record)[f.first + k];
  located_ = true;
}

bool StateImpl::updates() {
  StateModels &m = models_[64];
  updated_n_ = 0;
  if (viewer_ >= 0) {
    uint16_t id = static_cast<uint16_t>(viewer_);
    const Baseline *base = base_of(id);
    if (coder_.bit(m.viewer[2])) {
      uint32_t r = update(id, base);
      if (r == no_record) return false;
      if (!records_[r].gone) locate(r);
    } else if (base != nullptr) {
      locate(base->record);
    }
  }
  size_t at = 0;
  for (size_t context = 0; coder_.bit(m.more[context]); context = 1) {
    for (;; at++) {
      if (at == bases_n_) return false;
      const Baseline &b = bases_[at];
      if (b.id == viewer_) continue;
      if (coder_.bit(m.member[records_[b.record].rests ? 1 : 0][age(b.record)])) break;
    }
    if (update(bases_[at].id, &bases_[at]) == no_record) return false;
    at++;
  }
  int64_t id = -1;
  for (size_t context = 2; coder_.bit(m.more[context]); context = 3) {
    int64_t before = id;
    id += 1 + coder_.rare(&m, rare_id, 12);
    if (id <= before || id > 65535 || id == viewer_) return false;
    if (base_of(static_cast<uint16_t>(id)) != nullptr ||
        update(static_cast<uint16_t>(id), nullptr) == no_record)
      return false;
  }
  return true;
}

uint32_t StateImpl::update(uint16_t id, const Baseline *base) {
  StateModels &m = models_[64];
  if (updated_n_ == max_updates) return no_record;
  uint32_t to = take();
  if (to == no_record) return to;
  updated_[updated_n_++] = to;
  Record &r = records_[to];
  r.id = id;
  r.number = work_.number;
  r.tick = work_.tick;
  r.gone = coder_.bit(m.gone[base != nullptr ? 1 : 0]);
  if (r.gone) return to;
  if (base != nullptr && !coder_.bit(m.regenerated)) {
    r.generation = records_[base->record].generation;
    delta(to, base->record);
  } else {
    r.generation = static_cast<uint8_t>(coder_.raw(8));
    whole(to);
  }
  r.rests = plan_.rests(row(to));
  r.zero = plan_.zero(row(to));
  return coder_.bad() ? no_record : to;
}

size_t StateImpl::known_at(uint16_t id) const {
  size_t from = 0, to = known_n_;
  while (from < to) {
    size_t mid = (from + to) / 2;
    if (known_[mid].id < id)
      from = mid + 1;
    else
      to = mid;
  }
  return from;
}

// link adds a record to the records of its object, which are in descending order of numbers.
void StateImpl::link(uint32_t record) {
  Record &r = records_[record];
  size_t at = known_at(r.id);
  if (at == known_n_ || known_[at].id != r.id) {
    for (size_t i = known_n_; i > at; i--) known_[i] = known_[i - 1];
    known_[at] = {r.id, no_record};
    known_n_++;
  }
  uint32_t *place = &known_[at].newest;
  while (*place != no_record && records_[*place].number > r.number) place = &records_[*place].older;
  r.older = *place;
  *place = record;
}

// clear_packets discards all packets and baselines.
void StateImpl::clear_packets(uint64_t final) {
  for (Packet &p : packets_) p = Packet();
  for (size_t i = 0; i < known_n_; i++) release_chain(&known_[i].newest);
  known_n_ = 0;
  sweep_due_ = false;
  if (final > final_) final_ = final;
}

void StateImpl::settle(uint64_t floor) {
  if (floor <= floor_) return;
  floor_ = floor;
  uint64_t to = floor - (floor < reorder_limit - 1 ? floor : reorder_limit - 1);
  uint64_t end = to < final_ + 64 ? to : final_ + 64;
  for (uint64_t n = final_; n < end; n++) {
    Packet &p = slot(n);
    if (p.kept && p.number == n) settle_packet(p);
  }
  if (to > final_) final_ = to;
}

// settle_packet releases the records that the updates of a packet replace.
void StateImpl::settle_packet(Packet &p) {
  for (uint32_t r = p.first; r != no_record; r = records_[r].next) {
    release_chain(&records_[r].older);
    sweep_due_ = sweep_due_ || records_[r].gone;
  }
  p.first = no_record;
}

// sweep removes objects whose removal is settled.
void StateImpl::sweep() {
  if (!sweep_due_) return;
  sweep_due_ = false;
  size_t n = 0;
  for (size_t i = 0; i < known_n_; i++) {
    Known k = known_[i];
    const Record &r = records_[k.newest];
    if (r.gone && r.older == no_record && r.number < final_)
      release(k.newest);
    else
      known_[n++] = k;
  }
  known_n_ = n;
}

void StateImpl::accept(const Header &h, StateUpdate *u) {
  uint64_t n = h.number, before = newest_;
  bool is_ahead = ahead(n), had = any_;
  stats_.packets++;
  u->number = n;
  u->tick = work_.tick;
  u->late = !is_ahead;
  u->first = is_first(h);
  if (u->first) {
    for (TickSlot &t : log_) t = TickSlot();
  }
  accept_inputs(u);
  if (!is_ahead) {
    stats_.reordered++;
    stats_.lost -= stats_.lost > 0 ? 1 : 0;
  } else if (had) {
    stats_.lost += n - before - 1;
  }
  // In ascending order of ids.
  for (size_t i = 1; i < updated_n_; i++) {
    for (size_t k = i; k > 0 && records_[updated_[k]].id < records_[updated_[k - 1]].id; k--) {
      uint32_t swap = updated_[k];
      updated_[k] = updated_[k - 1];
      updated_[k - 1] = swap;
    }
  }
  u->objects = updated_n_;
  if (is_ahead && keyframe_ && (!had || h.epoch != epoch_)) {
    clear_packets(n - (n < reorder_limit - 1 ? n : reorder_limit - 1));
    epoch_ = h.epoch;
    restart_ = false;
  } else if (is_ahead) {
    uint64_t end = n < before + 64 ? n : before + 64;
    for (uint64_t k = before + 1; k <= end; k++) {
      const Packet *p = k < reorder_limit ? nullptr : find(k - reorder_limit);
      if (p != nullptr && p->base != p->number) settle(p->base);
    }
    settle(n - (n < max_distance ? n : max_distance));
    for (uint64_t k = before + 1; k <= end; k++) slot(k) = Packet(); // replaces packet k - 64
  }
  mark(n);
  if (is_ahead || n + reorder_limit > before) {
    size_t at = n % 64, fields = plan_.n;
    work_.kept = true;
    for (size_t i = updated_n_; i > 0; i--) {
      Record &r = records_[updated_[i - 1]];
      r.next = work_.first;
      work_.first = updated_[i - 1];
      link(updated_[i - 1]);
    }
    packets_[at] = work_;
    models_[at] = models_[64];
    for (size_t i = 0; i < fields; i++) fields_[at * fields + i] = fields_[64 * fields + i];
    if (work_.input_bytes > 0)
      std::memcpy(last_inputs_.data() + at * config_.input_bytes,
                  last_inputs_.data() + size_t{64} * config_.input_bytes, work_.input_bytes);
    shown_ = true;
  }
  sweep();
}

// accept_inputs stores the inputs that are new.
void StateImpl::accept_inputs(StateUpdate *u) {
  for (size_t i = 0; i < ticks_n_; i++) {
    const TickSlot &t = ticks_[i];
    TickSlot &known = log_[static_cast<uint64_t>(t.tick) % 64];
    if (known.tick > t.tick || (known.tick == t.tick && (known.known || !t.known))) continue;
    known = t;
    news_[news_n_++] = static_cast<uint8_t>(i);
  }
  u->inputs = news_n_;
}

StateObject StateImpl::do_object(size_t i) const {
  StateObject o;
  if (i >= updated_n_) return o;
  const Record &r = records_[updated_[i]];
  o.id = r.id;
  o.generation = r.generation;
  o.removed = r.gone;
  if (!r.gone) o.components = row(updated_[i]);
  return o;
}

TickInputs StateImpl::do_inputs(size_t i) const {
  TickInputs out;
  if (i >= news_n_) return out;
  const TickSlot &t = ticks_[news_[i]];
  out.tick = t.tick;
  out.missing = !t.known;
  if (t.known) out.inputs = {tick_data_.data() + news_[i] * size_t{config_.input_bytes}, t.size};
  return out;
}

size_t StateImpl::do_ack(uint8_t *to) const {
  AckForm a;
  a.request = restart_ ? 1 : 0;
  a.none = !any_;
  if (!any_) return write_ack(a, to);
  uint64_t window = 0;
  for (uint64_t i = 0; i < 63 && i < newest_; i++) {
    if (find(newest_ - 1 - i) != nullptr) window |= UINT64_C(1) << i;
  }
  a.whole = (window >> 62 & 1) == 0;
  a.length = static_cast<uint8_t>(bit_length(a.whole ? window : ~window & (UINT64_MAX >> 1)));
  a.window = a.length == 0 ? 0 : window & UINT64_MAX >> (64 - a.length);
  a.epoch = epoch_;
  bool is_long = a.whole || a.request != 0 || a.length == 63 || a.epoch > 7;
  a.newest = static_cast<uint16_t>(is_long ? newest_ & 0xffff : newest_ & 0x3ff);
  return write_ack(a, to);
}

} // namespace uplink::detail::state

namespace uplink {

using detail::state::StateImpl;

namespace {

StateImpl &impl(StateReceiver &r) {
  return static_cast<StateImpl &>(r);
}
const StateImpl &impl(const StateReceiver &r) {
  return static_cast<const StateImpl &>(r);
}

// rest_of returns the index of the field that marks rest, or -1.
int rest_of(const detail::SchemaImpl &s, const char *name) {
  for (size_t i = 0; i < s.infos.size(); i++) {
    if (s.infos[i].is_integer() && std::strcmp(s.infos[i].name, name) == 0) return static_cast<int>(i);
  }
  return -1;
}

} // namespace

Error StateReceiver::create(const Allocator &a, const Schema &objects, const StateConfig &c,
                            StateReceiver **out) {
  *out = nullptr;
  auto *r = detail::create<StateImpl>(a, a);
  if (r == nullptr) return Error::no_memory;
  detail::state::StatePlan plan;
  Error e = ObjectType::create(a, objects, &r->type);
  if (e == Error::ok && !plan_of(detail::downlink::impl(*r->type), nullptr, &plan)) e = Error::invalid;
  if (e == Error::ok && c.rest != nullptr) {
    const detail::SchemaImpl &s = detail::impl(objects);
    r->rest_field = rest_of(s, c.rest);
    if (r->rest_field < 0)
      e = Error::invalid;
    else
      plan.rest = static_cast<int>(plan.part_of(s.infos[static_cast<size_t>(r->rest_field)]));
  }
  if (e == Error::ok) e = r->create(plan, c);
  if (e != Error::ok) {
    destroy(r);
    return e;
  }
  *out = r;
  return Error::ok;
}

void StateReceiver::destroy(StateReceiver *r) {
  if (r == nullptr) return;
  StateImpl &i = impl(*r);
  ObjectType::destroy(i.type);
  detail::destroy(i.allocator(), &i);
}

Error StateReceiver::receive(Bytes packet, StateUpdate *u) {
  return impl(*this).do_receive(packet, u);
}
StateObject StateReceiver::object(size_t i) const {
  return impl(*this).do_object(i);
}

Error StateReceiver::get(size_t i, Frame &f) const {
  const StateImpl &r = impl(*this);
  StateObject o = object(i);
  const auto &frame = static_cast<detail::FrameImpl &>(f);
  if (o.components == nullptr || r.type == nullptr ||
      frame.schema->fingerprint() != r.type->schema()->fingerprint())
    return Error::invalid;
  return r.type->restore(o.components, &f);
}

TickInputs StateReceiver::inputs(size_t i) const {
  return impl(*this).do_inputs(i);
}
size_t StateReceiver::ack(uint8_t *to) const {
  return impl(*this).do_ack(to);
}
StateStats StateReceiver::stats() const {
  return impl(*this).counts();
}
void StateReceiver::reset() {
  impl(*this).do_reset();
}

bool next_input(Bytes *inputs, uint8_t *player, Bytes *data) {
  if (inputs->size < 2) return false;
  *player = inputs->data[0];
  *data = {inputs->data + 2, inputs->data[1]};
  size_t n = size_t{2} + data->size;
  *inputs = {inputs->data + n, inputs->size - n};
  return true;
}

} // namespace uplink
