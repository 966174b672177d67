// The receiver of state packets. docs/spec/state.md.
#pragma once

#include "src/base/memory.hpp"
#include "src/downlink/state/coder.hpp"
#include "uplink/state.hpp"

namespace uplink::detail::state {

constexpr uint32_t no_record = UINT32_MAX;
constexpr size_t max_updates = 255; // maximum number of updates in a packet
constexpr size_t max_ticks = 32;
constexpr size_t max_input_bytes = 1024;

// Record is an update of an object: its row, or its removal. Its components, trends and misses are
// in arrays of the receiver.
struct Record {
  uint32_t older = no_record; // older record of the same object; in an unused record the next unused one
  uint32_t next = no_record;  // next record of the same packet
  uint64_t number = 0;        // number of the packet
  int64_t tick = 0;
  uint16_t id = 0;
  uint8_t generation = 0;
  bool gone = false;
  bool rests = false;
  bool zero = false;
};

// Packet is a decoded packet that other packets may refer to.
struct Packet {
  uint64_t number = 0;
  bool kept = false;
  int64_t tick = 0;
  uint64_t base = 0;          // number of the base packet; in a keyframe the packet's own number
  uint32_t first = no_record; // first of its updates, until they are settled
  int64_t from = 0, to = 0;   // range of ticks with inputs
  size_t input_bytes = 0;     // size of its last inputs
};

// View is the set of packets whose updates are baselines: the base packet and older packets.
struct View {
  uint64_t base = 0;
  uint64_t bits = 0; // bit i stands for packet base - i

  bool has(uint64_t number) const {
    return number <= base && base - number < 64 && (bits >> (base - number) & 1) != 0;
  }
};

// Baseline is an object with a baseline in a packet.
struct Baseline {
  uint16_t id;
  uint32_t record;
};

// TickSlot contains the known inputs of a tick.
struct TickSlot {
  int64_t tick = INT64_MIN;
  bool known = false;
  size_t size = 0;
};

class StateImpl final : public StateReceiver {
public:
  explicit StateImpl(const Allocator &a) : allocator_(a) {}

  // create allocates room for objects of a plan. All fields of c are set.
  Error create(const StatePlan &plan, const StateConfig &c);

  Allocator allocator() const { return allocator_; }
  ObjectType *type = nullptr; // type with the schema of the objects; null in tests
  int rest_field = -1;        // index in the schema, or -1

  Error do_receive(Bytes packet, StateUpdate *u);
  StateObject do_object(size_t i) const;
  TickInputs do_inputs(size_t i) const;
  size_t do_ack(uint8_t *to) const;
  void do_reset();
  const StateStats &counts() const { return stats_; }
  const StatePlan &plan() const { return plan_; }
  const StateConfig &config() const { return config_; }
  // relink replaces the plan by another one for the same objects, and resets the receiver.
  void relink(const StatePlan &p) {
    plan_ = p;
    do_reset();
  }

private:
  struct Header {
    uint64_t number = 0;
    uint64_t distance = 0;
    uint8_t epoch = 0;
    int64_t tick = 0;
    Bytes coded;
  };
  // Scales determines the scale of the residuals of a field.
  struct Scales {
    int64_t common[3];
    int64_t missed = 0;
    int64_t scale = 0;
    FieldModels *models;
    const int32_t (*weights)[8];
  };

  // Packets.
  bool parse(Bytes packet, Header *h) const;
  Error check(const Header &h) const;
  Error decode(const Header &h);
  Error fail(Error e, const Header &h);
  void accept(const Header &h, StateUpdate *u);
  void accept_inputs(StateUpdate *u);
  bool ahead(uint64_t number) const { return !any_ || number > newest_; }
  bool is_first(const Header &h) const;
  bool decoded(uint64_t number) const;
  void mark(uint64_t number);
  Packet &slot(uint64_t number) { return packets_[number % 64]; }
  const Packet *find(uint64_t number) const;
  void settle(uint64_t floor);
  void settle_packet(Packet &p);
  void clear_packets(uint64_t final);
  void sweep();
  size_t known_at(uint16_t id) const;
  void link(uint32_t record);

