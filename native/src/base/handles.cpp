#include "src/base/handles.hpp"

#if UPLINK_CHECKS

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <unordered_map>

namespace uplink::detail {
namespace {

// Handle is the newest handle at an address. It exists or was destroyed.
struct Handle {
  const HandleType *type = nullptr;
  bool exists = false;
  int uses = 0; // number of running calls of functions that use it, all in one thread
  std::thread::id thread;
};

// Handles is never destroyed, because programs may destroy handles while they exit.
struct Handles {
  std::mutex mutex;
  std::unordered_map<const void *, Handle> handles;
};

Handles &all() {
  static Handles *h = new Handles;
  return *h;
}

[[noreturn]] void fail(const HandleType &type, const char *what) {
  std::fprintf(stderr, "uplink: a handle of type %s %s\n", type.name, what);
  std::abort();
}

} // namespace

void handle_made(const void *handle, const HandleType &type) {
  if (handle == nullptr) return;
  const std::lock_guard<std::mutex> lock(all().mutex);
  all().handles[handle] = {&type, true, 0, {}};
}

void handle_gone(const void *handle, const HandleType &type) {
  if (handle == nullptr) return;
  const std::lock_guard<std::mutex> lock(all().mutex);
  const auto h = all().handles.find(handle);
  if (h == all().handles.end()) fail(type, "is destroyed that was not created, or belongs to the library");
  if (h->second.type != &type) fail(type, "is destroyed that has another type");
  if (!h->second.exists) fail(type, "is destroyed twice");
  if (h->second.uses > 0) fail(type, "is destroyed while a function uses it");
  h->second.exists = false;
}

void handle_enter(const void *handle, const HandleType &type) {
  if (handle == nullptr) fail(type, "is null");
  const std::lock_guard<std::mutex> lock(all().mutex);
  const auto found = all().handles.find(handle);
  if (found == all().handles.end()) {
    if (!type.lent) fail(type, "is used that was not created");
    return;
  }
  Handle &h = found->second;
  if (!h.exists) {
    // The library may have reused the memory for a handle of its own.
    if (!type.lent || h.type == &type) fail(type, "is used after it was destroyed");
    return;
  }
  if (h.type != &type) {
    if (type.lent) return; // it is the first member of another object
    fail(type, "is used that has another type");
  }
  const std::thread::id thread = std::this_thread::get_id();
  if (!type.shared && h.uses > 0 && h.thread != thread) fail(type, "is used by two threads at once");
  h.thread = thread;
  h.uses++;
}

void handle_leave(const void *handle) {
  const std::lock_guard<std::mutex> lock(all().mutex);
  const auto h = all().handles.find(handle);
  if (h != all().handles.end() && h->second.uses > 0) h->second.uses--;
}

bool has_size(size_t size, size_t first) {
  if (size >= first) return true;
  std::fprintf(stderr, "uplink: a structure has the struct_size %zu, and needs %zu: use UPLINK_INIT\n", size,
               first);
  std::abort();
}

} // namespace uplink::detail

#endif
