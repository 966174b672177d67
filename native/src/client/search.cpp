// The search for another server while the current one is silent. The program is asked for further
// servers as long as none has answered. The client keeps trying the earlier ones, which may be
// slow.
#include <algorithm>

#include "src/client/core.hpp"

namespace uplink::detail::client {
namespace {

// A server counts as unresponsive after max_silence. Before that, the client requests answers from
// it.
constexpr uint64_t max_silence = 1250 * ms, probe_silence = 500 * ms, probe_interval = 250 * ms,
                   tell_interval = 2 * second;
// While no server answers, the program is asked again after search_wait or two round trips,
// whichever is longer. After soon_attempts servers the wait doubles each time.
constexpr uint64_t search_wait = 200 * ms;
constexpr unsigned soon_attempts = 4, most_doublings = 4;

bool same(const Address &a, const Address &b) {
  return a.family == b.family && a.port == b.port && std::memcmp(a.ip, b.ip, sizeof(a.ip)) == 0;
}

} // namespace

void Core::do_unreachable(const Address &server, uint64_t now) {
  const Address &own = server.family == 0 ? config_.server : server;
  for (Link *l = links_; l != nullptr; l = l->next)
    if (same(l->server, server)) l->session.unreachable(is_loopback(own), now);
  step(now);
}

bool Core::uses(const Address &server) const {
  for (const Link *l = links_; l != nullptr; l = l->next)
    if (same(l->server, server) && l->session.state() != State::idle) return true;
  return false;
}

Error Core::continue_at(const Address &server, const char *token, size_t n, uint64_t now) {
  if (!is_open()) return Error::closed;
  if (standby_ != nullptr && !notice_->asked) return Error::full;
  auto *to = detail::create<Notice>(allocator_);
  if (to == nullptr) return Error::no_memory;
  const Error e = parse_token(config_.crypto, token, n, &to->token);
  if (e != Error::ok) {
    detail::destroy(allocator_, to);
    return e;
  }
  to->asked = true;
  to->servers[0] = server;
  to->n = 1;
  continued_at_ = now;
  attempts_ = standby_ == nullptr ? 1 : attempts_ + 1;
  if (standby_ == nullptr || standby_->session.answered()) {
    seek(to, now);
    return Error::ok;
  }
  size_t links = 0;
  Link *oldest = nullptr;
  for (Link *l = links_; l != nullptr; l = l->next, links++) {
    if (l->role != Role::standby && l->role != Role::seeking) continue;
    oldest = l;
    if (!same(l->server, server)) continue;
    detail::destroy(allocator_, to); // already being tried
    promote(*l);
    return Error::ok;
  }
  standby_->role = Role::seeking;
  standby_ = nullptr;
  if (links >= max_links) {
    abandon(*oldest, now);
    remove_links();
  }
  detail::destroy(allocator_, notice_);
  seek(to, now);
  return Error::ok;
}

// answers reports whether the current server has answered recently.
bool Core::answers(uint64_t now) const {
  return active_->is_open() && active_->session.silence(now) < max_silence;
}

// seeking returns the newest link to a server that has not answered, other than the standby.
Link *Core::seeking() const {
  for (Link *l = links_; l != nullptr; l = l->next)
    if (l->role == Role::seeking) return l;
  return nullptr;
}

// promote makes a link the standby.
void Core::promote(Link &l) {
  standby_->role = Role::seeking;
  l.role = Role::standby;
  standby_ = &l;
  notice_->servers[0] = l.server;
}

// choose makes the first server that has answered the standby. Other servers have not received a
// token, so the client never begins two sessions.
void Core::choose(uint64_t now) {
  for (Link *l = links_; l != nullptr; l = l->next) {
    if (l->role != Role::seeking) continue;
    if (l->session.answered() && !standby_->session.answered())
      promote(*l);
    else if (now - l->since >= dial_wait)
      abandon(*l, now);
  }
  if (standby_ != nullptr && standby_->session.answered()) end_search(now);
}

// end_search ends the attempts to reach servers that have not answered.
void Core::end_search(uint64_t now) {
  while (Link *l = seeking()) abandon(*l, now);
}

// ask_at returns when the program is to be asked for a server.
uint64_t Core::ask_at() const {
  if (standby_ == nullptr) return told_at_ == 0 ? 0 : told_at_ + tell_interval;
  if (!notice_->asked || standby_->session.answered()) return never;
  const unsigned doublings =
      std::min(attempts_ < soon_attempts ? 0 : attempts_ + 1 - soon_attempts, most_doublings);
  return std::max(told_at_, continued_at_) + (std::max(search_wait, 2 * active_->session.rtt()) << doublings);
}

// listen reports to the program that the server does not answer, if the program makes calls.
void Core::listen(uint64_t now) {
  Link &l = *active_;
  if (!l.is_open() || l.shutdown_told || called_at_ == 0 || now - called_at_ > max_silence) return;
  const uint64_t silent = l.session.silence(now);
  if (silent < probe_silence) return;
  if (now - probed_at_ >= probe_interval) {
    probed_at_ = now;
    l.session.ask();
  }
  if (silent < max_silence || now < ask_at()) return;
  told_at_ = now;
  emit(EventType::silent);
}

// listen_at returns when listen is to be called next.
uint64_t Core::listen_at() const {
  if (!active_->is_open() || active_->shutdown_told || called_at_ == 0 || now_ - called_at_ > max_silence)
    return never;
  const uint64_t heard = now_ - active_->session.silence(now_);
  if (now_ < heard + probe_silence) return heard + probe_silence;
  return std::min(probed_at_ + probe_interval, std::max(heard + max_silence, ask_at()));
}

} // namespace uplink::detail::client
