// The rate that the path to the server carries, and its queue, from the server's reports.
// internal/transport/path/departures.go and controller.go are the Go counterparts. Times are
// microseconds.
#pragma once

#include "src/client/datagram.hpp"

namespace uplink::detail::client {

// Departure describes the datagrams up to one that has arrived.
struct Departure {
  uint32_t at = 0;    // when it left, in units of report_unit, modulo 2^32
  uint32_t bytes = 0; // sent up to it, modulo 2^32
  uint32_t group = 0; // maximum number of bytes of its group up to it
  uint16_t size = 0;  // size of the smallest datagram of its group
};

// Departures stores when datagrams left. Datagrams that leave within a short time form a group.
// Together the groups cover the last round trips.
class Departures {
public:
  // add adds the datagram with the next packet number.
  void add(uint64_t now, uint64_t number, size_t size);
  // find finds the departure of the datagram with the packet number, of which it uses the low 32
  // bits. next is the number of the next datagram. It returns false if the datagram is too old.
  bool find(uint64_t now, uint32_t number, uint32_t next, Departure *d);
  // widest reports whether the groups cover as much time as they can.
  bool widest() const { return spacing_ == max_spacing; }
  // rate returns the rate of the stored departures, in bytes/s.
  double rate(uint64_t now) const;

private:
  static constexpr uint32_t groups = 14;
  // The first value, the minimum and the maximum of spacing_. While datagrams leave more often, the
  // groups together cover 14 times the spacing.
  static constexpr uint32_t first_spacing = 200, min_spacing = 20, max_spacing = 1000;

  // Group is a group of datagrams with consecutive packet numbers.
  struct Group {
    uint32_t number = 0;                // low bits of the packet number of the first one
    uint32_t at = 0;                    // when it left
    uint32_t before = 0;                // bytes sent before it, modulo 2^32
    uint16_t last = 0;                  // time from the first one to the last one
    uint16_t smallest = 0, largest = 0; // sizes
  };
  // cover adapts the spacing so that the groups cover more than the time since a departure.
  void cover(uint64_t now, uint32_t at);

  Group ring_[groups];
  uint32_t count_ = 0;               // number of groups so far
  uint32_t bytes_ = 0;               // sent so far, modulo 2^32
  uint32_t spacing_ = first_spacing; // minimum time between two groups
};

// PathRate estimates the rate that a path carries, from reports on the datagrams that arrive.
// Streams may send what all other traffic leaves of it. The one-way delay of datagrams above its
// minimum is the queue of the path in this direction. Congestion reduces the rate to what was
// delivered.
class PathRate {
public:
  // start begins a session.
  void start(uint64_t now);
  // restart discards what was measured, after a change of the path.
  void restart();
  // departed records that a datagram is sent. size is its size with all headers.
  void departed(uint64_t now, uint64_t number, size_t size);
  // reported processes a report. next is the number of the next datagram. reported returns false if
  // the report is not about datagrams that were sent. A report that is older than the last one has no
  // effect.
  bool reported(uint64_t now, const Report &r, uint64_t next);
  // echoed records an echo of the server. excess is the time by which the round trip was above the
  // minimum. Without echoes the rate does not grow: the server can report datagrams that it did not
  // receive, and hide their delay, but it cannot echo an ask that did not arrive.
  void echoed(uint64_t now, uint64_t excess);
  // stream_room returns the number of bytes that streams may send now, or less than 0.
  double stream_room(uint64_t now);
  // rate returns the rate that the path carries as far as is known, in bytes/s with all headers.
  double rate() const;
  // queue returns the last measured delay in the queue of the path.
  uint64_t queue() const { return static_cast<uint64_t>(last_queue_); }

private:
  // A queue is congestion from threshold on, plus half of the usual variation of delays up to
  // max_variation; it is empty below emptied, plus the same. Before the first congestion it has to
  // be longer: the usual variation is added, and two decisions in succession or long_queue are
  // needed.
  static constexpr int64_t threshold = 10000, long_queue = 50000, emptied = 4000, max_variation = 20000;

  // A decision considers datagrams that left within at least min_span, and at least min_reports
  // reports on them; from long_span on few_reports are enough.
  static constexpr uint64_t min_span = 60000, long_span = 250000;
  static constexpr uint32_t min_reports = 3, few_reports = 2;
  // The rates are measured over one to two spans of rate_span. From max_gap on, the time between two
  // reports is not a part of them, and the time from a departure to its report is no measure of a queue.
  static constexpr uint32_t rate_span = 200000 / report_unit;
  static constexpr uint64_t max_gap = 2000000;
  static constexpr uint64_t base_span = 10000000; // time for which a minimum of the delay counts at least

  // late_reports consecutive reports that are late by max_gap, over at least late_time, show a queue.
  // After the server was not there, it reports once or twice on datagrams that waited.
  static constexpr uint8_t late_reports = 4;
  static constexpr uint64_t late_time = 1000000;

  static constexpr double start_rate = 48 << 10; // bytes/s of streams before anything is known
  // min_rate is the rate in bytes/s to which congestion reduces a session at most: about half of the
  // narrowest link on which games are played. At a lower rate, another flow that fills every queue
  // would take the rest of the link. worst_rate is the same if there is both a queue and excessive
  // loss, or if late reports show a queue of seconds.
  static constexpr double min_rate = 4500, worst_rate = 500;

