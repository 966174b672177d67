// What the client and the codecs of worlds share: a server offers a world by name, and sends its
// objects over a replication stream. docs/spec/streams.md specifies it.
//
// A program creates a receiver, such as a SnapshotWorld, and passes it to Client::subscribe. The
// client answers the offers of the server, reassembles messages and sends acks. The receiver decodes
// the messages.
#pragma once

#include "uplink/clock.hpp"
#include "uplink/codec.hpp"

namespace uplink {

// max_worlds is the maximum number of worlds of a client.
constexpr size_t max_worlds = 16;
// max_world_types is the maximum number of types of objects in a world.
constexpr size_t max_world_types = 16;

// WorldType is a type of objects in an offer.
struct WorldType {
  Bytes name;   // of the first type it is that of the world
  Bytes fields; // see field
  size_t n = 0; // fields, at most 64
};

// field returns the description of field i of a type.
Bytes field(const WorldType &t, size_t i);
// same_fields reports whether the fields of a type are those of a schema, in the same order.
bool same_fields(const WorldType &t, const Schema &s);

// WorldOffer is the offer of a server. It refers to memory that is valid until the stream ends.
struct WorldOffer {
  uint8_t number = 0;   // of the stream, 0 to 15
  Bytes name;           // of the world
  Bytes codec;          // "snapshot" or "state"
  double rate = 0;      // maximum number of messages per second
  double ticks = 0;     // ticks per second
  uint32_t initial = 0; // bytes of the initial state, 0 if it is empty
  uint64_t hash = 0;    // of the initial state
  bool areas = false;   // messages are those of a world with areas
  bool processed = false;
  size_t types_n = 0; // at least 1
  WorldType types[max_world_types];
  size_t factors_n = 0;
  int64_t factors[64] = {}; // velocity factors of the fields, for the codec state
};

// max_report is the room for a text that tells how both ends differ, with its final zero.
constexpr size_t max_report = 512;

// WorldReport tells how an offer differs from what the program has.
struct WorldReport {
  uint8_t reason = 5;   // of a refusal: 2 fields or types cannot be converted, 3 another codec, 5 others
  uint16_t skipped = 0; // bit k: the program has no type k of the offer, whose objects are dropped
  size_t n = 0;         // characters of the text
  char text[max_report] = {};
};

// ProcessedCalls tells how many calls of an RPC the server's program had processed before a message.
struct ProcessedCalls {
  uint8_t rpc = 0;   // number of Client::bind
  uint64_t next = 0; // sequence after the last processed call
};

// max_processed is the maximum number of RPCs in a message.
constexpr size_t max_processed = 16;

// WorldMessage is one message of a world.
struct WorldMessage {
  Bytes body;
  const ProcessedCalls *processed = nullptr;
  size_t processed_n = 0;
  uint64_t now = 0; // when it arrived, in ns
  // The client continues to show what it was shown of an earlier stream, unless the message is complete.
  bool held = false;
};

// WorldReceiver decodes the messages of one world. The client calls its functions.
class WorldReceiver {
public:
  // accepts reports whether the receiver can decode the messages of an offer. *r is how the offer differs, or
  // why the receiver cannot decode them.
  virtual bool accepts(const WorldOffer &o, WorldReport *r) = 0;
  // knows reports whether the receiver has the initial state with this hash.
  virtual bool knows(uint64_t hash) const = 0;
  // begin prepares the first message of a stream that it accepts. initial is the coded initial
  // state; it is empty if that is known, or empty. After an error the client refuses the offer.
  virtual Error begin(const WorldOffer &o, Bytes initial) = 0;
  // receive decodes a message. *tick is its tick.
  virtual Error receive(const WorldMessage &m, uint64_t *tick) = 0;
  // complete reports whether the message that was decoded last shows all objects of the client's view.
  virtual bool complete() const { return true; }
  // end tells that the stream has ended. What it has shown stays.
  virtual void end() {}
  // ack writes an ack of all messages to to, which has room for max_ack bytes, and returns its size.
  virtual size_t ack(uint8_t *to) const = 0;

  // rate_news reports whether the rate of the server's ticks has left 1 ± 0.05, or returned, since it
  // reported so last. *rate is the rate in millionths, *off whether it has left.
  virtual bool rate_news(uint64_t *, bool *) { return false; }

  // During a handover the client receives the world of another server, too, with a spare receiver, which
  // passes nothing to the program. spare returns one, or null: then the world of the other server begins
  // when the client has switched. adopt continues with what a spare has received, and its server; discard
  // ends a spare, also after adopt.
  virtual WorldReceiver *spare() { return nullptr; }
  virtual void adopt(WorldReceiver *) {}
  virtual void discard(WorldReceiver *) {}

protected:
  WorldReceiver() = default;
  ~WorldReceiver() = default;
};

// ClientWorld is what the receivers of this library have in common.
class ClientWorld : public WorldReceiver {
public:
  // ticks returns the ticks per second, or 0 before the first offer.
  double ticks() const { return ticks_; }
  // clock sets the client's clock in ticks of the server, from Stats::min_rtt and Stats::rtt. It follows
  // the messages that had the shortest delay, and the rate of the server's ticks, from a quarter to twice
  // the nominal one. It runs up to 5 % faster or slower while the estimate changes, up to half if it is more
  // than 12.5 ms off, and jumps ahead over more than 250 ms. In a session the tick does not decrease over the
  // calls, unless the server stood still for more than 250 ms. It reports false before the first message of a
  // session.
  bool clock(uint64_t now, uint64_t min_rtt, uint64_t rtt, Ticks *t);
  // processed reports whether the newest message has the number of calls of an RPC that the server's
  // program had processed. *next is the sequence after the last of them, for Predictor::correct.
  bool processed(uint8_t rpc, uint64_t *next) const;
  // Inline, as all virtual functions here: a program with RTTI can derive from the class.
  bool rate_news(uint64_t *rate, bool *off) override { return compare_rate(rate, off); }
  void end() override { calls_n_ = 0; }

protected:
  ClientWorld() = default;
  ~ClientWorld() = default;

  // restart begins with a stream of a number of ticks, and of messages, per second.
  void restart(double ticks, double rate);
  double rate() const { return rate_; }
  // valid reports whether the stream can have a tick: below 2^53, and at most 73 years after tick 0.
  bool valid(uint64_t tick) const;
  // observe passes the tick of a decoded message, which is valid, to the clock, and returns its time since
  // tick 0.
  uint64_t observe(const WorldMessage &m, uint64_t tick);
  // keep keeps what a message says about processed calls.
  void keep(const WorldMessage &m);
  // take_over continues with what a spare has observed and kept.
  void take_over(const ClientWorld &spare) {
    const bool off = off_;
    *this = spare;
    off_ = off;
  }

private:
  bool compare_rate(uint64_t *rate, bool *off);

  double ticks_ = 0, rate_ = 0;
  ServerClock clock_;
  bool off_ = false; // the rate has left 1 ± 0.05, as rate_news reported last
  ProcessedCalls calls_[max_processed];
  size_t calls_n_ = 0;
};

} // namespace uplink
