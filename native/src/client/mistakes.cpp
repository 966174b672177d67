#include "src/client/mistakes.hpp"

#include <algorithm>

#include "src/base/nearest.hpp"
#include "src/client/core.hpp"

namespace uplink::detail::client {

namespace {

Bytes nearest_of(Bytes name, const Names &names) {
  Nearest nearest(name);
  Unpacker u(names.items);
  for (size_t i = 0; i < names.n; i++) nearest.consider(u.string());
  return nearest.best();
}

void add_nearest(Text *to, Bytes best) {
  if (best.size == 0) return;
  to->add(", nearest ");
  to->quote(best);
}

void add_names(Text *to, const Names &names) {
  Unpacker u(names.items);
  for (size_t i = 0; i < names.n; i++) {
    if (i > 0) to->add(", ");
    to->quote(u.string());
  }
}

// add_only adds the names that only one end has.
void add_only(Text *to, const char *end, const Names &names, const Names &other) {
  Unpacker u(names.items);
  for (size_t i = 0; i < names.n; i++) {
    const Bytes name = u.string();
    if (to->size() > 0) to->add("; ");
    to->add("only the ");
    to->add(end);
    to->add(" has ");
    to->quote(name);
    add_nearest(to, nearest_of(name, other));
  }
}

} // namespace

void explain_answer(Text *to, const Schema &s, const BindAnswer &a) {
  char field[max_report];
  switch (a.reason) {
  case 0:
    to->add("the server has another prior, or a ring of one frame");
    break;
  case 1:
    to->add("the server has no RPC ");
    to->quote(text_bytes(s.rpc()));
    add_nearest(to, nearest_of(text_bytes(s.rpc()), a.known));
    if (a.known.n > 0) to->add("; it has ");
    add_names(to, a.known);
    break;
  case 2: {
    const size_t n =
        a.field < s.fields() ? s.description(static_cast<size_t>(a.field), field, sizeof(field)) : 0;
    const Bytes here = {reinterpret_cast<const uint8_t *>(field), std::min(n, sizeof(field) - 1)};
    to->add("a field cannot be converted: here ");
    to->quote(here);
    if (a.theirs.size > 0) {
      to->add(", at the server ");
      to->quote(a.theirs);
      break;
    }
    to->add(", and the server has none with this name");
    const uint8_t *space = std::find(here.data, here.data + here.size, uint8_t{' '});
    add_nearest(to, nearest_of({here.data, static_cast<size_t>(space - here.data)}, a.answering));
    break;
  }
  case 3:
    to->add("the server has no such codec; it has ");
    add_names(to, a.known);
    break;
  case 6:
  case 7:
    to->add(a.reason == 6 ? "calls per second are more than the server permits, or next to none; it permits "
                          : "the server has a fixed number of calls per second for it: ");
    to->real(a.limit);
    break;
  case 8:
    to->add("the server has a jitter buffer for it, which takes no reliable calls");
    break;
  default:
    to->number("the server refuses it for reason ", static_cast<long long>(a.reason));
    if (a.theirs.size == 0) break;
    to->add(": ");
    to->quote(a.theirs);
  }
}

void Core::tell_mismatch(uint8_t rpc, Text *text) {
  Event e;
  e.type = EventType::mismatch;
  e.rpc = rpc;
  const size_t n = text->end();
  e.data = {reinterpret_cast<const uint8_t *>(text->text()), n};
  events_.push(e);
}

void Core::tell_differences(uint8_t rpc, const BindAnswer &a) {
  if (a.asking.n + a.answering.n == 0 || rpcs_[rpc].told) return;
  rpcs_[rpc].told = true;
  char buffer[max_report];
  Text text(buffer, sizeof(buffer));
  add_only(&text, "client", a.asking, a.answering);
  add_only(&text, "server", a.answering, a.asking);
  tell_mismatch(rpc, &text);
}

void Core::tell_refused(const ServerBind &r, const ServerBindAnswer &a) {
  char buffer[max_report];
  Text text(buffer, sizeof(buffer));
  text.add("the server calls ");
  text.quote(r.name);
  if (a.reason == 1) {
    text.add(", which the program does not handle");
    add_nearest(&text, a.known);
  } else {
    text.number(", which the client refuses for reason ", a.reason);
    if (a.theirs.size > 0) text.add(": ");
    if (a.theirs.size > 0) text.quote(a.theirs);
  }
  tell_mismatch(0, &text);
}

} // namespace uplink::detail::client