  static constexpr double start_growth = 2;    // factor of the rate per decision until congestion is seen
  static constexpr double kept = 0.93;         // part of the capacity that is used after congestion
  static constexpr double drain_time = 250000; // a queue of this time reduces the rate to its minimum
  static constexpr double min_drain = 0.4; // minimum part of the capacity that is used while a queue drains
  static constexpr double min_fall = 0.7;  // minimum factor of the measured capacity then, or soon after
  static constexpr double max_raise = 1.1; // maximum factor of the measured capacity while a queue drains
  static constexpr uint64_t max_drain = 1500000;
  // Growth per second up to nearby, a multiple of the capacity that was measured last, the first
  // growth above it, and its maximum. Above it, each decision raises the growth by the factor faster.
  // A decision raises the rate by at most the factor max_factor.
  static constexpr double slowly = 0.05, nearby = 1.04, first_growth = 0.1, quickly = 2, faster = 1.7,
                          max_factor = 1.5;
  // arrives is the part of what is sent that must arrive for the rate to grow above the capacity that
  // was measured last.
  static constexpr double arrives = 0.92;
  // used is the share of the rate above which the rate may grow if nothing has waited for it. After
  // unused_time below it, the limit is forgotten.
  static constexpr double used = 0.8;
  static constexpr uint64_t unused_time = 10000000;
  // Loss is no sign of congestion on radio links, unless a share of at least excessive is lost of
  // loss_sample datagrams, twice in succession.
  static constexpr double excessive = 0.35, max_loss = 0.3; // max_loss counts as usual loss at most
  static constexpr uint32_t loss_sample = 50;
  static constexpr uint8_t sustained = 2;

  // The rate grows to at most unproven_growth times the rate at the last echo with a round trip of at most
  // max_excess above the minimum, and not at all without such an echo for max_silence.
  static constexpr double unproven_growth = 6;
  static constexpr uint64_t max_excess = 150000, max_silence = 5000000;

  static constexpr double stream_burst = 0.015; // seconds for which rate that is not used can be used later

  // Base is the delay of a datagram, in units of report_unit with any offset, and its size.
  struct Base {
    uint16_t delay = 0, size = 0;
  };
  // Delivery is what was sent and arrived, in bytes, and in which time.
  struct Delivery {
    float sent = 0, arrived = 0;
    uint32_t sent_in = 0, arrived_in = 0; // in units of report_unit
  };

  // fill adds to the account what the rate permits since the last call.
  void fill(uint64_t now);
  // measure processes a report on the datagrams up to d, of which a share arrived.
  void measure(uint64_t now, const Report &r, const Departure &d, float share);
  // delayed processes a report on datagrams that left long ago. It reduces the rate if they show a
  // queue.
  void delayed(uint64_t now);
  // measure_loss processes the share of lost datagrams of a sample.
  void measure_loss(double share);
  // rates sets the rates at which datagrams left and arrived last, in bytes/s.
  void rates(double *sent, double *arrived) const;
  // above returns by how much a delay is above the minimum of the last time, and sets *size, the
  // size of the datagram, to that of the one that had this minimum. The delay has any offset.
  int64_t above(uint64_t now, uint16_t delay, uint16_t *size);
  // decide changes the rate after a time in which that was sent and delivered, in bytes/s.
  void decide(uint64_t now, uint64_t span, double sent, double delivered);
  // congested reports whether the least queue of a decision is congestion. Before the first congestion
  // jitter must not limit a session: it can delay all reports of a decision.
  bool congested(int64_t queue, int64_t usual) const;
  // grow raises the rate. latest is the rate of the reports of this decision alone.
  void grow(double sent, double latest, double delivered, uint64_t passed);
  // most returns the rate to which echoes permit the rate to grow.
  double most() const;
  // reduce lowers the rate to what was delivered.
  void reduce(uint64_t now, double sent, double delivered);
  // unuse forgets the limit after a time in which it was not used.
  void unuse(uint64_t now);

  Departures departures_;
  double rate_ = 0;   // bytes/s; 0: not known
  double knee_ = 0;   // bytes/s delivered at the last congestion
  double growth_ = 0; // of the rate, per second
  double proven_ = 0; // rate at the last echo that permits growth
  uint64_t proven_at_ = 0;
  bool limited_ = false; // congestion was seen
  bool drains_ = false;  // a queue drains

  // What reports have shown:
  bool known_ = false;    // there was a report
  bool measured_ = false; // a delay was measured
  uint16_t arrived_ = 0, count_ = 0;
  uint64_t report_at_ = 0; // time of the last report
  uint32_t newest_ = 0;
  uint32_t missing_ = 0; // number of datagrams that were not counted as arrived
  Departure last_;       // of the last datagram of which a delay was measured
  uint64_t heard_ = 0;
  Base base_[2]; // minimum delay of the current span and of the one before
  uint64_t base_at_ = 0;
  int64_t variation_ = 0; // of delays
  int64_t last_queue_ = 0;
  Delivery delivered_[2]; // of the current span and of the one before

  // Reports on datagrams that left after the last change of the rate:
  uint32_t changed_ = 0; // time of the change, in units of report_unit
  uint32_t reports_ = 0;
  Departure first_;
  int64_t least_ = 0;   // least queue
  int64_t queue_ = 0;   // of the last decision
  uint64_t since_ = 0;  // when the queue began to drain
  uint64_t unused_ = 0; // since when the rate is not used; 0: it is
  bool denied_ = false; // streams had to wait

  uint8_t late_ = 0;                // consecutive reports on datagrams that left long ago
  uint64_t late_at_ = 0;            // time of the first of them
  uint8_t lossy_ = 0;               // consecutive samples with excessive loss
  uint32_t counted_ = 0, lost_ = 0; // newest_ and missing_ at the start of the current sample of losses
  double loss_ = 0;                 // share of lost datagrams of recent samples

  uint64_t filled_ = 0; // when the account was filled
  double streams_ = 0;  // bytes that streams may send
};

} // namespace uplink::detail::client
