#include "src/client/channel.hpp"

#include <algorithm>

namespace uplink::detail::client {
namespace {

enum Command : uint8_t { push = 81, ack = 82, window_probe = 83, window_size = 84 };
constexpr size_t segment_header = 24;
constexpr size_t max_segments = 1173;
constexpr uint8_t max_transmissions = 20;
constexpr uint64_t flush_interval = 10;
constexpr uint32_t min_flight = 2; // number of segments that may be in flight whatever is allowed
constexpr uint64_t full_budget = 32768, max_budget = 98304;

int32_t difference(uint32_t a, uint32_t b) {
  return static_cast<int32_t>(a - b);
}

// earliest implements K-14: the minimum time from the first transmission to transmission k + 1
// without progress.
uint64_t earliest(uint64_t timeout, uint64_t k) {
  if (k <= 6) return timeout * k * k * k / 1000;
  return timeout * 216 / 1000 + (k - 6) * timeout / 6;
}

// size_of returns the size in bytes of the size prefix of a message.
size_t size_of(size_t message) {
  return message <= 128 ? 1 : 2;
}

} // namespace

Channel::~Channel() {
  for (In &s : in_) drop(&s);
  while (spare_n_ > 0) detail::release(allocator_, spare_[--spare_n_]);
}

bool Channel::create(const Allocator &a, size_t limit, bool share) {
  allocator_ = a;
  stream_.create(a);
  limit_ = limit;
  share_ = share;
  return out_.create(a, window_segments) && in_.create(a, window_segments);
}

void Channel::start(uint32_t conversation, uint64_t timeout, size_t overhead, uint64_t now) {
  for (In &s : in_) drop(&s);
  stream_.clear();
  conversation_ = conversation;
  timeout_ = timeout;
  overhead_ = overhead;
  una_ = nxt_ = first_ = cut_ = message_ = rcv_nxt_ = deliver_ = cursor_ = 0;
  waiting_ = ready_ = delivered_ = 0;
  remote_window_ = 64;
  progress_ = budget_at_ = flush_at_ = now;
  rto_ = 200;
  srtt_ = variance_ = probe_at_ = probe_wait_ = 0;
  budget_ = full_budget;
  acks_n_ = acks_at_ = 0;
  tell_window_ = ask_window_ = flushing_ = dead_ = broken_ = false;
}

size_t Channel::room() const {
  const size_t left = limit_ - stream_.size();
  return left < 2 ? 0 : std::min(left - size_of(left - 1), max_reliable);
}

bool Channel::send(Bytes head, Bytes body) {
  const size_t size = head.size + body.size;
  if (size == 0 || !has_room(size) || !stream_.reserve(size_of(size) + size)) return false;
  const size_t v = size - 1;
  const uint8_t sizes[2] = {static_cast<uint8_t>(v < 128 ? v : (v & 127) | 128),
                            static_cast<uint8_t>(v >> 7)};
  stream_.push({sizes, size_of(size)});
  stream_.push(head);
  stream_.push(body);
  waiting_++;
  return true;
}

// after returns the position in the stream after the message that begins at a position.
uint32_t Channel::after(uint32_t message) const {
  const size_t at = message - first_, low = stream_[at];
  const size_t size = (low < 128 ? low : (low & 127) | size_t{stream_[at + 1]} << 7) + 1;
  return message + static_cast<uint32_t>(size_of(size) + size);
}

void Channel::cut() {
  Out &s = out(nxt_++);
  s.acked = s.fast = false;
  s.transmissions = s.later = 0;
  s.ends = 0;
  s.at = cut_;
  s.size = static_cast<uint16_t>(share_ ? std::min<size_t>(max_segment, tail() - cut_) : after(cut_) - cut_);
  const bool within = message_ != cut_;
  cut_ += s.size;
  if (within && difference(message_, cut_) <= 0) s.ends++;
  while (difference(message_, cut_) < 0) {
    message_ = after(message_);
    if (difference(message_, cut_) <= 0) s.ends++;
  }
}

void Channel::measure(uint64_t rtt) {
  if (srtt_ == 0) {
    srtt_ = std::max<uint64_t>(rtt, 1);
    variance_ = rtt / 2;
  } else {
    const uint64_t d = rtt > srtt_ ? rtt - srtt_ : srtt_ - rtt;
    variance_ = (3 * variance_ + d) / 4;
    srtt_ = std::max<uint64_t>((7 * srtt_ + rtt) / 8, 1);
  }
  rto_ = std::min<uint64_t>(std::max<uint64_t>(srtt_ + std::max(flush_interval, 4 * variance_), 30), 60000);
}

void Channel::acknowledge(uint32_t sn, uint64_t now) {
  Out &s = out(sn);
  if (s.acked || s.transmissions == 0) return;
  s.acked = true;
  waiting_ -= s.ends;
  progress_ = now;
  const uint64_t more = 3 * uint64_t{s.size};
  pay(0, now);
  if (budget_ < max_budget) budget_ = std::min(budget_ + more, max_budget);
}

bool Channel::pay(size_t n, uint64_t now) {
  if (budget_ < full_budget)
    budget_ =
        std::min(budget_ + std::min<uint64_t>(now - budget_at_, 1000) * full_budget / 1000, full_budget);
  budget_at_ = now;
  if (n > budget_) return false;
  budget_ -= n;
  return true;
}

bool Channel::input(Bytes body, uint64_t now) {
  bool valid = body.size > 0;
  for (Reader r(body); valid && r.left() > 0;) {
    const uint64_t conversation = r.little(4), cmd = r.little(1), frg = r.little(1);
    r.bytes(14);
    const uint64_t size = r.little(4);
    valid = r.ok() && conversation == conversation_ && cmd >= push && cmd <= window_size &&
            size <= r.left() && (cmd == push ? size > 0 && size <= max_segment && frg == 0 : size == 0);
    r.bytes(size <= r.left() ? static_cast<size_t>(size) : 0);
  }
  if (!valid) return false;
  bool acked = false;
  uint32_t newest = 0;
  for (Reader r(body); r.left() > 0;) {
    r.little(4);
    const uint64_t cmd = r.little(1);
    r.little(1);
    remote_window_ = static_cast<uint32_t>(r.little(2));
    const uint32_t ts = static_cast<uint32_t>(r.little(4)), sn = static_cast<uint32_t>(r.little(4));
    const uint32_t una = static_cast<uint32_t>(r.little(4));
    const Bytes data = r.bytes(static_cast<size_t>(r.little(4)));
    if (difference(nxt_, una) >= 0)
      for (uint32_t n = una_; difference(una, n) > 0; n++) acknowledge(n, now);
    if (cmd == ack && difference(sn, una_) >= 0 && difference(nxt_, sn) > 0) {
      const int32_t rtt = difference(static_cast<uint32_t>(now), ts);
      if (rtt >= 0) measure(static_cast<uint32_t>(rtt));
      acknowledge(sn, now);
      if (!acked || difference(sn, newest) > 0) newest = sn;
      acked = true;
    } else if (cmd == push && difference(sn, deliver_ + window_segments) < 0) {
      In &s = in(sn);
      if (difference(sn, rcv_nxt_) >= 0 && s.data == nullptr && !keep(&s, data)) continue;
      if (acks_n_ < 128) acks_[acks_n_++] = {sn, ts};
      advance();
    } else if (cmd == window_probe) {
      tell_window_ = true;
    }
  }
  if (acked)
    for (uint32_t n = una_; difference(newest, n) > 0; n++) {
      Out &s = out(n);
      if (!s.acked && s.later < 255) s.later++;
    }
  while (una_ != nxt_ && out(una_).acked) una_++;
  const uint32_t first = una_ == nxt_ ? cut_ : out(una_).at;
  stream_.pop(first - first_);
  first_ = first;
  if (difference(cursor_, una_) < 0) cursor_ = una_;
  return true;
}

bool Channel::keep(In *s, Bytes data) {
  s->data = spare_n_ > 0 ? spare_[--spare_n_] : static_cast<uint8_t *>(allocate(allocator_, max_segment));
  if (s->data == nullptr) return false;
  s->size = static_cast<uint16_t>(data.size);
  copy(s->data, data.data, data.size);
  return true;
}

void Channel::drop(In *s) {
  if (s->data == nullptr) return;
  if (spare_n_ < sizeof(spare_) / sizeof(spare_[0]))
    spare_[spare_n_++] = s->data;
  else
    detail::release(allocator_, s->data);
  s->data = nullptr;
}

void Channel::advance() {
  for (; rcv_nxt_ - deliver_ < window_segments && in(rcv_nxt_).data != nullptr; rcv_nxt_++)
    ready_ += in(rcv_nxt_).size;
}

uint8_t Channel::received(size_t at) {
  uint32_t sn = deliver_;
  at += delivered_;
  for (; at >= in(sn).size; sn++) at -= in(sn).size;
  return in(sn).data[at];
}

size_t Channel::next_size() {
  if (ready_ == 0 || broken_) return 0;
  const size_t low = received(0), head = low < 128 ? 1 : 2;
  if (ready_ >= head) {
    const size_t high = head == 1 ? 0 : received(1);
    broken_ = head == 2 && (high == 0 || high > 127);
    const size_t size = (low & 127) + (high << 7) + 1;
    if (!broken_ && ready_ - head >= size) return size;
  }
  broken_ = broken_ || window() == 0; // the message would never be complete
  return 0;
}

// take removes n bytes that are in order. It copies them to to, unless to is null.
void Channel::take(uint8_t *to, size_t n) {
  ready_ -= n;
  while (n > 0) {
    In &s = in(deliver_);
    const size_t part = std::min<size_t>(n, s.size - delivered_);
    if (to != nullptr) {
      copy(to, s.data + delivered_, part);
      to += part;
    }
    n -= part;
    delivered_ += part;
    if (delivered_ < s.size) return;
    drop(&s);
    deliver_++;
    delivered_ = 0;
  }
}

size_t Channel::receive(uint8_t *to) {
  const size_t size = next_size();
  if (size == 0) return 0;
  const bool closed = window() == 0;
  take(nullptr, size_of(size));
  take(to, size);
  advance();
  if (closed) tell_window_ = true;
  return size;
}

bool Channel::pending() const {
  return !idle() || acks_n_ > 0 || tell_window_;
}

uint64_t Channel::next() const {
  if (flushing_) return 0;
  return pending() ? flush_at_ : UINT64_MAX;
}

void Channel::segment(ByteWriter *w, uint8_t cmd, uint32_t ts, uint32_t sn, size_t size) const {
  w->little(conversation_, 4);
  w->little(cmd, 1);
  w->little(0, 1);
  w->little(window(), 2);
  w->little(ts, 4);
  w->little(sn, 4);
  w->little(rcv_nxt_, 4);
  w->little(size, 4);
}

void Channel::begin_flush(uint64_t now, Allowance allowance) {
  flushing_ = true;
  flush_at_ = now + flush_interval;
  acks_at_ = 0;
  if (remote_window_ == 0) {
    if (probe_wait_ == 0) {
      probe_wait_ = 500;
      probe_at_ = now + probe_wait_;
    } else if (now >= probe_at_) {
      probe_wait_ = std::min<uint64_t>(probe_wait_ + probe_wait_ / 2, 120000);
      probe_at_ = now + probe_wait_;
      ask_window_ = true;
    }
  } else {
    probe_wait_ = 0;
  }
  while (cut_ != tail() && nxt_ - una_ < std::min(window_segments, remote_window_) && allowance.room > 0) {
    const size_t around = segment_header + overhead_, flight = cut_ - first_ + (nxt_ - una_) * around;
    if (nxt_ - una_ >= min_flight && static_cast<double>(flight) >= allowance.flight) break;
    const uint32_t before = cut_;
    cut();
    allowance.room -= static_cast<double>(cut_ - before + around);
  }
  cursor_ = una_;
}

bool Channel::wanted(uint32_t sn, uint64_t now) {
  Out &s = out(sn);
  if (s.acked) return false;
  if (s.transmissions == 0) return true;
  if (progress_ <= s.last) {
    if (now < s.first + earliest(timeout_, s.transmissions)) return false;
    if (s.transmissions >= 5 && sn != una_) return false;
  }
  return now >= s.due || (s.later >= 2 && !s.fast);
}

size_t Channel::output(uint8_t *to, uint64_t now, Allowance allowance) {
  if (dead_) return 0;
  if (!flushing_) {
    if (!pending() || now < flush_at_) return 0;
    begin_flush(now, allowance);
  }
  while (true) {
    ByteWriter w({to, max_segments});
    for (; acks_at_ < acks_n_ && w.size() + segment_header <= max_segments; acks_at_++) {
      const Ack &a = acks_[acks_at_];
      if (difference(a.sn, rcv_nxt_) >= 0 || acks_at_ + 1 == acks_n_) segment(&w, ack, a.ts, a.sn);
    }
    if (acks_at_ == acks_n_) acks_n_ = acks_at_ = 0;
    if (tell_window_ && w.size() + segment_header <= max_segments) {
      segment(&w, window_size, 0, 0);
      tell_window_ = false;
    }
    if (ask_window_ && w.size() + segment_header <= max_segments) {
      segment(&w, window_probe, 0, 0);
      ask_window_ = false;
    }
    for (; cursor_ != nxt_; cursor_++) {
      if (!wanted(cursor_, now)) continue;
      Out &s = out(cursor_);
      if (w.size() + segment_header + s.size > max_segments) break;
      if (s.transmissions == 0) {
        s.first = now;
        s.timeout = rto_;
      } else if (now >= s.due) {
        s.timeout += (rto_ + 1) / 2;
        s.fast = false;
      } else {
        s.fast = true;
      }
      s.later = 0;
      s.due = now + s.timeout;
      s.last = now;
      if (++s.transmissions >= max_transmissions) dead_ = true;
      segment(&w, push, static_cast<uint32_t>(now), cursor_, s.size);
      stream_.read(s.at - first_, w.bytes(s.size), s.size);
    }
    if (w.size() == 0) {
      flushing_ = false;
      return 0;
    }
    if (pay(w.size() + overhead_, now)) return w.size();
  }
}

} // namespace uplink::detail::client
