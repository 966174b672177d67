// The flat C interface of sockets.
#include "src/base/c_api.hpp"
#include "src/base/memory.hpp"
#include "uplink/socket.hpp"

using namespace uplink::detail::c_api;

// HeldSocket is a socket with its allocator.
struct uplink::detail::c_api::HeldSocket {
  uplink::Allocator allocator;
  uplink::Socket socket;
};

uint64_t uplink_now(void) {
  return uplink::now();
}

uplink_error uplink_socket_create(const uplink_allocator *a, uplink_socket **out) {
  auto *s = uplink::detail::create<HeldSocket>(of(a));
  *out = made<uplink_socket>(s);
  if (s == nullptr) return UPLINK_NO_MEMORY;
  s->allocator = of(a);
  return UPLINK_OK;
}
void uplink_socket_destroy(uplink_socket *s) {
  auto *held = gone<HeldSocket>(s);
  if (held != nullptr) uplink::detail::destroy(uplink::Allocator(held->allocator), held);
}
uplink_error uplink_socket_open(uplink_socket *s, const char *server) {
  uplink::Address a;
  const uplink::Error e = uplink::parse_address(server, &a);
  return code(e != uplink::Error::ok ? e : in(s)->socket.open(a));
}
void uplink_socket_run(uplink_socket *s, uplink_client *c) {
  in(s)->socket.run(*in(c));
}
void uplink_socket_wait(uplink_socket *s, uint64_t ns) {
  in(s)->socket.wait(ns);
}
uplink_error uplink_socket_start(uplink_socket *s, const uplink_allocator *a, uplink_client *c) {
  return code(in(s)->socket.start(of(a), *in(c)));
}
void uplink_socket_stop(uplink_socket *s) {
  in(s)->socket.stop();
}
void uplink_socket_release(uplink_socket *s) {
  in(s)->socket.release();
}

static bool conditions_of(const uplink_link_conditions *from, uplink::LinkConditions *to) {
  uplink_link_conditions c;
  if (!load(from, &c)) return false;
  to->loss = c.loss;
  to->duplicate = c.duplicate;
  to->delay = c.delay;
  to->jitter = c.jitter;
  to->seed = c.seed;
  return true;
}

uplink_error uplink_socket_simulate(uplink_socket *s, const uplink_allocator *a,
                                    const uplink_link_conditions *to_server,
                                    const uplink_link_conditions *from_server) {
  uplink::LinkConditions to, from;
  if (!conditions_of(to_server, &to) || !conditions_of(from_server, &from)) return UPLINK_INVALID;
  return code(in(s)->socket.simulate(of(a), to, from));
}
