#include "src/client/path_rate.hpp"

#include <algorithm>
#include <cstdlib>

namespace uplink::detail::client {
namespace {

uint32_t units(uint64_t now) {
  return static_cast<uint32_t>(now / report_unit);
}
double seconds(uint64_t time) {
  return static_cast<double>(time) / 1e6;
}
// per_second returns bytes per second. The time is in units of report_unit.
double per_second(float bytes, uint32_t in) {
  return double{bytes} / seconds(in * report_unit);
}

} // namespace

void Departures::add(uint64_t now, uint64_t number, size_t size) {
  const uint32_t at = units(now);
  const auto n = static_cast<uint16_t>(size);
  if (count_ == 0 || at - ring_[(count_ - 1) % groups].at >= spacing_) {
    Group &g = ring_[count_++ % groups];
    g = {};
    g.number = static_cast<uint32_t>(number);
    g.at = at;
    g.before = bytes_;
    g.smallest = n;
  }
  Group &g = ring_[(count_ - 1) % groups];
  g.last = static_cast<uint16_t>(at - g.at);
  g.smallest = std::min(g.smallest, n);
  g.largest = std::max(g.largest, n);
  bytes_ += n;
}

bool Departures::find(uint64_t now, uint32_t number, uint32_t next, Departure *d) {
  uint32_t after = next, end = bytes_;
  for (uint32_t i = count_; i > 0 && i + groups > count_; i--) {
    const Group &g = ring_[(i - 1) % groups];
    if (static_cast<int32_t>(number - g.number) >= 0) {
      cover(now, g.at);
      const uint32_t count = after - g.number, size = end - g.before, n = number - g.number + 1;
      const auto up_to = static_cast<uint32_t>(uint64_t{size} * n / count);
      d->at = g.at;
      if (count > 1) // they left at about equal intervals, or all at once
        d->at += static_cast<uint32_t>(uint64_t{g.last} * (n - 1) / (count - 1));
      d->bytes = g.before + up_to;
      d->group = static_cast<uint32_t>(std::min<uint64_t>(uint64_t{n} * g.largest, size));
      d->size = g.smallest;
      return true;
    }
    after = g.number;
    end = g.before;
  }
  spacing_ = std::min(2 * spacing_, max_spacing);
  return false;
}

void Departures::cover(uint64_t now, uint32_t at) {
  const uint64_t age = units(now) - at;
  spacing_ = static_cast<uint32_t>(std::clamp<uint64_t>(3 * age / (2 * groups), min_spacing, max_spacing));
}

double Departures::rate(uint64_t now) const {
  const Group &oldest = ring_[(count_ - std::min(count_, groups)) % groups];
  const uint64_t time = (units(now) - oldest.at) * report_unit;
  return static_cast<double>(bytes_ - oldest.before) / seconds(std::max<uint64_t>(time, 10000));
}

void PathRate::start(uint64_t now) {
  *this = {};
  changed_ = units(now);
  proven_at_ = now;
}

void PathRate::restart() {
  rate_ = loss_ = 0;
  limited_ = drains_ = measured_ = false;
  variation_ = last_queue_ = queue_ = 0;
  delivered_[0] = delivered_[1] = {};
  reports_ = 0;
  late_ = lossy_ = 0;
  counted_ = newest_;
  lost_ = missing_;
}

void PathRate::departed(uint64_t now, uint64_t number, size_t size) {
  fill(now);
  departures_.add(now, number, size);
  streams_ -= static_cast<double>(size);
}

void PathRate::fill(uint64_t now) {
  const double passed = now > filled_ ? seconds(now - filled_) : 0;
  filled_ = std::max(filled_, now);
  double rate = this->rate();
  if (drains_) rate *= std::max(1 - static_cast<double>(queue_) / drain_time, min_drain);
  // The balance is between one second of debt and a burst.
  streams_ = std::max(std::min(streams_ + passed * rate, stream_burst * rate), -rate);
}

double PathRate::stream_room(uint64_t now) {
  fill(now);
  denied_ = denied_ || streams_ <= 0;
  return streams_;
}

double PathRate::rate() const {
  return rate_ == 0 ? start_rate : rate_;
}

void PathRate::echoed(uint64_t now, uint64_t excess) {
  if (excess > max_excess) return;
  proven_ = rate();
  proven_at_ = now;
}

bool PathRate::reported(uint64_t now, const Report &r, uint64_t next) {
  const auto back = static_cast<uint16_t>(next - r.newest);
  if (back == 0 || back > next) return false;
  const uint32_t number = static_cast<uint32_t>(next) - back;
  if (!known_) {
    known_ = true;
    newest_ = UINT32_MAX; // the number before the first one
  }
  const auto sent = static_cast<int32_t>(number - newest_);
  if (sent <= 0) return true;
  const uint32_t got = static_cast<uint16_t>(r.count - count_);
  if (got > static_cast<uint32_t>(sent) + missing_) return false;
  missing_ += static_cast<uint32_t>(sent) - got;
  if (now - report_at_ >= max_gap) { // what was lost while the server was not there shows nothing
    counted_ = number;
    lost_ = missing_;
    lossy_ = 0;
  }
  report_at_ = now;
  if (const uint32_t n = number - counted_; n >= loss_sample) {
    measure_loss(static_cast<double>(static_cast<int32_t>(missing_ - lost_)) / n);
    counted_ = number;
    lost_ = missing_;
  }
  Departure d;
  if (!departures_.find(now, number, static_cast<uint32_t>(next), &d)) {
    if (departures_.widest()) delayed(now);
  } else {
    measure(now, r, d, std::min(static_cast<float>(got) / static_cast<float>(sent), 1.0F));
  }
  newest_ = number;
  count_ = r.count;
  return true;
}

void PathRate::measure(uint64_t now, const Report &r, const Departure &d, float share) {
  // The report can have arrived before a later datagram of the group left, by which d.at is estimated.
  const auto age = static_cast<int32_t>(units(now) - d.at);
  if (age >= static_cast<int32_t>(max_gap / report_unit)) {
    delayed(now);
    return;
  }
  late_ = 0;
  const auto delay = static_cast<uint16_t>(r.arrived - d.at);
  if (!measured_) {
    measured_ = true;
    base_at_ = now;
    base_[0] = base_[1] = {delay, d.size};
  } else if (now - heard_ >= max_gap) {
    delivered_[0] = delivered_[1] = {};
  } else {
    Delivery &v = delivered_[0];
    const auto bytes = static_cast<float>(d.bytes - last_.bytes);
    v.sent += bytes;
    v.arrived += share * bytes;
    v.sent_in += d.at - last_.at;
    v.arrived_in += static_cast<uint16_t>(r.arrived - arrived_);
  }
  last_ = d;
  arrived_ = r.arrived;
  heard_ = now;
  double sent = 0, rate = 0;
  rates(&sent, &rate);
  if (delivered_[0].arrived_in >= rate_span) {
    delivered_[1] = delivered_[0];
    delivered_[0] = {};
  }
  uint16_t size = d.size;
  int64_t queue = above(now, delay, &size);
  if (rate > 0) { // the time that the path needs for the datagrams of the group is no queue
    const double own = d.group - std::min<uint32_t>(d.group, size);
    const double most = limited_ ? std::max(rate, this->rate()) : rate;
    queue -= static_cast<int64_t>(std::min(own / most * 1e6, static_cast<double>(queue)));
  }
  variation_ += (std::abs(queue - last_queue_) - variation_) / 16;
  last_queue_ = queue;
  if (static_cast<int32_t>(d.at - changed_) < 0) return;
  if (reports_ == 0) {
    first_ = d;
    least_ = INT64_MAX;
  }
  reports_++;
  least_ = std::min(least_, queue);
  const uint64_t left = (d.at - first_.at) * report_unit;
  if (sent == 0 || rate == 0) return;
  if ((left >= min_span && reports_ >= min_reports) || (left >= long_span && reports_ >= few_reports))
    decide(now, left, sent, rate);
}

void PathRate::delayed(uint64_t now) {
  if (late_ == 0) late_at_ = now;
  late_ = std::min<uint8_t>(late_ + 1, late_reports);
  if (late_ == late_reports && now - late_at_ >= late_time) {
    late_ = 0;
    fill(now);
    knee_ = rate_ = std::max(std::min(rate(), departures_.rate(now)) / 2, worst_rate);
    limited_ = true;
  }
  reports_ = 0;
  heard_ = 0;
  changed_ = units(now);
}

void PathRate::measure_loss(double share) {
  lossy_ = share < excessive ? 0 : static_cast<uint8_t>(std::min(lossy_ + 1, 255));
  loss_ += (std::clamp(share, 0.0, max_loss) - loss_) / 4;
}

void PathRate::rates(double *sent, double *arrived) const {
  const Delivery &a = delivered_[0], &b = delivered_[1];
  if (const uint32_t in = a.arrived_in + b.arrived_in; in >= rate_span / 2)
    *arrived = per_second(a.arrived + b.arrived, in);
  if (const uint32_t in = a.sent_in + b.sent_in; in >= rate_span / 2) *sent = per_second(a.sent + b.sent, in);
}

int64_t PathRate::above(uint64_t now, uint16_t delay, uint16_t *size) {
  if (now - base_at_ >= base_span) {
    base_[1] = base_[0];
    base_[0] = {delay, *size};
    base_at_ = now;
  }
  for (Base &b : base_)
    if (static_cast<int16_t>(delay - b.delay) < 0) b = {delay, *size};
  const Base &b = static_cast<int16_t>(base_[1].delay - base_[0].delay) < 0 ? base_[1] : base_[0];
  *size = b.size;
  return static_cast<int64_t>(static_cast<uint16_t>(delay - b.delay) * report_unit);
}

void PathRate::decide(uint64_t now, uint64_t span, double sent, double delivered) {
  const int64_t queue = least_, usual = std::min(variation_, max_variation) / 2;
  const bool filled = queue > emptied + usual;
  if (drains_ && filled) { // all that the path carries
    knee_ = std::max(knee_, std::min(delivered / (1 - loss_), max_raise * knee_));
    rate_ = std::min(std::max(kept * knee_, std::min(rate_, min_rate)), std::max(rate_, most()));
  }
  if (drains_) { // losses are those of the queue that drains
    lossy_ = 0;
    counted_ = newest_;
    lost_ = missing_;
  }
  const uint64_t passed = std::min<uint64_t>((units(now) - changed_) * report_unit, 1000000);
  if (congested(queue, usual) || lossy_ >= sustained) {
    if (!drains_ || now - since_ > max_drain || queue > queue_) reduce(now, sent, delivered);
  } else if (drains_) {
    if (!filled || now - since_ >= max_drain) {
      fill(now);
      drains_ = false;
    }
  } else if (queue <= threshold / 2 + usual) {
    if (!denied_ && sent < used * rate()) {
      unuse(now);
    } else if (now - proven_at_ <= max_silence) {
      grow(sent, static_cast<double>(last_.bytes - first_.bytes) / seconds(span), delivered / (1 - loss_),
           passed);
    }
  }
  queue_ = queue;
  changed_ = units(now);
  reports_ = 0;
  denied_ = false;
}

bool PathRate::congested(int64_t queue, int64_t usual) const {
  if (limited_) return queue > threshold + usual;
  const int64_t jitter = std::min(variation_, max_variation);
  return std::min(queue_, queue) > threshold + jitter || queue > long_queue + jitter;
}

void PathRate::grow(double sent, double latest, double delivered, uint64_t passed) {
  unused_ = 0;
  const double before = rate();
  if (!limited_) {
    if (delivered > arrives * sent) rate_ = std::max(rate(), start_growth * std::min(rate(), latest / used));
  } else if (rate_ < nearby * knee_) {
    rate_ *= 1 + slowly * seconds(passed);
    growth_ = first_growth;
  } else if (delivered > arrives * sent) {
    rate_ *= std::min(1 + growth_ * seconds(passed), max_factor);
    growth_ = std::min(faster * growth_, quickly);
  }
  rate_ = std::min(rate_, std::max(before, most()));
}

double PathRate::most() const {
  return unproven_growth * std::max(proven_, start_rate);
}

void PathRate::reduce(uint64_t now, double sent, double delivered) {
  fill(now);
  const double before = limited_ ? rate() : sent;
  const double least = lossy_ >= sustained && least_ > threshold ? worst_rate : min_rate;
  if (before <= least) return;
  double knee = std::min(std::max(delivered / (1 - loss_), sent / 8), std::max(sent, before));
  if (limited_ && now - since_ < max_drain) // little was sent, so that the last queue drains
    knee = std::max(knee, min_fall * knee_);
  knee_ = knee;
  rate_ = std::max(kept * knee_, least);
  limited_ = drains_ = true;
  since_ = now;
  unused_ = 0;
  lossy_ = 0;
}

void PathRate::unuse(uint64_t now) {
  if (!limited_) return;
  if (unused_ == 0) {
    unused_ = now;
  } else if (now - unused_ >= unused_time) {
    limited_ = false;
    unused_ = 0;
  }
}

} // namespace uplink::detail::client
