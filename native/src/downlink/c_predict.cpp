// The flat C interface of prediction and of the clock.
#include "src/base/c_api.hpp"
#include "src/base/memory.hpp"
#include "uplink/clock.hpp"
#include "uplink/predict.hpp"
#include "uplink/uplink_state.h"

using namespace uplink::detail::c_api;

// HeldHistory is an InputHistory with the memory of its sequence numbers.
struct uplink::detail::c_api::HeldHistory {
  uplink::Allocator allocator;
  uplink::detail::Array<uint64_t> sequences;
  uplink::InputHistory inputs{nullptr, 1, 0};
};

struct uplink::detail::c_api::HeldClock {
  uplink::Allocator allocator;
  uplink::ServerClock clock;
};

namespace {

template <typename T> void destroy(T *p) {
  if (p == nullptr) return;
  const uplink::Allocator a = p->allocator;
  uplink::detail::destroy(a, p);
}

} // namespace

uplink_error uplink_input_history_create(const uplink_allocator *a, int32_t max_inputs, double tolerance,
                                         uplink_input_history **out) {
  *out = nullptr;
  if (max_inputs < 1 || max_inputs > 65536) return UPLINK_INVALID;
  const size_t n = static_cast<size_t>(max_inputs);
  auto *h = uplink::detail::create<HeldHistory>(of(a));
  if (h == nullptr) return UPLINK_NO_MEMORY;
  h->allocator = of(a);
  if (!h->sequences.create(h->allocator, n)) {
    destroy(h);
    return UPLINK_NO_MEMORY;
  }
  h->inputs = uplink::InputHistory(h->sequences.data(), n, tolerance);
  *out = made<uplink_input_history>(h);
  return UPLINK_OK;
}
void uplink_input_history_destroy(uplink_input_history *h) {
  destroy(gone<HeldHistory>(h));
}
uplink_error uplink_input_history_apply(uplink_input_history *h, uint64_t sequence, size_t *slot) {
  return code(in(h)->inputs.apply(sequence, slot));
}
int32_t uplink_input_history_correct(uplink_input_history *h, uint64_t processed) {
  return in(h)->inputs.correct(processed) ? 1 : 0;
}
size_t uplink_input_history_waiting(const uplink_input_history *h) {
  return in(h)->inputs.waiting();
}
size_t uplink_input_history_slot(const uplink_input_history *h, size_t i) {
  return in(h)->inputs.slot(i);
}
int32_t uplink_input_history_corrected(uplink_input_history *h, double distance) {
  return in(h)->inputs.corrected(distance) ? 1 : 0;
}
void uplink_input_history_reset(uplink_input_history *h) {
  in(h)->inputs.reset();
}
void uplink_input_history_stats(const uplink_input_history *h, uplink_prediction_stats *s) {
  const uplink::PredictionStats own = in(h)->inputs.stats();
  store(
      {0, own.inputs, own.replayed, own.states, own.late, own.corrections, own.sum, own.largest, own.dropped},
      s);
}

uplink_error uplink_server_clock_create(const uplink_allocator *a, uplink_server_clock **out) {
  auto *c = uplink::detail::create<HeldClock>(of(a));
  *out = made<uplink_server_clock>(c);
  if (c == nullptr) return UPLINK_NO_MEMORY;
  c->allocator = of(a);
  return UPLINK_OK;
}
void uplink_server_clock_destroy(uplink_server_clock *c) {
  destroy(gone<HeldClock>(c));
}
void uplink_server_clock_observe(uplink_server_clock *c, uint64_t now, uint64_t server) {
  in(c)->clock.observe(now, server);
}
int32_t uplink_server_clock_server(uplink_server_clock *c, uint64_t now, uint64_t one_way, uint64_t *time) {
  return in(c)->clock.server(now, one_way, time) ? 1 : 0;
}
