#include "src/socket/socket_thread.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

namespace uplink {

using namespace detail::socket;

namespace {

constexpr uint64_t millisecond_ns = 1000000;

} // namespace

void detail::socket::run_thread(void *context) {
  static_cast<SocketThread *>(context)->main();
}

Error SocketThread::start() {
  if (!queue_.create(allocator_, room)) return Error::no_memory;
  return start_thread(this, &thread_) ? Error::ok : Error::full;
}

void SocketThread::stop() {
  give();
  stop_ = true;
  join_thread(thread_);
}

void SocketThread::take() {
  if (!held_) use_.lock();
  held_ = true;
  const std::lock_guard<std::mutex> lock(sockets);
  seen_ = arrivals_;
}

void SocketThread::give() {
  if (!held_) return;
  due_ = socket_.due(client_);
  held_ = false;
  use_.unlock();
}

void SocketThread::release() {
  if (!held_) return;
  socket_.step(client_);
  give();
}

// collect receives what there is, and reports whether there was room for it.
bool SocketThread::collect() {
  const std::lock_guard<std::mutex> lock(sockets);
  bool any = false;
  for (Socket::End &e : socket_.ends_) {
    while (e.handle != -1 && queued_ < room) {
      Arrived &a = queue_[(first_ + queued_) % room];
      bool refused = false;
      a.size = receive_socket(e.handle, {a.data, max_size}, &refused);
      if (a.size == 0 && !refused) break;
      a.at = uplink::now();
      a.from = e.server;
      queued_++;
      arrivals_++;
      any = true;
    }
  }
  if (any) arrived_.notify_all();
  return queued_ < room;
}

bool SocketThread::next(Arrived *to) {
  const std::lock_guard<std::mutex> lock(sockets);
  if (queued_ == 0) return false;
  *to = queue_[first_];
  first_ = (first_ + 1) % room;
  queued_--;
  return true;
}

void SocketThread::deliver(Client &c) {
  collect();
  Arrived a;
  for (size_t i = 0; i < 4 * room && next(&a); i++) {
    if (a.size == 0)
      c.unreachable(a.from, uplink::now());
    else
      socket_.pass(c, {a.data, a.size}, a.from, a.at);
  }
}

void SocketThread::wait(uint64_t ns) {
  release();
  std::unique_lock<std::mutex> lock(sockets);
  arrived_.wait_for(lock, std::chrono::nanoseconds(std::min<uint64_t>(ns, 1000 * millisecond_ns)),
                    [this] { return arrivals_ != seen_; });
}

void SocketThread::main() {
  while (!stop_) {
    intptr_t handles[Socket::max_ends];
    size_t n = 0;
    {
      const std::lock_guard<std::mutex> lock(sockets);
      n = socket_.handles(handles);
    }
    // The program can open a socket, and call, without waking the thread.
    const uint64_t now = uplink::now(), due = due_;
    if (n > 0)
      wait_sockets(handles, n, std::clamp(due > now ? due - now : 0, millisecond_ns, 10 * millisecond_ns));
    const bool room_left = collect();
    if (use_.try_lock()) {
      socket_.step(client_);
      due_ = socket_.due(client_);
      use_.unlock();
    } else if (n == 0 || !room_left) {
      std::this_thread::sleep_for(std::chrono::nanoseconds(millisecond_ns));
    }
  }
}

} // namespace uplink
