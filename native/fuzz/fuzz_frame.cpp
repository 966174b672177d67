// Payloads of RPCs. The first byte selects a golden session, the second the number of its payloads
// that the decoder receives before those of the input.
#include <cstring>

#include "fuzz/input.hpp"

#include "test/codec/support.hpp"

using namespace uplink;

namespace {

constexpr size_t max_history = 16;

struct Calls {
  support::SchemaOwner schema;
  DecoderConfig config;
  std::vector<fuzz::Data> payloads; // without those that wait for a later one

  explicit Calls(const char *name) {
    std::ifstream in(support::path(std::string("sessions/") + name + ".jsonl"));
    std::string line;
    std::getline(in, line);
    const auto head = support::json::parse(line);
    schema = support::schema(head["schema"]);
    config.codec = head["codec"] == "rle" ? Codec::rle : Codec::adaptive;
    config.rpc = head.value("rpc", uint8_t{0});
    config.ring = head["peer_ring"];
    config.peer_ring = head["ring"];
    while (payloads.size() < max_history && std::getline(in, line)) {
      const auto step = support::json::parse(line);
      if (step.contains("payload")) payloads.push_back(support::bytes(step["payload"]));
    }
    fuzz::check(payloads.size() == max_history, name);
  }
};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const Calls sessions[] = {Calls("rle_kinds"), Calls("adaptive_kinds"), Calls("adaptive")};
  fuzz::Results results;
  if (size < 2) return 0;
  const Calls &session = sessions[data[0] % 3];
  Decoder *d = nullptr, *late = nullptr;
  fuzz::check(Decoder::create({}, *session.schema, session.config, &d) == Error::ok, "create");
  DecoderConfig config = session.config;
  config.deliver_late = true;
  fuzz::check(Decoder::create({}, *session.schema, config, &late) == Error::ok, "create");
  Call calls[max_calls];
  size_t n = 0;
  for (size_t i = 0; i < data[1] % (max_history + 1); i++) {
    (void)d->decode(fuzz::bytes(session.payloads[i]), calls, &n);
    (void)late->decode(fuzz::bytes(session.payloads[i]), calls, &n);
  }
  const support::FrameOwner copy = support::frame(*session.schema);
  fuzz::Entries entries(data + 2, size - 2);
  for (Bytes payload; entries.next(&payload);) {
    const Error e = d->decode(payload, calls, &n);
    fuzz::check((e == Error::ok) == (n > 0) && n <= max_calls, "number of calls");
    for (size_t i = 0; i < n; i++) {
      fuzz::check(i == 0 || calls[i].sequence == calls[i - 1].sequence + 1 + calls[i].missed,
                  "sequences ascend");
      fuzz::check(copy->set_components(calls[i].frame->components(), session.schema->components()) ==
                      Error::ok,
                  "bounds of a component");
      const auto &frame = detail::impl(*calls[i].frame);
      results.add(static_cast<int32_t>(calls[i].sequence));
      for (size_t k = 0; k < frame.schema->component_count; k++) results.add(frame.view.c[k]);
      for (size_t k = 0; k < frame.schema->strings.size(); k++) {
        results.add(frame.view.lengths[k]);
        for (size_t j = 0; j < frame.view.lengths[k]; j++)
          results.add(frame.view.bytes[frame.schema->offsets[k] + j]);
      }
    }
    results.end(e);
    uint8_t ack[max_ack];
    const size_t size_of_ack = d->ack(ack);
    fuzz::check(size_of_ack > 0 && size_of_ack <= max_ack, "size of an ack");

    // Late calls change nothing else.
    const Error other = late->decode(payload, calls, &n);
    fuzz::check(other == e || e == Error::stale, "result with late calls");
    fuzz::check((other == Error::ok) == (n > 0) && n <= max_calls, "number of late calls");
    for (size_t i = 0; i < n; i++) {
      fuzz::check(calls[i].late == (e == Error::stale), "a late call");
      fuzz::check(copy->set_components(calls[i].frame->components(), session.schema->components()) ==
                      Error::ok,
                  "bounds of a late component");
    }
    uint8_t same[max_ack];
    fuzz::check(late->ack(same) == size_of_ack && std::memcmp(same, ack, size_of_ack) == 0, "equal acks");
  }
  Decoder::destroy(d);
  Decoder::destroy(late);
  return 0;
}
