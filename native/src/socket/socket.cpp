// The common part of the socket drivers of all systems.
#include "uplink/socket.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "src/socket/socket_system.hpp"
#include "src/socket/socket_thread.hpp"

namespace uplink {

using namespace detail::socket;

uint64_t now() {
  const auto t = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(t).count());
}

uint64_t wall_now() {
  const auto t = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(t).count());
}

namespace {

// SocketLock locks the sockets if there is a thread.
class SocketLock {
public:
  explicit SocketLock(SocketThread *t) : thread_(t) {
    if (thread_ != nullptr) thread_->sockets.lock();
  }
  SocketLock(const SocketLock &) = delete;
  SocketLock &operator=(const SocketLock &) = delete;
  ~SocketLock() {
    if (thread_ != nullptr) thread_->sockets.unlock();
  }

private:
  SocketThread *thread_;
};

} // namespace

Socket::~Socket() {
  stop();
  close();
  LinkSimulator::destroy(out_);
  LinkSimulator::destroy(in_);
}

Error Socket::open(const Address &server) {
  close();
  const SocketLock lock(thread_);
  server_ = server;
  ends_[0].server = {};
  return open(&ends_[0]);
}

Error Socket::open(End *e) {
  return open_socket(e->server.family == 0 ? server_ : e->server, &e->handle);
}

void Socket::close() {
  const SocketLock lock(thread_);
  for (End &e : ends_) {
    if (e.handle != -1) close_socket(e.handle);
    e = {};
  }
}

size_t Socket::handles(intptr_t (&out)[max_ends]) const {
  size_t n = 0;
  for (const End &e : ends_)
    if (e.handle != -1) out[n++] = e.handle;
  return n;
}

void Socket::wait(uint64_t ns) {
  if (thread_ != nullptr) {
    thread_->wait(ns);
    return;
  }
  intptr_t open[max_ends];
  const size_t n = handles(open);
  if (in_ != nullptr) {
    const uint64_t at = std::min(in_->next(), out_->next()), now = uplink::now();
    ns = std::min(ns, at > now ? at - now : 0);
  }
  wait_sockets(open, n, ns);
}

// end returns the socket to a server, and opens one if there is none. If opening fails, the socket
// is closed.
Socket::End *Socket::end(const Address &server) {
  End *free = nullptr;
  for (End &e : ends_) {
    const bool same = e.server.family == server.family && e.server.port == server.port &&
                      std::memcmp(e.server.ip, server.ip, sizeof(server.ip)) == 0;
    if (same && e.handle != -1) return &e;
    if (e.handle == -1) free = &e;
  }
  if (free == nullptr) return nullptr;
  free->server = server;
  (void)open(free);
  return free;
}

// pass passes a datagram to the client, or to the link from the server.
void Socket::pass(Client &c, Bytes datagram, const Address &from, uint64_t arrived) {
  if (in_ != nullptr)
    in_->put(datagram, from, arrived);
  else
    c.receive_at(datagram, arrived, uplink::now());
}

void Socket::receive(Client &c) {
  uint8_t datagram[2048];
  for (End &e : ends_) {
    // Bounds the time that a flood of datagrams takes.
    for (int i = 0; i < 1024 && e.handle != -1; i++) {
      bool refused = false;
      const size_t n = receive_socket(e.handle, {datagram, sizeof(datagram)}, &refused);
      if (refused) c.unreachable(e.server, uplink::now());
      if (n == 0) break;
      pass(c, {datagram, n}, e.server, uplink::now());
    }
  }
}

void Socket::send(Client &c, Bytes datagram, const Address &server) {
  bool refused = false;
  {
    const SocketLock lock(thread_);
    const End *e = end(server);
    refused = e != nullptr && e->handle != -1 && !send_socket(e->handle, datagram);
  }
  if (refused) c.unreachable(server, uplink::now());
}

// due returns when step has something to do, if nothing arrives.
uint64_t Socket::due(const Client &c) const {
  const uint64_t links = in_ == nullptr ? UINT64_MAX : std::min(in_->next(), out_->next());
  return std::min(c.next_timeout(), links);
}

// step receives and sends what there is.
void Socket::step(Client &c) {
  uint8_t datagram[2048];
  const Buffer to = {datagram, sizeof(datagram)};
  Address server;
  uint64_t at = 0;
  if (thread_ != nullptr)
    thread_->deliver(c);
  else
    receive(c);
  if (in_ != nullptr)
    while (const size_t n = in_->take(to, &server, &at, uplink::now()))
      c.receive_at({datagram, n}, at, uplink::now());
  while (const size_t n = c.next_datagram(to, &server, uplink::now())) {
    if (out_ != nullptr)
      out_->put({datagram, n}, server, uplink::now());
    else
      send(c, {datagram, n}, server);
  }
  if (out_ != nullptr)
    while (const size_t n = out_->take(to, &server, &at, uplink::now())) send(c, {datagram, n}, server);
  const SocketLock lock(thread_);
  for (End &e : ends_)
    if (e.handle != -1 && e.server.family != 0 && !c.uses(e.server)) {
      close_socket(e.handle);
      e = {};
    }
}

void Socket::run(Client &c) {
  if (thread_ != nullptr) thread_->take();
  step(c);
}

Error Socket::start(const Allocator &a, Client &c) {
  if (thread_ != nullptr) return Error::invalid;
  auto *t = detail::create<SocketThread>(a, a, *this, c);
  if (t == nullptr) return Error::no_memory;
  thread_ = t;
  t->take(); // until the first release
  const Error e = t->start();
  if (e == Error::ok) return e;
  t->give();
  thread_ = nullptr;
  detail::destroy(a, t);
  return e;
}

void Socket::stop() {
  if (thread_ == nullptr) return;
  thread_->stop();
  const Allocator a = thread_->allocator();
  detail::destroy(a, thread_);
  thread_ = nullptr;
}

void Socket::release() {
  if (thread_ != nullptr) thread_->release();
}

Error Socket::simulate(const Allocator &a, const LinkConditions &to_server,
                       const LinkConditions &from_server) {
  LinkSimulator *out = nullptr, *in = nullptr;
  Error e = LinkSimulator::create(a, to_server, &out);
  if (e == Error::ok) e = LinkSimulator::create(a, from_server, &in);
  if (e != Error::ok) {
    LinkSimulator::destroy(out);
    return e;
  }
  LinkSimulator::destroy(out_);
  LinkSimulator::destroy(in_);
  out_ = out;
  in_ = in;
  return e;
}

} // namespace uplink
