// Coded parts: objects as differences from a baseline. docs/spec/snapshots.md, 3 to 12.
#pragma once

#include "src/codec/rangecoder.hpp"
#include "src/downlink/grid.hpp"
#include "src/downlink/orientation.hpp"
#include "src/downlink/set.hpp"

namespace uplink::detail::downlink {

constexpr size_t reference_count = 4;
// ages are the distances from the baseline to the references, in steps.
constexpr uint64_t ages[reference_count] = {1, 2, 4, 6};
// Numbers of contexts of an integer and of classes, and the constant input of a prediction.
constexpr size_t integer_size = 697, classes = 7;
constexpr size_t none_near = 123; // context of a distance if no moving object is near
constexpr Int bias = 2048;

// Matrix is a rotation matrix in Q16.
struct Matrix {
  Int m[3][3];
  Int extent(size_t k) const { return absolute(m[k][0]) + absolute(m[k][1]) + absolute(m[k][2]); }
};

// ObjectCoder decodes parts with objects of one type. It reuses its memory.
class ObjectCoder {
public:
  bool create(const Allocator &a, const TypeImpl &t);

  // begin starts a part, and returns the step of its references, 0 if it has none. has_step reports
  // whether the part may have references.
  uint64_t begin(Bytes coded, bool has_step);
  // decode decodes the objects into a set. It uses references if the step is above 0. The result is
  // Error::ok, Error::malformed or Error::no_memory.
  Error decode(const Set &base, uint64_t distance, const Set *const (&references)[reference_count], Set *out);

private:
  // Pair is an object and its index in the baseline; -1: not in the baseline.
  struct Pair {
    Object object;
    int32_t base = -1;
  };

  // Neighbor is the context that an object provides for later objects.
  struct Neighbor {
    Int position[3];
    Int miss[3];
    Int missed, turn;
  };

  // Velocities of a component over the spans of section 9.
  struct Velocities {
    Int v0, v1, v2, v3, v01, v12, v23;
  };

  // The coder. docs/spec/snapshots.md, 4.
  bool bit(uint16_t *context);
  int length(uint16_t *contexts, int middle);
  Int integer(uint16_t *contexts, Int level, Int sign);
  uint64_t count(uint16_t *contexts, int level);
  int32_t uniform(int32_t lo, int32_t hi);
  // component decodes a component, and returns the prediction error in Q4.
  Int component(uint16_t *contexts, Int level, Int sign, Int guess, const RowField &f, int32_t *to);

  void start_contexts();
  void decode_physics(const Set &base, Set *out);
  void use_physics(const Set &base, const Physics &p);
  bool decode_list(const Set &base);
  bool find_references(const Set &base, const Set *const (&references)[reference_count]);
  bool decode_rows(const Set &base, Set *out);

  void position_of(const int32_t *row, Int (&p)[3]) const;
  bool differ(const int32_t *a, const int32_t *b) const;
  int flag_of(const int32_t *row) const;
  bool at_rest(size_t base) const;
  void load(const Set &base, size_t index);
  void absolute_row(int32_t *row);
  void active(int32_t *row);
  void resting(const Set &base, Set *out);
  void disturbed(const Set &base, size_t index, size_t contact, int32_t *row);
  void kept(bool moved, int32_t *row);
  void kept_bytes(const RowField &f, uint16_t *contexts, bool moved, int32_t *row);

  void motion(int32_t *row);
  void find_neighbor();
  Velocities velocities(size_t component) const;
  void measure(const RowField &f);
  void classify();
  void load_orientations();
  Int decode_quat(const RowField &f, int32_t *row);
  void decode_number(const RowField &f, bool is_position, int32_t *row);
  const int32_t (&position_terms(size_t k, Int base, Int (&x)[terms], Int *out))[terms];
  const int32_t (&roll(size_t k, Int base, Int (&x)[terms]))[terms];
  void decode_angle(const RowField &f, int32_t *row);
  Int above(size_t k, const Matrix &m, Int at) const;

  const TypeImpl *type_ = nullptr;
  Allocator allocator_;
  RangeDecoder in_;
  bool bad_ = false;
  uint64_t step_ = 0;
  Int distance_;
  size_t model_ = 0;

  // Contexts by field, and contexts of all objects.
  Array<uint16_t> contexts_;
  uint16_t *of_field_[max_object_fields] = {};
  uint16_t *same_[max_object_fields] = {};
  uint16_t *changed_ = nullptr, *disturbed_ = nullptr, *how_ = nullptr, *quiet_ = nullptr,
           *removed_ = nullptr;
  uint16_t *added_ = nullptr, *gap_ = nullptr, *physics_ = nullptr;

  Physics used_; // with the replacements of S10
  Int reach_;

  Array<Pair> pairs_, merged_;
  size_t pairs_n_ = 0;
  const Set *references_[reference_count] = {};
  Array<int32_t> index_[reference_count]; // index of each baseline object in the references; -1: none
  Array<uint32_t> resting_;
  size_t resting_n_ = 0;
  Neighbor nearby_[16];
  size_t nearby_n_ = 0; // number of nearby objects so far
  Grid grid_;
  unsigned changes_ = 0;

  // State of the current object:
  const int32_t *base_ = nullptr;
  const int32_t *rows_[reference_count] = {};
  Int lag_[reference_count];
  unsigned moved_ = 0, speed_context_ = 0;
  bool rest_ = false;
  int flag_ = 0;
  Int class_;
  const Neighbor *near_ = nullptr;
  Int near_gap_;
  Velocities velocity_[3];
  Int jerk_, jerk1_, log_jerk_, log_jerk1_, log_speed_;
  Int drift_[3], change_[3];
  Int miss_[3], missed_, turned_;
  bool has_pose_ = false;
  int ground_ = -1; // axis
  Matrix before_, base_pose_, now_;
  Int turn_[3];
};

} // namespace uplink::detail::downlink
