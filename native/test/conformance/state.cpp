// Layer state.
#include "src/downlink/state/receiver.hpp"
#include "test/conformance/peer.hpp"

namespace peer {

namespace {

using uplink::detail::state::StateImpl;

std::map<std::string, std::unique_ptr<StateImpl>> state_receivers;

std::string state(const Words &w) {
  uplink::detail::state::StatePlan plan;
  plan.begin(uplink::detail::downlink::impl(*type_of(w[2])));
  for (size_t i = 3; i < w.size(); i++) {
    Words parts = split(w[i], ':');
    if (parts.size() != 3 || !plan.link(std::stoul(parts[0]), std::stoul(parts[1]), std::stoll(parts[2])))
      return "error velocity " + w[i];
  }
  plan.finish();
  auto r = std::make_unique<StateImpl>(uplink::Allocator());
  uplink::StateConfig c;
  c.input_bytes = 1024;
  if (r->create(plan, c) != uplink::Error::ok) return "error state";
  state_receivers[w[1]] = std::move(r);
  return "ok";
}

std::string receive(StateImpl &r, const std::string &word) {
  std::vector<uint8_t> b;
  parse_bytes(word, b);
  uplink::StateUpdate u;
  switch (r.receive({b.data(), b.size()}, &u)) {
  case uplink::Error::ok:
    break;
  case uplink::Error::stale:
  case uplink::Error::duplicate:
    return "drop late";
  case uplink::Error::no_baseline:
    return "drop baseline";
  case uplink::Error::desync:
    return "drop desync";
  default:
    return "drop malformed";
  }
  std::string out = "ok " + std::to_string(u.number & 0xffff) + " " + std::to_string(u.tick);
  for (size_t i = 0; i < u.inputs; i++) {
    uplink::TickInputs t = r.inputs(i);
    out += (t.missing ? " missing:" : " tick:") + std::to_string(t.tick);
    uint8_t player;
    uplink::Bytes data;
    while (uplink::next_input(&t.inputs, &player, &data))
      out += ":" + std::to_string(player) + ":" + bytes_word(data.data, data.size);
  }
  for (size_t i = 0; i < u.objects; i++) {
    uplink::StateObject o = r.object(i);
    out += " " + std::to_string(o.id);
    for (size_t k = 0; k < r.plan().components && !o.removed; k++)
      out += (k == 0 ? "." + std::to_string(o.generation) + ":" : ",") + std::to_string(o.components[k]);
  }
  return out;
}

} // namespace

void add_state(Peer &p) {
  p.layers += " state";
  p.requests["state"] = state;
  // Others have requests of these names too, for handles of their own.
  for (const char *name : {"receive", "acks"}) {
    Request before = p.requests[name];
    bool acks = std::string(name) == "acks";
    p.requests[name] = [before, acks](const Words &w) {
      auto r = state_receivers.find(w[1]);
      if (r == state_receivers.end()) return before ? before(w) : std::string("error handle");
      if (!acks) return receive(*r->second, w[2]);
      uint8_t b[uplink::max_ack];
      return "ok " + bytes_word(b, r->second->ack(b));
    };
  }
  p.frees.emplace_back([](const std::string &h) { state_receivers.erase(h); });
}

} // namespace peer
