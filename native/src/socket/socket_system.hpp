// The sockets of an operating system.
#pragma once

#include "uplink/client.hpp"

namespace uplink::detail::socket {

// open_socket opens a non-blocking UDP socket that is connected to a server. Its datagrams have the
// flag "don't fragment". *handle is not -1 after success.
Error open_socket(const Address &server, intptr_t *handle);
void close_socket(intptr_t handle);
// send_socket ignores errors, after which the datagram is lost. It reports false if the system
// reports that no program receives at the server's address.
bool send_socket(intptr_t handle, Bytes datagram);
// receive_socket returns the size of the next datagram, or 0 if there is none. *refused is set if the system
// reports that no program receives at the server's address.
size_t receive_socket(intptr_t handle, Buffer to, bool *refused);
// wait_sockets waits until one of at most 8 sockets has a datagram, or until the time in ns is
// over.
void wait_sockets(const intptr_t *handles, size_t n, uint64_t ns);

// start_thread starts a thread that calls run_thread with a context, and reports whether it could;
// join_thread waits for its end.
bool start_thread(void *context, uintptr_t *thread);
void join_thread(uintptr_t thread);
void run_thread(void *context);

} // namespace uplink::detail::socket
