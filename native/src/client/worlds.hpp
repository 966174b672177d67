// Replication streams: offers, initial states, fragments, acks, messages for a tick. streams.md.
#pragma once

#include "src/base/text.hpp"
#include "src/client/channel.hpp"
#include "src/client/events.hpp"
#include "src/client/fragments.hpp"
#include "src/client/session.hpp"
#include "uplink/world.hpp"

namespace uplink::detail::client {

// parse_offer parses a message. It reports whether a server sends it. The offer refers to the message.
bool parse_offer(Bytes message, WorldOffer *o);

// explain_fields tells how the fields of a type differ from those of a schema, of which field rest, if it is
// not negative, has the mark of rest. It reports false if they are the same.
bool explain_fields(Text &to, const WorldType &t, const Schema &s, int rest = -1);

// is_name reports whether a world can have a name.
bool is_name(Bytes name);

// CallCounter tells how many calls the client has made.
class CallCounter {
public:
  // next_call reports whether an RPC is bound. *next is the sequence of its next call.
  virtual bool next_call(uint8_t rpc, uint64_t *next) const = 0;

protected:
  ~CallCounter() = default;
};

// Worlds are the subscriptions of a client. Times are microseconds.
class Worlds {
public:
  static constexpr size_t max_acks = max_worlds * (2 + max_ack);

  Worlds(const Allocator &a, Channel &c, Events &e, const CallCounter &calls)
      : allocator_(a), channel_(c), events_(e), calls_(calls) {}
  Worlds(const Worlds &) = delete;
  Worlds &operator=(const Worlds &) = delete;
  ~Worlds();
  // create makes room for n subscriptions.
  bool create(size_t n) {
    return list_.create(allocator_, n) && offers_.create(allocator_, n > 0 ? max_worlds : 0);
  }
  // start begins or ends a session: all streams of an earlier one are over.
  void start();

  // next are the worlds of the other server during a handover, or null.
  Error subscribe(Bytes name, WorldReceiver &r, uint32_t ack_rate, uint8_t *world, Worlds *next = nullptr);
  Error unsubscribe(uint8_t world, Worlds *next = nullptr);

  // on_reliable handles a message of the reliable channel. It reports whether a server sends it.
  bool on_reliable(Bytes message, uint64_t now);
  // on_data handles a message of a stream, or a fragment.
  void on_data(Bytes message, uint64_t now);
  // step sends answers that wait for room, and passes messages for a tick to the program, if deliver is
  // set.
  void step(bool deliver = true);
  // await tells the program and the server of worlds that the server has not offered within offer_wait.
  void await(uint64_t now);
  // await_at returns when await is to be called again.
  uint64_t await_at() const;
  // blocked reports whether no message for a tick must be received: too many wait.
  bool blocked() const;
  // pop returns an event about a world. It reports whether there is one.
  bool pop(Event *e);
  static constexpr uint64_t offer_wait = 2000000; // us

  // During a handover, next are the worlds of the other server, with a spare receiver for each one here
  // that has spares. prepare subscribes to them, prepared returns how far the worlds that are received here
  // have arrived there: the least of them counts. One that was refused, or that has not become complete in
  // time, counts as complete. reached reports whether a tick of a stream has been
  // received, or the stream has ended. After the switch, adopt continues with the subscriptions of the
  // former server; without it, discard ends those of spares.
  // Progress: nothing has arrived of a world, objects of the view are missing, or none.
  enum class Progress : uint8_t { absent, arriving, complete };
  void prepare(Worlds *next) const;
  Progress prepared(const Worlds &next, uint64_t now) const;
  bool reached(uint8_t number, uint64_t tick) const;
  void adopt(Worlds *before);
  void discard();

  // take writes the acks that are due and have room, at most max_acks bytes, and returns their size. A
  // datagram carries them in front of a payload.
  size_t take(Buffer to, uint64_t now);
  // carried tells that a datagram with room for acks leaves.
  void carried(uint64_t now);
  // alone returns when acks are to leave in a datagram of their own.
  uint64_t alone(uint64_t now, uint64_t rtt) const;

private:
  enum class Phase : uint8_t { none, refused, requesting, subscribed };

  // Held is a message of the game for a tick; its bytes follow.
  struct Held {
    Held *next;
    uint64_t tick;
    size_t size;
    bool due; // its stream is over
  };

  struct Subscription {
    WorldReceiver *receiver = nullptr; // null: the place is free
    WorldReceiver *owner = nullptr;    // null: the receiver is no spare
    char name[64] = {};
    size_t name_n = 0;
    uint32_t ack_rate = 0;
    Phase phase = Phase::none;
    uint8_t number = 0;
    bool reply_due = false;
    bool changed = false; // the phase, since the last event
    bool updated = false; // newest, since the last event
    bool any = false;     // a message of this stream was passed on
    bool shown = false;   // one of any stream was
    bool partial = false; // the view was shown before it was complete, since the last event
    uint64_t arrived = 0; // when the first datagram of this stream arrived; 0: none has
    uint64_t newest = 0;  // tick that was passed on
    WorldReport report;   // on the newest offer
    uint64_t told = 0;    // hash of the report that was the last event of this type
    uint64_t since = 0;   // when it began to wait for an offer in this session; 0: it does not
    bool missing = false; // none came within offer_wait
    Array<uint8_t> initial;
    size_t initial_n = 0;
    Assembler assembler;
    Held *first = nullptr;
    Held *last = nullptr;
    size_t held = 0;

    bool ack_due = false;
    uint64_t acked_at = 0, interval = 0;
    uint64_t received = 0; // bytes since the last ack
  };

  // Offered is an offer of this session.
  struct Offered {
    Array<uint8_t> message; // empty: there is none
    WorldOffer offer;
    Subscription *subscription = nullptr;
  };

  void prepare(Worlds *next, size_t i) const;
  void subscribe(Subscription *s, WorldReceiver *r, WorldReceiver *owner, Bytes name, uint32_t ack_rate);
  void continue_with(Subscription *s, Subscription *before);
  bool on_offer(Bytes message, uint64_t now);
  bool on_piece(Subscription *s, Bytes piece);
  bool on_tick_message(Subscription *s, Bytes m);
  void accept(Subscription *s, Offered *o);
  void begin(Subscription *s, Offered *o, Bytes initial);
  void set_phase(Subscription *s, Phase p);
  static bool report_due(const Subscription &s);
  void withdraw(Subscription *s);
  void reply(Subscription *s);
  void explain_missing(Subscription *s);
  void receive(Subscription *s, Bytes message, uint64_t now);
  static bool filled(const Subscription &s, double rate, uint64_t now);
  bool holds(Subscription *s, uint64_t now);
  Progress progress(const Subscription &s, uint64_t now) const;
  bool parse_processed(Reader *r, WorldMessage *m, ProcessedCalls *to) const;
  void release(Subscription *s);
  uint64_t alone(const Subscription &s, uint64_t now, uint64_t rtt) const;

  Allocator allocator_;
  Channel &channel_;
  Events &events_;
  const CallCounter &calls_;
  Array<Subscription> list_;
  Array<Offered> offers_; // by number
  Bucket offered_;
  uint64_t carried_at_ = 0, carried_every_ = 0;
};

} // namespace uplink::detail::client
