#include "src/client/datagram.hpp"

namespace uplink::detail::client {

bool parse_header(Bytes d, DatagramHeader *h) {
  if (d.size == 0 || d.size > max_datagram) return false;
  const uint8_t first = d.data[0];
  *h = {};
  h->form = static_cast<Form>(first >> 6);
  if (h->form == Form::handshake) return false;
  if (h->form == Form::data) {
    if (d.size < 2) return false;
    h->size = 2;
    h->low = (first & 0x3fU) << 8 | d.data[1];
    return true;
  }
  h->kind = first >> 3 & 7;
  const bool extended = h->form == Form::extended;
  h->size = extended ? 11 : 3;
  if (d.size < h->size) return false;
  if (extended) h->connection = load_little(d.data + 1, 8);
  h->low = (first & 7U) << 16 | static_cast<uint32_t>(load_little(d.data + h->size - 2, 2));
  return true;
}

size_t format_header(uint8_t *to, Form form, uint8_t kind, uint64_t connection, uint64_t number) {
  if (form == Form::data) {
    to[0] = static_cast<uint8_t>(0xc0 | (number >> 8 & 0x3f));
    to[1] = static_cast<uint8_t>(number);
    return 2;
  }
  const bool extended = form == Form::extended;
  to[0] =
      static_cast<uint8_t>((extended ? 0x40U : 0U) | static_cast<unsigned>(kind) << 3 | (number >> 16 & 7));
  if (extended) store_little(to + 1, 8, connection);
  store_little(to + (extended ? 9 : 1), 2, number);
  return extended ? 11 : 3;
}

bool Window::complete(uint32_t low, unsigned width, uint64_t *number) const {
  const uint64_t size = uint64_t{1} << width;
  const uint64_t ahead = (low - next_) & (size - 1);
  if (ahead >= size / 2) {
    const uint64_t behind = size - ahead;
    if (behind > next_ || behind > 1024) return false;
    *number = next_ - behind;
    return !accepted(*number);
  }
  *number = next_ + ahead;
  return *number >= next_;
}

bool Window::accepted(uint64_t number) const {
  return number < next_ && (bits_[number / 64 % 16] >> number % 64 & 1) != 0;
}

void Window::accept(uint64_t number) {
  if (number >= next_) {
    if (number - next_ >= 1024)
      std::memset(bits_, 0, sizeof(bits_));
    else
      for (uint64_t n = next_; n < number; n++) bits_[n / 64 % 16] &= ~(uint64_t{1} << n % 64);
    next_ = number + 1;
  }
  bits_[number / 64 % 16] |= uint64_t{1} << number % 64;
}

size_t format_hello(uint8_t to[max_sent], const Hello &h) {
  ByteWriter w({to, max_sent});
  w.little(0x80, 1);
  w.little(4, 2);
  w.little(h.nonce, 8);
  w.bytes({h.cookie, 24});
  w.bytes({h.key_id, 4});
  w.little(h.route.size, 1);
  w.bytes(h.route);
  w.little(h.message.size, 2);
  w.bytes(h.message);
  const size_t least = h.message.size > 0 ? 67 : 64;
  if (w.size() < least) w.zeros(least - w.size());
  return w.ok() ? w.size() : 0;
}

bool parse_handshake(Bytes d, Handshake *h) {
  Reader r(d);
  const uint64_t first = r.little(1);
  h->type = static_cast<HandshakeType>(first & 0x3f);
  if (first >> 6 != 2) return false;
  if (first == 0x84) {
    h->data = r.rest();
    return d.size == 3 || d.size == 4 || d.size == 12;
  }
  h->nonce = r.little(8);
  h->data = r.rest();
  return (first == 0x81 && d.size == 33) || (first == 0x82 && d.size == 67) ||
         (first == 0x83 && d.size == 10);
}

bool parse_heartbeat(Bytes body, Heartbeat *h) {
  if (body.size != heartbeat_size) return false;
  h->ask = static_cast<uint32_t>(load_little(body.data, 4));
  h->echo = static_cast<uint32_t>(load_little(body.data + 4, 4));
  h->hold = static_cast<uint32_t>(load_little(body.data + 8, 3));
  h->answer = (body.data[11] & 1) != 0;
  h->largest = body.data[11] >> 1;
  return h->largest <= excess(max_datagram);
}

void format_heartbeat(uint8_t to[heartbeat_size], const Heartbeat &h) {
  store_little(to, 4, h.ask);
  store_little(to + 4, 4, h.echo);
  store_little(to + 8, 3, h.hold);
  to[11] = static_cast<uint8_t>((h.answer ? 1U : 0U) | static_cast<unsigned>(h.largest) << 1);
}

bool parse_report(Bytes body, Report *r, Bytes *message) {
  if (body.size < report_size) return false;
  r->newest = static_cast<uint16_t>(load_little(body.data, 2));
  r->arrived = static_cast<uint16_t>(load_little(body.data + 2, 2));
  r->count = static_cast<uint16_t>(load_little(body.data + 4, 2));
  *message = {body.data + report_size, body.size - report_size};
  return true;
}

void format_report(uint8_t to[report_size], const Report &r) {
  store_little(to, 2, r.newest);
  store_little(to + 2, 2, r.arrived);
  store_little(to + 4, 2, r.count);
}

bool parse_part(Bytes body, DatagramPart *p) {
  if (body.size <= part_header) return false;
  const auto v = static_cast<uint16_t>(load_little(body.data, 2));
  p->offset = v & 0x7ff;
  p->index = v >> 11 & 3;
  p->count = static_cast<uint8_t>((v >> 13 & 3) + 1);
  p->reliable = v >> 15 != 0;
  p->data = {body.data + part_header, body.size - part_header};
  return p->count > 1 && p->index < p->count && p->offset + p->data.size <= max_datagram &&
         (p->index == 0) == (p->offset == 0);
}

size_t format_part(uint8_t *to, const DatagramPart &p) {
  const unsigned v = p.offset | static_cast<unsigned>(p.index) << 11 |
                     static_cast<unsigned>(p.count - 1) << 13 | (p.reliable ? 0x8000U : 0U);
  store_little(to, 2, v);
  copy(to + part_header, p.data.data, p.data.size);
  return part_header + p.data.size;
}

} // namespace uplink::detail::client
