// Payloads of snapshots. The first byte selects a golden session, the second the number of its
// payloads that the decoder receives before those of the input.
#include "fuzz/input.hpp"

#include "uplink/snapshot.hpp"

using namespace uplink;

namespace {

constexpr size_t max_history = 16;

void check_objects(const std::vector<ObjectField> &fields, const Objects &o) {
  fuzz::check(o.n <= max_objects, "number of objects");
  for (size_t i = 0; i < o.n; i++) {
    fuzz::check(i == 0 || o.objects[i].id > o.objects[i - 1].id, "ids ascend");
    fuzz::check_row(fields, o.row(i));
  }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const fuzz::Session sessions[] = {{"internal/snapshot/testdata/cubes.session", "send"},
                                           {"internal/snapshot/testdata/ground.session", "send"},
                                           {"internal/snapshot/testdata/kinds.session", "send"},
                                           {"internal/snapshot/testdata/physics.session", "send"}};
  fuzz::Results results;
  if (size < 2) return 0;
  const fuzz::Session &session = sessions[data[0] % 4];
  const std::vector<ObjectField> &fields = session.types[0];
  ObjectType *type = nullptr;
  SnapshotDecoder *d = nullptr;
  fuzz::check(ObjectType::create({}, fields.data(), fields.size(), &type) == Error::ok &&
                  SnapshotDecoder::create({}, *type, {}, &d) == Error::ok,
              "create");
  SnapshotInfo info;
  Objects o;
  for (size_t i = 0; i < data[1] % (max_history + 1) && i + 1 < session.messages.size(); i++)
    (void)d->decode(fuzz::bytes(session.messages[i]), &info, &o);
  fuzz::Entries entries(data + 2, size - 2);
  for (Bytes payload; entries.next(&payload);) {
    const Error e = d->decode(payload, &info, &o);
    if (e == Error::ok) {
      check_objects(fields, o);
      results.add(o);
    }
    results.end(e);
    fuzz::check(e == Error::ok || e == Error::malformed || e == Error::no_baseline || e == Error::stale ||
                    e == Error::desync,
                "error");
    uint8_t ack[max_ack];
    const size_t n = d->ack(ack);
    fuzz::check(n > 0 && n <= max_ack, "size of an ack");
  }
  SnapshotDecoder::destroy(d);
  ObjectType::destroy(type);
  return 0;
}
