// Messages of a world with areas. The first byte is the number of messages of a golden session that
// the decoder receives before those of the input.
#include "fuzz/input.hpp"

#include "uplink/snapshot.hpp"

using namespace uplink;

namespace {

constexpr size_t max_history = 8;

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const fuzz::Session session("internal/replication/areas/testdata/moves.session", "take");
  fuzz::Results results;
  if (size == 0) return 0;
  std::vector<ObjectType *> types;
  for (const std::vector<ObjectField> &fields : session.types) {
    types.push_back(nullptr);
    fuzz::check(ObjectType::create({}, fields.data(), fields.size(), &types.back()) == Error::ok, "type");
  }
  AreaDecoder *d = nullptr;
  fuzz::check(AreaDecoder::create({}, types.data(), types.size(), &d) == Error::ok, "create");
  SnapshotInfo info;
  for (size_t i = 0; i < data[0] % (max_history + 1); i++)
    (void)d->decode(fuzz::bytes(session.messages[i]), &info);
  fuzz::Entries entries(data + 1, size - 1);
  for (Bytes message; entries.next(&message);) {
    const Error e = d->decode(message, &info);
    fuzz::check(e == Error::ok || e == Error::malformed || e == Error::no_baseline || e == Error::stale ||
                    e == Error::desync,
                "error");
    for (size_t k = 0; k < types.size(); k++) {
      const Objects o = d->shown(k);
      results.add(o);
      fuzz::check(o.n <= max_objects, "number of objects");
      for (size_t i = 0; i < o.n; i++) {
        fuzz::check(i == 0 || o.objects[i].id > o.objects[i - 1].id, "ids ascend");
        fuzz::check_row(session.types[k], o.row(i));
      }
    }
    results.end(e);
    uint8_t ack[max_ack];
    const size_t n = d->ack(ack);
    fuzz::check(n > 0 && n <= max_ack, "size of an ack");
  }
  AreaDecoder::destroy(d);
  for (ObjectType *t : types) ObjectType::destroy(t);
  return 0;
}
