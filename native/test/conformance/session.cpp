// Layer session: a client with a socket and a thread of its own.
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "test/conformance/peer.hpp"
#include "uplink/socket.hpp"

namespace peer {

namespace {

struct Session {
  uplink::Client *client = nullptr;
  uplink::Socket socket;
  uplink::Codec codec = uplink::Codec::adaptive;
  std::mutex mutex;
  std::condition_variable changed;
  std::thread thread;
  std::atomic<bool> stop{false};
  bool connected = false, over = false;
  std::string why;
  std::map<int, bool> bound; // by RPC, once the server has answered
  std::map<int, std::string> schema;
  std::map<int, uint64_t> sequence;

  ~Session() {
    stop = true;
    if (thread.joinable()) thread.join();
    uplink::Client::destroy(client);
  }

  // pump receives, polls events and sends. The caller holds the mutex.
  void pump() {
    socket.run(*client);
    uplink::Event e;
    while (client->poll_event(&e)) {
      if (e.type == uplink::EventType::connected) connected = true;
      if (e.type == uplink::EventType::bound) bound[e.rpc] = true;
      if (e.type == uplink::EventType::bind_failed) bound[e.rpc] = false;
      if (e.type == uplink::EventType::disconnected || e.type == uplink::EventType::reconnecting) {
        over = true;
        why = uplink::text(e.reason);
      }
      changed.notify_all();
    }
  }

  void loop() {
    while (!stop) {
      {
        const std::lock_guard<std::mutex> lock(mutex);
        pump();
      }
      socket.wait(1000000);
    }
  }
};

std::map<std::string, std::unique_ptr<Session>> sessions;

std::string connect(const Words &w) {
  static const char *const names[] = {"none", "aes128gcm", "aes128ctr-hmac8", "chacha20-poly1305",
                                      "chacha20-siphash8"};
  uplink::ClientConfig c;
  c.crypto = uplink::library_crypto();
  for (int i = 0; i < 5; i++)
    if (w[3] == names[i]) c.offered = static_cast<uint8_t>(1U << i);
  auto s = std::make_unique<Session>();
  s->codec = w[4] == "rle" ? uplink::Codec::rle : uplink::Codec::adaptive;
  uplink::Address a;
  if (uplink::Client::create({}, c, &s->client) != uplink::Error::ok) return "unsupported";
  if (uplink::parse_address(w[2].c_str(), &a) != uplink::Error::ok || s->socket.open(a) != uplink::Error::ok)
    return "error address";
  if (s->client->connect(w[5].data(), w[5].size(), uplink::now()) != uplink::Error::ok) return "error token";
  Session &x = *s;
  s->thread = std::thread([&x] { x.loop(); });
  std::unique_lock<std::mutex> lock(s->mutex);
  s->changed.wait(lock, [&x] { return x.connected || x.over; });
  const std::string answer = s->connected ? "ok" : "error " + s->why;
  lock.unlock();
  sessions[w[1]] = std::move(s);
  return answer;
}

std::string bind(const Words &w) {
  Session &s = *sessions.at(w[1]);
  uplink::BindConfig c;
  c.codec = s.codec;
  c.reliable = w[3] == "reliable";
  std::unique_lock<std::mutex> lock(s.mutex);
  uint8_t rpc = 0;
  if (s.client->bind(*schema_of(w[2]), c, &rpc) != uplink::Error::ok) return "error bind";
  s.schema[rpc] = w[2];
  s.changed.wait(lock, [&] { return s.bound.count(rpc) > 0 || s.over; });
  if (s.over) return "error " + s.why;
  return s.bound[rpc] ? "ok " + std::to_string(rpc) : "drop refused";
}

std::string send(const Words &w) {
  Session &s = *sessions.at(w[1]);
  const int rpc = std::stoi(w[2]);
  uplink::Frame *f = nullptr;
  if (uplink::Frame::create({}, *schema_of(s.schema[rpc]), &f) != uplink::Error::ok) return "error frame";
  std::string answer = "error frame";
  if (frame_of(s.schema[rpc], w[3], *f)) {
    std::unique_lock<std::mutex> lock(s.mutex);
    uplink::Error e;
    while (((e = s.client->call(static_cast<uint8_t>(rpc), *f, uplink::now())) == uplink::Error::full ||
            e == uplink::Error::backlog) &&
           !s.over)
      s.changed.wait_for(lock, std::chrono::milliseconds(2));
    if (e == uplink::Error::ok)
      answer = "ok " + std::to_string(s.sequence[rpc]++);
    else
      answer = std::string("error ") + uplink::text(e);
    s.pump();
  }
  uplink::Frame::destroy(f);
  return answer;
}

std::string close(const Words &w) {
  Session &s = *sessions.at(w[1]);
  std::unique_lock<std::mutex> lock(s.mutex);
  s.client->close(0, uplink::now());
  s.pump();
  lock.unlock();
  sessions.erase(w[1]);
  return "ok";
}

} // namespace

void add_session(Peer &p) {
  p.layers += " session";
  p.requests["connect"] = connect;
  p.requests["bind"] = bind;
  p.requests["send"] = send;
  p.requests["close"] = close;
  p.frees.emplace_back([](const std::string &handle) { sessions.erase(handle); });
}

} // namespace peer
