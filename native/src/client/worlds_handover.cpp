// Worlds during a handover: worlds of the other server, and the switch to them.
#include <algorithm>

#include "src/client/worlds.hpp"

namespace uplink::detail::client {

void Worlds::prepare(Worlds *next) const {
  for (size_t i = 0; i < list_.size(); i++)
    if (list_[i].receiver != nullptr) prepare(next, i);
}

void Worlds::prepare(Worlds *next, size_t i) const {
  const Subscription &s = list_[i];
  WorldReceiver *spare = s.receiver->spare();
  if (spare != nullptr)
    next->subscribe(&next->list_[i], spare, s.receiver, {reinterpret_cast<const uint8_t *>(s.name), s.name_n},
                    s.ack_rate);
}

Worlds::Progress Worlds::prepared(const Worlds &next, uint64_t now) const {
  Progress least = Progress::complete;
  for (size_t i = 0; i < list_.size(); i++)
    if (list_[i].phase == Phase::subscribed) least = std::min(least, next.progress(next.list_[i], now));
  return least;
}

Worlds::Progress Worlds::progress(const Subscription &s, uint64_t now) const {
  if (s.any || s.phase == Phase::refused) return Progress::complete;
  if (s.phase == Phase::requesting) return Progress::arriving;
  if (s.phase == Phase::none || s.arrived == 0) return Progress::absent;
  return filled(s, offers_[s.number].offer.rate, now) ? Progress::complete : Progress::arriving;
}

bool Worlds::reached(uint8_t number, uint64_t tick) const {
  const Subscription *s = number < offers_.size() ? offers_[number].subscription : nullptr;
  return s == nullptr || s->phase != Phase::subscribed || (s->any && s->newest >= tick);
}

void Worlds::adopt(Worlds *before) {
  for (size_t i = 0; i < list_.size(); i++)
    if (before->list_[i].receiver != nullptr) continue_with(&list_[i], &before->list_[i]);
  for (Offered &o : before->offers_) o.subscription = nullptr;
}

void Worlds::continue_with(Subscription *s, Subscription *before) {
  WorldReceiver *receiver = before->receiver, *spare = s->receiver;
  const bool was = before->changed || before->phase == Phase::subscribed;
  if (spare == nullptr) {
    receiver->end();
    subscribe(s, receiver, nullptr, {reinterpret_cast<uint8_t *>(before->name), before->name_n},
              before->ack_rate);
  } else {
    receiver->end();
    if (s->phase == Phase::subscribed) receiver->adopt(spare);
    // Further messages are decoded as this offer declares, not as the former server's.
    if (s->phase == Phase::requesting) (void)receiver->accepts(offers_[s->number].offer, &s->report);
    receiver->discard(spare);
    s->receiver = receiver;
    s->owner = nullptr;
  }
  s->changed = s->changed || was;
  s->told = before->told;
  s->updated = s->any;
  s->shown = s->any || before->shown;
  // Tick messages of the former server are delivered first.
  for (Held *h = before->first; h != nullptr; h = h->next) h->due = true;
  if (before->first != nullptr) {
    before->last->next = s->first;
    if (s->first == nullptr) s->last = before->last;
    s->first = before->first;
    s->held += before->held;
  }
  before->first = before->last = nullptr;
  before->held = 0;
  set_phase(before, Phase::none);
  before->receiver = nullptr;
}

void Worlds::discard() {
  for (Subscription &s : list_) {
    if (s.owner == nullptr) continue;
    s.owner->discard(s.receiver);
    s.receiver = s.owner = nullptr;
    set_phase(&s, Phase::none);
  }
  for (Offered &o : offers_) o.subscription = nullptr;
}

} // namespace uplink::detail::client
