// The interface between the client and the codecs of worlds. A server offers a world by name, and
// sends its objects over a replication stream. docs/spec/streams.md specifies this.
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
  Bytes name;   // the first type has the name of the world
  Bytes fields; // descriptions of the fields; see field
  size_t n = 0; // number of fields, at most 64
};

// field returns the description of field i of a type.
Bytes field(const WorldType &t, size_t i);
// same_fields reports whether a type has the same fields as a schema, in the same order.
bool same_fields(const WorldType &t, const Schema &s);

// WorldOffer is the offer of a server. It refers to memory that is valid until the stream ends.
struct WorldOffer {
  uint8_t number = 0;     // number of the stream, 0 to 15
  Bytes name;             // name of the world
  Bytes codec;            // "snapshot" or "state"
  double rate = 0;        // maximum number of messages per second
  double ticks = 0;       // ticks per second
  uint32_t initial = 0;   // bytes of the initial state, 0 if it is empty
  uint64_t hash = 0;      // hash of the initial state
  bool areas = false;     // the world has areas of interest
  bool processed = false; // messages contain ProcessedCalls
  size_t types_n = 0;     // at least 1
  WorldType types[max_world_types];
  size_t factors_n = 0;
  int64_t factors[64] = {}; // velocity factors of the fields, for the codec "state"
};

// max_report is the size of the text of a WorldReport, including its final zero.
constexpr size_t max_report = 512;

// WorldReport describes how an offer differs from the types of the program.
struct WorldReport {
  // Reason of a refusal: 2 fields or types cannot be converted, 3 another codec, 5 other reasons.
  uint8_t reason = 5;
  // Bit k is set if the program lacks type k of the offer, whose objects are dropped.
  uint16_t skipped = 0;
  size_t n = 0; // length of text
  char text[max_report] = {};
};

// ProcessedCalls contains the number of calls of an RPC that the server's program had processed
// when it sent a message.
struct ProcessedCalls {
  uint8_t rpc = 0;   // number that Client::bind returned
  uint64_t next = 0; // sequence number after the last processed call
};

// max_processed is the maximum number of ProcessedCalls in a message.
constexpr size_t max_processed = 16;

// WorldMessage is one message of a world.
struct WorldMessage {
  Bytes body;
  const ProcessedCalls *processed = nullptr;
  size_t processed_n = 0;
  uint64_t now = 0; // time of arrival, in ns
  // If held is set, the client continues to show the state of an earlier stream until a message is
  // complete.
  bool held = false;
};

// WorldReceiver decodes the messages of one world. The client calls its functions.
class WorldReceiver {
public:
  // accepts reports whether the receiver can decode the messages of an offer. It sets *r to the
  // differences, or to the reason why it cannot.
  virtual bool accepts(const WorldOffer &o, WorldReport *r) = 0;
  // knows reports whether the receiver has the initial state with a hash.
  virtual bool knows(uint64_t hash) const = 0;
  // begin prepares for the first message of an accepted stream. initial is the coded initial state;
  // it has no bytes if the receiver knows the state or if the state is empty. After an error the
  // client refuses the offer.
  virtual Error begin(const WorldOffer &o, Bytes initial) = 0;
  // receive decodes a message, and sets *tick to its tick.
  virtual Error receive(const WorldMessage &m, uint64_t *tick) = 0;
  // complete reports whether the message that was decoded last shows all objects of the client's view.
  virtual bool complete() const { return true; }
  // end is called when the stream has ended. The receiver keeps the objects that it shows.
  virtual void end() {}
  // ack writes an ack of all messages to the buffer to, which has room for max_ack bytes, and
  // returns its size.
  virtual size_t ack(uint8_t *to) const = 0;

  // rate_news reports whether the rate of the server's ticks has left 1 ± 0.05 or returned to it
  // since the last report. *rate is the rate in millionths, and *off reports whether it is out of
  // that range.
  virtual bool rate_news(uint64_t *, bool *) { return false; }

  // During a handover the client also receives the world of the other server, with a spare receiver
  // that passes nothing to the program. spare returns a spare receiver, or null: then the client
  // subscribes at the other server only after the switch. adopt takes over the state of a spare.
  // discard destroys a spare, also one that was adopted.
  virtual WorldReceiver *spare() { return nullptr; }
  virtual void adopt(WorldReceiver *) {}
  virtual void discard(WorldReceiver *) {}

protected:
  WorldReceiver() = default;
  ~WorldReceiver() = default;
};

// ClientWorld is the common base class of the receivers of this library.
class ClientWorld : public WorldReceiver {
public:
  // ticks returns the ticks per second, or 0 before the first offer.
  double ticks() const { return ticks_; }
  // clock sets *t to the client's estimate of the server's ticks at now. min_rtt and rtt are those
  // of Stats. The estimate follows the messages with the shortest delay, and the rate of the
  // server's ticks, from a quarter to twice the nominal rate. It changes smoothly: the clock runs
  // up to 5 % faster or slower, or up to 50 % if it is more than 12.5 ms off, and jumps ahead by
  // more than 250 ms. Within a session the tick does not decrease from call to call, unless the
  // server stood still for more than 250 ms. clock reports false before the first message of a
  // session.
  bool clock(uint64_t now, uint64_t min_rtt, uint64_t rtt, Ticks *t);
  // processed reports whether the newest message contains the number of processed calls of an RPC.
  // *next is the sequence number after the last processed call, for Predictor::correct.
  bool processed(uint8_t rpc, uint64_t *next) const;
  // The virtual functions are inline, so that a program with RTTI can derive from this class.
  bool rate_news(uint64_t *rate, bool *off) override { return compare_rate(rate, off); }
  void end() override { calls_n_ = 0; }

protected:
  ClientWorld() = default;
  ~ClientWorld() = default;

  // restart prepares for a new stream with the given numbers of ticks and of messages per second.
  void restart(double ticks, double rate);
  double rate() const { return rate_; }
  // valid reports whether a tick is in range: below 2^53, and at most 73 years after tick 0.
  bool valid(uint64_t tick) const;
  // observe passes the valid tick of a decoded message to the clock, and returns the tick's time
  // since tick 0 in ns.
  uint64_t observe(const WorldMessage &m, uint64_t tick);
  // keep stores the processed calls of a message.
  void keep(const WorldMessage &m);
  // take_over copies the state of a spare, except whether the rate was reported as off.
  void take_over(const ClientWorld &spare) {
    const bool off = off_;
    *this = spare;
    off_ = off;
  }

private:
  bool compare_rate(uint64_t *rate, bool *off);

  double ticks_ = 0, rate_ = 0;
  ServerClock clock_;
  bool off_ = false; // the rate was out of 1 ± 0.05 in the last report of rate_news
  ProcessedCalls calls_[max_processed];
  size_t calls_n_ = 0;
};

} // namespace uplink
