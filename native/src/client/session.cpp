#include "src/client/session.hpp"

#include <algorithm>

namespace uplink::detail::client {
namespace {

// A server requests a heartbeat each second. If no request arrives for heartbeat_interval, the
// client sends one.
constexpr uint64_t heartbeat_interval = 1500 * ms;

// Time in addition to 1.5 round trips for which streams may send without acknowledgments.
constexpr uint64_t flight_time = 100 * ms;

Reason reason_of_close(uint8_t code) {
  static const Reason reasons[] = {Reason::quit,      Reason::shutdown, Reason::replaced,
                                   Reason::violation, Reason::limit,    Reason::refused};
  return code < 6 ? reasons[code] : Reason::quit;
}

} // namespace

bool Bucket::take(uint64_t n, uint64_t rate, uint64_t burst, uint64_t now) {
  const uint64_t gained = std::min(now - at, 100 * second) * rate / second;
  if (at == 0) {
    level = burst;
    at = now;
  } else if (gained > 0) {
    level = std::min(level + gained, burst);
    at = now;
  }
  if (level < n) return false;
  level -= n;
  return true;
}

void Session::configure(const Allocator &a, const Crypto &c, uint8_t offered, uint64_t timeout) {
  parts_.configure(a);
  crypto_ = c;
  offered_ = offered;
  timeout_ = timeout;
}

void Session::end(Reason r) {
  state_ = State::idle;
  reason_ = r;
  closes_ = 0;
}

void Session::close(uint8_t code, Reason reason, uint64_t now) {
  if (state_ == State::connecting) end(reason);
  if (state_ != State::open) return;
  state_ = State::closing;
  reason_ = reason;
  closes_ = 3;
  close_code_ = code;
  hello_at_ = now;
}

void Session::extend(uint64_t now, uint64_t time) {
  long_ = true;
  long_until_ = std::max(long_until_, now + time);
}

void Session::accepted(uint8_t kind, uint64_t now) {
  received_ = now;
  loss_at_ = never;
  stats_.received++;
  if (kind != challenge) {
    served_ = now;
    asked_ = never;
    wait_ = 2 * second;
    if (long_ && now >= long_until_) long_ = false;
  }
  if (kind == data || kind == reliable || kind == part) busy_ = true;
}

bool Session::receive(Bytes d, uint64_t now, uint8_t *kind, Bytes *body) {
  *body = {};
  if (d.size == 0 || d.size > max_datagram || state_ == State::idle || state_ == State::closing) return false;
  now = std::max({now, started_, received_}); // it can have arrived before
  if (d.data[0] >> 6 == 2) return handshake(d, now);
  DatagramHeader h;
  uint64_t n = 0;
  size_t size = 0;
  if (state_ != State::open || !parse_header(d, &h) || h.form == Form::extended ||
      !window_.complete(h.low, h.width(), &n) ||
      !opener_.open(n, {d.data, h.size}, {d.data + h.size, d.size - h.size}, body_, &size))
    return false;
  const uint64_t next = window_.next();
  const bool newest = n >= next;
  if (newest)
    stats_.missing += n - next;
  else if (stats_.missing > 0)
    stats_.missing--;
  window_.accept(n);
  accepted_number_ = n;
  const bool load = h.kind == data || h.kind == reliable || h.kind == part;
  arrivals_.arrived(now, n, newest, load ? d.size + ip_size : 0);
  accepted(h.kind, now);
  if (h.kind != probe) largest_ = std::max(largest_, static_cast<uint16_t>(d.size));
  *kind = h.kind;
  Bytes all = {body_, size};
  switch (h.kind) {
  case data:
    if (h.form == Form::brief) {
      Report r;
      if (!parse_report(all, &r, &all) || !rate_.reported(now, r, number_)) break;
    }
    if (newest || n + 64 >= next) *body = all;
    break;
  case reliable:
    *body = all;
    break;
  case heartbeat:
    on_heartbeat(all, now);
    break;
  case DatagramKind::close:
    on_close(all);
    break;
  case challenge:
    if (size != 8 || !challenges_.take(1, 100, 20, now)) break;
    if (now - served_ >= 500 * ms) forget_path();
    extend(now, 12 * second);
    if (responses_n_ == 4) break;
    copy(responses_[responses_n_], body_, 8);
    responses_[responses_n_++][8] = generation_;
    break;
  case part:
    if (const Assembly::Body *b = parts_.add(n, all)) {
      if (!b->reliable && b->first + 64 < window_.next()) break;
      accepted_number_ = b->first;
      *kind = b->reliable ? reliable : data;
      *body = {b->data, b->size};
    }
    break;
  case probe:
    if (size == 2)
      size_.answered(now, load_little(body_, 2));
    else if (std::all_of(body_, body_ + size, [](uint8_t x) { return x == 0; }) &&
             answers_.take(1, 20, 20, now))
      probe_answer_ = static_cast<uint16_t>(d.size);
    break;
  default:
    break;
  }
  return true;
}

bool Session::on_unknown(Bytes b, uint64_t now) {
  DatagramHeader h;
  if (state_ != State::open || !parse_header(b, &h) || h.size != b.size || number_ == 0) return false;
  const uint64_t back = (number_ - 1 - h.low) & ((uint64_t{1} << h.width()) - 1);
  if (back >= std::min<uint64_t>(number_, 256)) return false;
  const uint8_t mask = h.form == Form::data ? 0xc0 : 0xf8;
  if ((b.data[0] & mask) != forms_[(number_ - 1 - back) & 255]) return false;
  if (h.form == Form::extended) {
    if (h.connection != connection_ || loss_at_ != never) return false;
    loss_at_ = now + second;
    beat(true);
    return true;
  }
  if (!long_) beat(true);
  extend(now, second);
  return true;
}

void Session::on_heartbeat(Bytes body, uint64_t now) {
  Heartbeat h;
  if (!parse_heartbeat(body, &h)) return;
  if (path_.echoed(now, h.echo, h.hold)) rate_.echoed(now, path_.excess());
  peer_ = h.ask;
  peer_at_ = now;
  if (size_.reported(now, path_.rtt(), h.largest)) rate_.restart(); // the losses were no congestion
  if (!h.answer || !answers_.take(1, 20, 20, now)) return;
  beat(false);
  probe_ = size_.searching();
}

void Session::on_close(Bytes body) {
  if (body.size == 0 || body.size > 65) return;
  end(reason_of_close(body.data[0]));
}

bool Session::idle() const {
  return sent_ - calm_ >= 5 * second && !size_.searching();
}

uint64_t Session::interval() const {
  const uint64_t every = std::min<uint64_t>(9 * second, timeout_ * 6 / 10);
  if (loss_at_ != never) return 250 * ms;
  if (asked_ != never && sent_ >= served_ + second) return 250 * ms;
  if (!idle()) return heartbeat_interval;
  return served_ < sent_ ? 250 * ms : every;
}

void Session::advance(uint64_t now) {
  if (state_ == State::connecting) {
    if (now >= fail_at_)
      end(refusal_);
    else if (now - started_ >= timeout_)
      end(refusal_ == Reason::none ? Reason::timeout : refusal_);
    return;
  }
  if (state_ != State::open) return;
  if (now >= loss_at_) {
    end(Reason::lost);
    return;
  }
  if (now - received_ >= timeout_) {
    end(Reason::timeout);
    return;
  }
  if (now - served_ >= 500 * ms) extend(now, 0);
  if (now - sent_ >= interval() && beat_ == 0 && !first_) {
    beat(true);
    probe_ = size_.searching();
  }
  if (asked_ != never && now - asked_ >= wait_) {
    deaf_ = true;
    asked_ = now;
    wait_ = static_cast<uint32_t>(std::min(2 * uint64_t{wait_}, 16 * second));
  }
}

bool Session::take_deaf() {
  const bool d = deaf_;
  deaf_ = false;
  return d;
}

void Session::rebind(uint64_t now) {
  if (state_ != State::open) return;
  generation_++;
  asked_ = now;
  forget_path();
  extend(now, second);
  beat(true);
}

size_t Session::send_probe(Buffer to, uint64_t now) {
  probe_ = false;
  if (to.capacity < max_datagram) return 0;
  const uint16_t size = size_.probe(now, path_.rtt(), received_);
  if (size == 0) return 0;
  static const uint8_t zeros[max_datagram] = {};
  return seal(to.data, probe, {zeros, size - around(probe)}, now);
}

uint64_t Session::timeout() const {
  switch (state_) {
  case State::connecting:
    return std::min({hello_at_, fail_at_, started_ + timeout_});
  case State::closing:
    return 0;
  case State::open:
    if (beat_ != 0 || responses_n_ > 0 || probe_ || probe_answer_ != 0 || !splitter_.empty()) return 0;
    return std::min({loss_at_, received_ + timeout_, sent_ + interval(), report_at(),
                     asked_ == never ? never : asked_ + wait_});
  default:
    return never;
  }
}

size_t Session::send_heartbeat(uint8_t to[max_sent], uint64_t now) {
  Heartbeat h;
  uint8_t random[4] = {};
  if (crypto_.random(crypto_.context, random, 4)) {
    h.ask = std::max<uint32_t>(static_cast<uint32_t>(load_little(random, 4)), 1);
    path_.ask(now, h.ask);
  }
  h.answer = beat_ == 2;
  h.largest = excess(largest_);
  largest_ = 0;
  if (peer_ != 0 && now - peer_at_ < 1U << 24) {
    h.echo = peer_;
    h.hold = static_cast<uint32_t>(now - peer_at_);
  }
  if (busy_ || first_) calm_ = now;
  busy_ = first_ = false;
  sent_ = now;
  if (h.answer && asked_ == never) asked_ = now;
  beat_ = 0;
  uint8_t body[heartbeat_size];
  format_heartbeat(body, h);
  return seal(to, heartbeat, {body, sizeof(body)}, now);
}

size_t Session::next(Buffer b, uint64_t now) {
  uint8_t *to = b.data;
  if (state_ == State::connecting) return now >= hello_at_ ? send_hello(to, now) : 0;
  if (state_ == State::closing) {
    const size_t n = seal(to, DatagramKind::close, {&close_code_, 1}, now);
    if (--closes_ == 0) end(reason_);
    return n;
  }
  if (state_ != State::open) return 0;
  if (!splitter_.empty()) return send_part(to, now);
  if (beat_ != 0) return send_heartbeat(to, now);
  if (responses_n_ > 0) return seal(to, response, {responses_[--responses_n_], 9}, now);
  if (probe_answer_ != 0) {
    uint8_t body[2];
    store_little(body, 2, probe_answer_);
    probe_answer_ = 0;
    return seal(to, probe, {body, 2}, now);
  }
  return probe_ ? send_probe(b, now) : 0;
}

size_t Session::send(uint8_t *to, uint8_t kind, Bytes body, uint64_t now) {
  if (body.size > (kind == data ? max_data() : max_body)) return 0;
  busy_ = true;
  const size_t size = around(kind) + body.size, limit = size_.limit(now, kind);
  if (size <= limit) {
    size_.whole(now, kind, size);
    return kind == data && reports(body.size, now) ? send_report(to, body, now) : seal(to, kind, body, now);
  }
  splitter_.start(kind, body, limit - around(part) - part_header);
  if (size_.split(now)) {
    if (idle()) beat(true); // makes the server report each second from now on
    probe_ = true;
  }
  return send_part(to, now);
}

Allowance Session::streams(uint64_t now) {
  const double time = (1.5 * static_cast<double>(path_.rtt()) + flight_time) / second;
  return {rate_.stream_room(now), rate_.rate() * time};
}

size_t Session::send_part(uint8_t *to, uint64_t now) {
  uint8_t body[max_datagram];
  const size_t n = splitter_.next(body);
  size_.whole(now, part, around(part) + n);
  return seal(to, part, {body, n}, now);
}

size_t Session::seal(uint8_t *to, uint8_t kind, Bytes body, uint64_t now) {
  const size_t header = format_header(to, form_of(long_, kind), kind, connection_, number_);
  copy(to + header, body.data, body.size);
  return finish(to, header, body.size, now);
}

size_t Session::send_report(uint8_t *to, Bytes message, uint64_t now) {
  const size_t header = format_header(to, Form::brief, data, connection_, number_);
  format_report(to + header, arrivals_.take(now));
  copy(to + header + report_size, message.data, message.size);
  return finish(to, header, report_size + message.size, now);
}

size_t Session::finish(uint8_t *to, size_t header, size_t n, uint64_t now) {
  if (!sealer_.seal(number_, {to, header}, to + header, n)) return 0;
  forms_[number_ & 255] = static_cast<uint8_t>(to[0] & (to[0] >> 6 == 3 ? 0xc0 : 0xf8));
  const size_t size = header + n + sealer_.overhead();
  rate_.departed(now, number_, size + ip_size);
  number_++;
  stats_.sent++;
  stats_.sent_bytes += size;
  return size;
}

void Session::fill(Stats *s) const {
  *s = stats_;
  s->rtt = path_.rtt() * 1000;
  s->min_rtt = path_.min_rtt() * 1000;
  s->path_rate = static_cast<uint64_t>(rate_.rate());
  s->path_queue = rate_.queue() * 1000;
  s->suite = suite_;
  s->datagram_size = size_.size();
}

} // namespace uplink::detail::client
