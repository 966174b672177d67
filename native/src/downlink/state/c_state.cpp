// The flat C interface of the receiver of state.
#include "src/downlink/state/c_state.hpp"

using namespace uplink::detail::c_api;

uplink_error uplink_state_receiver_create(const uplink_allocator *a, const uplink_schema *objects,
                                          const uplink_state_config *c, uplink_state_receiver **out) {
  uplink::StateConfig config;
  uplink::StateReceiver *r = nullptr;
  *out = nullptr;
  if (!config_of(c, &config)) return UPLINK_INVALID;
  const uplink_error e = code(uplink::StateReceiver::create(of(a), *in(objects), config, &r));
  *out = made<uplink_state_receiver>(r);
  return e;
}
void uplink_state_receiver_destroy(uplink_state_receiver *r) {
  uplink::StateReceiver::destroy(gone<uplink::StateReceiver>(r));
}
uplink_error uplink_state_receiver_receive(uplink_state_receiver *r, const uint8_t *packet, size_t n,
                                           uplink_state_update *u) {
  uplink::StateUpdate own;
  const uplink_error e = code(in(r)->receive({packet, n}, &own));
  store(of(own), u);
  return e;
}
void uplink_state_receiver_object(const uplink_state_receiver *r, size_t i, uplink_state_object *o) {
  const uplink::StateObject own = in(r)->object(i);
  store({0, own.id, own.generation, own.removed ? 1 : 0, own.components}, o);
}
uplink_error uplink_state_receiver_get(const uplink_state_receiver *r, size_t i, uplink_frame *f) {
  return code(in(r)->get(i, *in(f)));
}
void uplink_state_receiver_inputs(const uplink_state_receiver *r, size_t i, uplink_tick_inputs *t) {
  const uplink::TickInputs own = in(r)->inputs(i);
  store({0, own.missing ? 1 : 0, own.tick, own.inputs.data, own.inputs.size}, t);
}
size_t uplink_state_receiver_ack(const uplink_state_receiver *r, uint8_t *to) {
  return in(r)->ack(to);
}
void uplink_state_receiver_stats(const uplink_state_receiver *r, uplink_state_stats *s) {
  const uplink::StateStats own = in(r)->stats();
  store({0, own.packets, own.reordered, own.duplicate, own.late, own.no_baseline, own.desync, own.malformed,
         own.full, own.lost},
        s);
}
void uplink_state_receiver_reset(uplink_state_receiver *r) {
  in(r)->reset();
}

int32_t uplink_next_input(uplink_tick_inputs *t, int32_t *player, const uint8_t **data, size_t *n) {
  uplink::Bytes rest = {t->data, t->size}, own;
  uint8_t number = 0;
  if (!uplink::next_input(&rest, &number, &own)) return 0;
  t->data = rest.data;
  t->size = rest.size;
  *player = number;
  *data = own.data;
  *n = own.size;
  return 1;
}