  // Records.
  uint32_t take();
  void release(uint32_t record);
  void release_chain(uint32_t *record);
  int32_t *row(uint32_t record) { return rows_.data() + record * stride_; }
  const int32_t *row(uint32_t record) const { return rows_.data() + record * stride_; }
  int32_t *trends(uint32_t record) { return row(record) + plan_.components; }
  uint8_t *misses(uint32_t record) { return misses_.data() + record * plan_.n; }

  // The coded part.
  bool find_view(uint64_t base);
  void find_bases();
  const Baseline *base_of(uint16_t id) const;
  uint16_t hash() const;
  bool decode_inputs(const Packet *base);
  bool decode_tick(TickSlot *t, uint8_t *data, size_t *size);
  bool updates();
  uint32_t update(uint16_t id, const Baseline *base);
  int age(uint32_t base) const;
  void locate(uint32_t record);

  // Updates.
  void whole(uint32_t to);
  void delta(uint32_t to, uint32_t base);
  void text(const StateField &f, FieldModels *m, int32_t *to, const int32_t *base);
  void start(Scales *s, size_t field, int64_t elapsed, int64_t unsteady, int64_t speed, int64_t learned,
             int64_t velocity);
  int64_t residual(Scales *s, size_t k);
  static void learn(Scales *s, size_t k, int64_t missed);
  void end(const Scales &s, size_t field, uint32_t to);
  void motion(size_t field, uint32_t to, uint32_t base, int64_t elapsed);
  void orientation(size_t field, uint32_t to, uint32_t base, int64_t elapsed);

  Allocator allocator_;
  StatePlan plan_;
  StateConfig config_;
  size_t stride_ = 0; // number of a record's components and trends

  Array<Record> records_;
  Array<int32_t> rows_;
  Array<uint8_t> misses_;
  uint32_t free_ = no_record;
  size_t free_n_ = 0;

  struct Known {
    uint16_t id;
    uint32_t newest;
  };
  Array<Known> known_; // objects with an update in any packet, by ascending id
  size_t known_n_ = 0;
  bool sweep_due_ = false;

  Array<Packet> packets_;      // packets by number modulo 64
  Array<StateModels> models_;  // models after each packet, and of the current packet
  Array<FieldModels> fields_;  // models of each field after each packet, and of the current packet
  Array<uint8_t> last_inputs_; // last inputs after each packet, and of the current packet

  Array<TickSlot> log_; // inputs by tick modulo 64

  bool any_ = false;
  uint64_t newest_ = 0;
  int64_t newest_tick_ = 0;
  uint64_t window_ = 0; // bit i is set if packet newest - i was decoded
  uint64_t floor_ = 0;  // no packet refers to earlier packets
  uint64_t final_ = 0;  // packets before it are settled
  uint8_t epoch_ = 0;
  bool restart_ = false;
  StateStats stats_;

  // The current packet.
  StateCoder coder_;
  Packet work_;
  bool keyframe_ = false;
  bool full_ = false;
  View view_;
  Array<Baseline> bases_;
  size_t bases_n_ = 0;
  int viewer_ = -1;
  bool located_ = false;
  int32_t place_[3] = {};
  int64_t logs_[max_object_fields] = {};
  uint32_t updated_[max_updates] = {};
  size_t updated_n_ = 0;
  TickSlot ticks_[max_ticks];
  size_t ticks_n_ = 0;
  Array<uint8_t> tick_data_;
  uint8_t news_[max_ticks] = {}; // ticks with new inputs
  size_t news_n_ = 0;
  bool shown_ = false; // the records in updated_ are valid only until the next packet
};

} // namespace uplink::detail::state
