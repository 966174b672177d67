// Events as text.
#include "src/base/text.hpp"
#include "uplink/client.hpp"

namespace uplink {
namespace {

// EventName is the name of a type of events, and what its number and its status say.
struct EventName {
  const char *name;
  const char *value;       // what value is; null: nothing
  const char *statuses[6]; // null: the type has no such status
};

constexpr EventName event_names[] = {
    {"connected", nullptr, {}},
    {"reconnecting", "wait in ns", {}},
    {"disconnected", nullptr, {}},
    {"bound", nullptr, {}},
    {"bind_failed", "reason of the server", {}},
    {"message", nullptr, {}},
    {"answer",
     "request",
     {nullptr, nullptr, "answered", "refused by the game", "not handled by the server",
      "no answer will come"}},
    {"shutdown", nullptr, {}},
    {"handover", nullptr, {"begins", "the client has switched", "the client stays at its server"}},
    {"world",
     nullptr,
     {"its messages arrive from now on", "the client refused the offer", "it has ended",
      "it is shown although objects of the view are missing"}},
    {"quality", nullptr, {}},
    {"new_socket", nullptr, {}},
    {"server_call", "sequence", {}},
    {"stream_open", "stream", {}},
    {"stream_data", "stream", {}},
    {"stream_end", "stream", {}},
    {"stream_aborted", "stream", {}},
    {"stream_done",
     "stream",
     {"the server has read all", "the server has stopped reading", "the server reads no such streams"}},
    {"world_update", "tick", {}},
    {"tick_message", "tick", {}},
    {"silent", nullptr, {}},
    {"mismatch", nullptr, {"in an RPC", "in a world"}},
    {"tick_rate", "millionths of the nominal rate", {"normal again", "faster or slower than nominal"}},
};
static_assert(sizeof(event_names) / sizeof(event_names[0]) == static_cast<size_t>(EventType::tick_rate) + 1,
              "a name for each type");

const EventName *name_of(EventType t) {
  return t <= EventType::tick_rate ? &event_names[static_cast<size_t>(t)] : nullptr;
}

bool has_text(EventType t) {
  return t == EventType::bind_failed || t == EventType::handover || t == EventType::world ||
         t == EventType::stream_open || t == EventType::stream_aborted || t == EventType::mismatch;
}

} // namespace

const char *text(EventType t) {
  const EventName *n = name_of(t);
  return n == nullptr ? "unknown event" : n->name;
}

const char *status_text(EventType t, uint8_t status) {
  const EventName *n = name_of(t);
  return n == nullptr || status >= 6 || n->statuses[status] == nullptr ? "" : n->statuses[status];
}

size_t describe(const Event &e, char *to, size_t capacity) {
  detail::Text out(to, capacity);
  const EventName *n = name_of(e.type);
  out.add(text(e.type));
  const bool of_world = e.type == EventType::world || e.type == EventType::world_update ||
                        e.type == EventType::tick_message || e.type == EventType::tick_rate ||
                        (e.type == EventType::mismatch && e.status == 1);
  if (of_world)
    out.number(" ", e.world);
  else if (e.type == EventType::bound || e.type == EventType::bind_failed ||
           e.type == EventType::server_call || e.type == EventType::mismatch)
    out.number(" ", e.rpc);
  if (n != nullptr && n->value != nullptr) {
    out.add(", ");
    out.add(n->value);
    out.number(" ", static_cast<long long>(e.value));
  }
  const char *const parts[] = {status_text(e.type, e.status), e.reason == Reason::none ? "" : text(e.reason)};
  for (const char *part : parts) {
    if (part[0] == 0) continue;
    out.add(": ");
    out.add(part);
  }
  if (e.data.size > 0 && has_text(e.type)) {
    out.add(": ");
    for (size_t i = 0; i < e.data.size; i++) {
      const uint8_t c = e.data.data[i];
      out.add(c < ' ' || c == 127 ? '?' : static_cast<char>(c));
    }
  } else if (e.data.size > 0) {
    out.number(", ", static_cast<long long>(e.data.size));
    out.add(" bytes");
  }
  return out.end();
}

} // namespace uplink
