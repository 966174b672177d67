// Bodies of the reliable channel, for an end that has sent a message. 10 ms pass before and after
// each body. The conversation number of each body is replaced by the correct one.
#include "fuzz/input.hpp"

#include "src/client/channel.hpp"

using namespace uplink;
using namespace uplink::detail::client;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  constexpr uint32_t conversation = 0x77665544;
  Channel c;
  fuzz::check(c.create({}, 32768), "create");
  c.start(conversation, 15000, 55, 0);
  const fuzz::Data sent(3000);
  fuzz::check(c.send(fuzz::bytes(sent)), "send");
  fuzz::Data message(max_reliable);
  fuzz::Data out(1173);
  size_t inputs = 1, outputs = 0;
  uint64_t now = 0;
  const auto step = [&] {
    now += 10;
    while (const size_t n = c.output(out.data(), now)) {
      fuzz::check(n <= out.size(), "size of a body");
      outputs++;
    }
  };
  step();
  fuzz::Entries entries(data, size);
  for (Bytes b; entries.next(&b); inputs++) {
    fuzz::Data body(b.data, b.data + b.size);
    if (body.size() >= 4) store_little(body.data(), 4, conversation);
    (void)c.input(fuzz::bytes(body), now);
    while (const size_t n = c.next_size()) {
      fuzz::check(n <= max_reliable, "size of a message");
      if (n > max_reliable || c.receive(message.data()) == 0) break;
    }
    step();
  }
  fuzz::check(outputs <= 10 * inputs, "bodies sent for bodies received");
  return 0;
}
