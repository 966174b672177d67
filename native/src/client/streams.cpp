#include "src/client/streams.hpp"

#include <algorithm>

namespace uplink::detail::client {
namespace {

enum ChunkKind : uint8_t { open_kind, data_kind, end_kind, abort_kind, credit_kind, done_kind };

constexpr size_t max_data = 1146, max_stream_name = 128, max_reason = 256;

// The channel gets data for lead_time at the rate of the path, so that it has data to send until the
// program writes again, and messages about other streams do not wait for long.
constexpr double lead_time = 0.05; // seconds
// segment_time is the time that the path needs for a message of data, if that is not shorter than
// min_data or longer than max_data. On a slow path a longer one would delay other traffic.
constexpr double segment_time = 0.008;
constexpr double min_data = 256;
constexpr size_t segment_size = 1250; // size of a full segment with all headers

// Bytes of the channel's queue that are reserved for messages other than data of the program.
constexpr size_t spare_bytes = 2 * max_segment;

constexpr char reserved_prefix[] = "uplink.", handover[] = "uplink.handover";
constexpr size_t handover_size = sizeof(handover) - 1;

bool reserved(Bytes name) {
  return name.size >= sizeof(reserved_prefix) - 1 &&
         std::memcmp(name.data, reserved_prefix, sizeof(reserved_prefix) - 1) == 0;
}

// data_at returns the maximum size of the data in a message, at the rate of the path.
size_t data_at(double rate) {
  return static_cast<size_t>(std::clamp(segment_time * rate, min_data, static_cast<double>(max_data)));
}

} // namespace

void Streams::start() {
  for (Writer &w : writers_) w = {};
  for (Reader &r : readers_) r = {};
  opens_ = peer_opens_ = bytes_ = {};
  refuses_ = refused_ = arrived_ = false;
  sent_ = complete;
  payload_.clear();
  sending_.clear();
  payload_in_ = payload_out_ = 0;
}

bool Streams::receive(Bytes m, uint64_t now) {
  static const struct {
    size_t least, most;
  } sizes[] = {{1, max_stream_name}, {1, max_data}, {0, 0}, {0, max_reason}, {3, 3}, {1, 1}};
  if (m.size == 0) return false;
  const uint8_t kind = m.data[0] >> 3, n = m.data[0] & 7;
  const Bytes body = {m.data + 1, m.size - 1};
  if (kind > done_kind || body.size < sizes[kind].least || body.size > sizes[kind].most) return false;
  if (kind == open_kind) return on_open(&readers_[n], body, now);
  return kind >= credit_kind ? on_reader(kind, n, body) : on_writer(kind, &readers_[n], body);
}

bool Streams::on_open(Reader *r, Bytes name, uint64_t now) {
  if (!r->done || !peer_opens_.take(1, 32, 40, now)) return false;
  *r = {};
  r->id = next_++;
  r->left = window;
  r->open = true;
  r->done = false;
  if (name.size == handover_size && std::memcmp(name.data, handover, handover_size) == 0) {
    if (!refuses_ && payload_in_ == 0 && payload_.create(allocator_, max_payload)) {
      payload_n_ = 0;
      payload_in_ = r->id;
    } else {
      r->over = refused_ = true;
      r->result = stopped;
    }
    return true;
  }
  Event e;
  e.type = EventType::stream_open;
  e.value = r->id;
  e.data = name;
  if (!reads_ || reserved(name) || !events_.push(e)) {
    r->over = true;
    r->result = unhandled;
  }
  return true;
}

// on_writer handles messages of the writer after the open message.
bool Streams::on_writer(uint8_t kind, Reader *r, Bytes body) {
  if (!r->open) return false;
  Event e;
  e.value = r->id;
  e.data = body;
  if (kind == data_kind) {
    if (body.size > r->left) return false;
    r->left -= static_cast<uint32_t>(body.size);
    e.type = EventType::stream_data;
  } else {
    r->open = false;
    e.type = kind == end_kind ? EventType::stream_end : EventType::stream_aborted;
  }
  if (r->over) return true;
  if (r->id == payload_in_) return on_payload(kind, body);
  return events_.push(e);
}

bool Streams::on_payload(uint8_t kind, Bytes body) {
  if (kind == data_kind) {
    // The window equals the memory and is never extended.
    copy(payload_.data() + payload_n_, body.data, body.size);
    payload_n_ += body.size;
  } else if (kind == end_kind) {
    arrived_ = true;
  } else {
    finish_payload(false);
  }
  return true;
}

size_t Streams::take_payload(Array<uint8_t> *to) {
  to->swap(payload_);
  arrived_ = false;
  return payload_n_;
}

void Streams::finish_payload(bool switched) {
  for (Reader &r : readers_) {
    if (payload_in_ == 0 || r.id != payload_in_ || r.over) continue;
    r.over = true;
    r.result = switched ? complete : stopped;
  }
  payload_in_ = 0;
  arrived_ = false;
  payload_.clear();
}

void Streams::send_payload(Array<uint8_t> *data, size_t n) {
  sending_.swap(*data);
  sending_n_ = n;
  payload_sent_ = 0;
  sent_ = pending;
}

// pump_payload passes as much of the payload to the channel as write does.
void Streams::pump_payload(double rate) {
  if (sent_ != pending) return;
  if (payload_out_ == 0) {
    Writer &w = writers_[0]; // the session is new
    if (!tell(open_kind, 0, {reinterpret_cast<const uint8_t *>(handover), handover_size})) return;
    w.id = payload_out_ = next_++;
    w.credit = window;
  }
  for (Writer &w : writers_) {
    if (w.id != payload_out_ || w.over) continue;
    while (payload_sent_ < sending_n_) {
      const size_t size = std::min(sending_n_ - payload_sent_, data_at(rate));
      if (ahead(rate) || !tell(data_kind, number(&w), {sending_.data() + payload_sent_, size})) return;
      payload_sent_ += size;
    }
    w.over = w.ended = tell(end_kind, number(&w), {});
  }
}

// on_reader handles messages of the reader of a stream that this end writes.
bool Streams::on_reader(uint8_t kind, uint8_t n, Bytes body) {
  Writer &w = writers_[n];
  if (w.id == 0) return false;
  const uint32_t v = static_cast<uint32_t>(load_little(body.data, body.size));
  if (kind == credit_kind) {
    if (v == 0 || v > window - w.credit) return false;
    w.credit += v;
    return true;
  }
  if (v > unhandled || (v == complete && !w.ended)) return false;
  if (w.id == payload_out_) {
    sent_ = static_cast<Result>(v);
    payload_out_ = 0;
    sending_.clear();
    w = {};
    return true;
  }
  Event e;
  e.type = EventType::stream_done;
  e.value = w.id;
  e.status = static_cast<uint8_t>(v);
  w = {};
  return events_.push(e);
}

void Streams::polled(const Event &e) {
  for (Reader &r : readers_) {
    if (r.id != e.value || r.id == 0 || r.over) continue;
    if (e.type == EventType::stream_data) {
      r.read += static_cast<uint32_t>(e.data.size);
    } else if (e.type == EventType::stream_end || e.type == EventType::stream_aborted) {
      r.over = true;
      r.result = e.type == EventType::stream_end ? complete : stopped;
    }
  }
}

bool Streams::tell(uint8_t kind, uint32_t n, Bytes body) {
  const uint8_t head = static_cast<uint8_t>(uint32_t{kind} << 3 | n);
  return channel_.send({&head, 1}, body);
}

void Streams::send(double rate) {
  for (uint32_t n = 0; n < slots; n++) {
    Reader &r = readers_[n];
    if (r.over && !r.done) {
      r.done = tell(done_kind, n, {&r.result, 1});
    } else if (credit_due(r)) {
      uint8_t b[3];
      store_little(b, 3, r.read);
      if (!tell(credit_kind, n, {b, 3})) return;
      r.left += r.read;
      r.read = 0;
    }
  }
  pump_payload(rate);
}

bool Streams::due(double rate) const {
  const bool sending = sent_ == pending && std::any_of(writers_, writers_ + slots, [this](const Writer &w) {
                         return w.id == payload_out_ && !w.over;
                       });
  if (sending && !ahead(rate) && channel_.has_room(1 + std::min(sending_n_ - payload_sent_, data_at(rate))))
    return true;
  return channel_.has_room(4) && std::any_of(readers_, readers_ + slots, [this](const Reader &r) {
           return (r.over && !r.done) || credit_due(r);
         });
}

bool Streams::ahead(double rate) const {
  return static_cast<double>(channel_.unsent()) > lead_time * rate;
}

Streams::Writer *Streams::writer(uint32_t stream) {
  for (Writer &w : writers_)
    if (w.id == stream && stream != 0 && !w.over) return &w;
  return nullptr;
}

Error Streams::open(Bytes name, uint64_t now, uint32_t *stream) {
  if (name.size == 0 || name.size > max_stream_name || reserved(name) || max_rate_ == 0)
    return Error::invalid;
  for (Writer &w : writers_) {
    if (w.id != 0) continue;
    if (!channel_.has_room(1) || !opens_.take(1, 16, 32, now)) return Error::full;
    tell(open_kind, number(&w), name);
    w.id = *stream = next_++;
    w.credit = window;
    return Error::ok;
  }
  return Error::full;
}

Error Streams::write(uint32_t stream, Bytes data, uint64_t now, double rate, size_t *written) {
  *written = 0;
  Writer *w = writer(stream);
  if (w == nullptr) return Error::closed;
  while (*written < data.size) {
    const size_t n = std::min({data.size - *written, data_at(rate), size_t{w->credit}});
    if (n == 0 || ahead(rate) || !channel_.has_room(spare_bytes + 1 + n) ||
        !bytes_.take(n + 64, max_rate_, std::max<uint64_t>(max_rate_ / 16, 2 * segment_size), now))
      break;
    tell(data_kind, number(w), {data.data + *written, n});
    w->credit -= static_cast<uint32_t>(n);
    *written += n;
  }
  return *written == 0 && data.size > 0 ? Error::full : Error::ok;
}

Error Streams::end(uint32_t stream) {
  Writer *w = writer(stream);
  if (w == nullptr) return Error::closed;
  if (!tell(end_kind, number(w), {})) return Error::full;
  w->over = w->ended = true;
  return Error::ok;
}

Error Streams::abort(uint32_t stream, Bytes reason) {
  Writer *w = writer(stream);
  if (w == nullptr) return Error::closed;
  if (reason.size > max_reason) return Error::invalid;
  if (!tell(abort_kind, number(w), reason)) return Error::full;
  w->over = true;
  return Error::ok;
}

bool Streams::busy() const {
  return std::any_of(readers_, readers_ + slots, [](const Reader &r) { return !r.done; }) ||
         std::any_of(writers_, writers_ + slots, [](const Writer &w) { return w.id != 0; });
}

bool Streams::fail() {
  for (Reader &r : readers_) {
    if (r.done) continue;
    Event e;
    e.type = EventType::stream_aborted;
    e.value = r.id;
    const bool tells = r.open && !r.over && r.id != payload_in_;
    if (tells && (events_.room() == 0 || !events_.push(e))) return false;
    r = {};
  }
  for (Writer &w : writers_) {
    if (w.id == 0) continue;
    Event e;
    e.type = EventType::stream_done;
    e.value = w.id;
    e.status = stopped;
    if (w.id != payload_out_ && (events_.room() == 0 || !events_.push(e))) return false;
    w = {};
  }
  return true;
}

Error Streams::stop(uint32_t stream) {
  for (Reader &r : readers_) {
    if (r.id != stream || stream == 0 || r.over) continue;
    r.over = true;
    r.result = stopped;
    return Error::ok;
  }
  return Error::closed;
}

} // namespace uplink::detail::client
