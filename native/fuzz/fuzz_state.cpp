// Packets of state synchronization. The first byte is the number of packets of a golden session
// that the receiver gets before those of the input.
#include "fuzz/input.hpp"

#include "src/downlink/state/receiver.hpp"

using namespace uplink;
using detail::state::StateImpl;
using detail::state::StatePlan;

namespace {

constexpr size_t max_history = 16;

const fuzz::Session &session() {
  static const fuzz::Session s("internal/statesync/testdata/kinds.golden", "packet");
  return s;
}

StatePlan everything() {
  const std::vector<ObjectField> &fields = session().types[0];
  ObjectType *type = nullptr;
  StatePlan p;
  fuzz::check(ObjectType::create({}, fields.data(), fields.size(), &type) == Error::ok, "type");
  p.begin(detail::downlink::impl(*type));
  fuzz::check(p.link(1, 7, 8738) && p.link(3, 4, -17476), "velocities");
  p.finish();
  p.rest = 9;
  ObjectType::destroy(type);
  return p;
}

void check_update(const StateImpl &r, const StateUpdate &u) {
  for (size_t i = 0; i < u.objects; i++) {
    const StateObject o = r.object(i);
    fuzz::check(i == 0 || r.object(i - 1).id < o.id, "ids ascend");
    if (!o.removed) fuzz::check_row(session().types[0], o.components);
  }
  for (size_t i = 0; i < u.inputs; i++) {
    TickInputs t = r.inputs(i);
    uint8_t player = 0;
    Bytes data;
    int before = -1;
    for (; next_input(&t.inputs, &player, &data); before = player)
      fuzz::check(player > before, "players ascend");
    fuzz::check(t.inputs.size == 0, "bytes after the inputs");
  }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const StatePlan plan = everything();
  fuzz::Results results;
  if (size == 0) return 0;
  StateImpl r({});
  StateConfig c;
  c.objects = 100;
  c.updates = 500;
  c.input_bytes = 256;
  fuzz::check(r.create(plan, c) == Error::ok, "create");
  StateUpdate u;
  for (size_t i = 0; i < data[0] % (max_history + 1); i++)
    (void)r.receive(fuzz::bytes(session().messages[i]), &u);
  fuzz::Entries entries(data + 1, size - 1);
  for (Bytes packet; entries.next(&packet);) {
    const Error e = r.receive(packet, &u);
    if (e == Error::ok) {
      check_update(r, u);
      results.add(static_cast<int32_t>(u.tick));
      results.add(static_cast<int32_t>(u.objects));
      for (size_t i = 0; i < u.objects; i++) {
        const StateObject o = r.object(i);
        if (o.removed)
          results.add(o.id);
        else
          results.add(o, o.components, r.plan().components);
      }
    } else {
      fuzz::check(u.objects + u.inputs == 0, "a dropped packet has no update");
    }
    results.end(e == Error::duplicate ? Error::stale : e);
    uint8_t ack[max_ack];
    const size_t n = r.ack(ack);
    fuzz::check(n > 0 && n <= max_ack, "size of an ack");
  }
  return 0;
}
