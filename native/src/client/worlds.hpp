// Replication streams: offers, initial states, fragments, acks, messages for a tick. streams.md.
#pragma once

#include "src/base/text.hpp"
#include "src/client/channel.hpp"
#include "src/client/events.hpp"
#include "src/client/fragments.hpp"
#include "src/client/session.hpp"
#include "uplink/world.hpp"

namespace uplink::detail::client {

// parse_offer parses a message. It reports whether it is a valid message of a server. The offer
// refers to the message's memory.
bool parse_offer(Bytes message, WorldOffer *o);

// explain_fields describes how the fields of a type differ from those of a schema. If rest is not
// negative, the field with this index has the mark of rest. It reports false if they are equal.
bool explain_fields(Text &to, const WorldType &t, const Schema &s, int rest = -1);

// is_name reports whether a name is valid for a world.
bool is_name(Bytes name);

// CallCounter returns the number of calls that the client has made.
class CallCounter {
public:
  // next_call reports whether an RPC is bound. It sets *next to the sequence of its next call.
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
  // start begins or ends a session. All streams of an earlier session have ended.
  void start();

  // next is set during a handover to the worlds of the other server, otherwise null.
  Error subscribe(Bytes name, WorldReceiver &r, uint32_t ack_rate, uint8_t *world, Worlds *next = nullptr);
  Error unsubscribe(uint8_t world, Worlds *next = nullptr);

  // on_reliable handles a message of the reliable channel. It reports whether the message is valid.
  bool on_reliable(Bytes message, uint64_t now);
  // on_data handles a message of a stream, or a fragment.
  void on_data(Bytes message, uint64_t now);
  // step sends answers that wait for room. If deliver is set, it passes messages for a tick to the
  // program.
  void step(bool deliver = true);
  // await reports to the program and the server the worlds that the server has not offered within
  // offer_wait.
  void await(uint64_t now);
  // await_at returns when await is to be called again.
  uint64_t await_at() const;
  // blocked reports whether too many messages for a tick wait, so that no more may be received.
  bool blocked() const;
  // pop returns an event about a world in *to. It reports whether there is one.
  bool pop(Event *e);
  static constexpr uint64_t offer_wait = 2000000; // us

  // Handover. next are the worlds of the other server, with a spare receiver for each receiver here
  // that supports spares. prepare subscribes to them. prepared returns the lowest progress of the
  // received worlds there; a world that was refused, or that is not complete in time, counts as
  // complete. reached reports whether a tick of a stream has been received, or the stream has
  // ended. After the switch, adopt continues the subscriptions of the former server. Without a
  // switch, discard ends the subscriptions of spares. Progress is one of: nothing of a world has
  // arrived, objects of the view are missing, or none are missing.
  enum class Progress : uint8_t { absent, arriving, complete };
  void prepare(Worlds *next) const;
  Progress prepared(const Worlds &next, uint64_t now) const;
  bool reached(uint8_t number, uint64_t tick) const;
  void adopt(Worlds *before);
  void discard();

  // take writes the due acks that fit, at most max_acks bytes, and returns their size. In a
  // datagram they precede a payload.
  size_t take(Buffer to, uint64_t now);
  // carried records that a datagram with room for acks is sent.
  void carried(uint64_t now);
  // alone returns when acks are to be sent in a separate datagram.
  uint64_t alone(uint64_t now, uint64_t rtt) const;

private:
  enum class Phase : uint8_t { none, refused, requesting, subscribed };

  // Held is a message of the game for a tick; its bytes follow.
  struct Held {
    Held *next;
    uint64_t tick;
    size_t size;
    bool due; // its stream has ended
  };

  struct Subscription {
    WorldReceiver *receiver = nullptr; // null: the entry is free
    WorldReceiver *owner = nullptr;    // null: the receiver is not a spare
    char name[64] = {};
    size_t name_n = 0;
    uint32_t ack_rate = 0;
    Phase phase = Phase::none;
    uint8_t number = 0;
    bool reply_due = false;
    bool changed = false; // the phase has changed since the last event
    bool updated = false; // newest has changed since the last event
    bool any = false;     // a message of this stream was delivered
    bool shown = false;   // a message of any stream was delivered
    bool partial = false; // the view was shown incomplete since the last event
    uint64_t arrived = 0; // arrival of the first datagram of this stream; 0: none
    uint64_t newest = 0;  // newest delivered tick
    WorldReport report;   // report on the newest offer
    uint64_t told = 0;    // hash of the report in the last event of this type
    uint64_t since = 0;   // start of the wait for an offer in this session; 0: not waiting
    bool missing = false; // no offer arrived within offer_wait
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
    Array<uint8_t> message; // empty: no offer
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
  static void explain_error(Subscription *s, Error e);
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
