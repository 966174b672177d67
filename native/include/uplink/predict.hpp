// Client-side prediction: a client applies its own inputs at once, and corrects the result when the
// server's state arrives. docs/prediction.md describes it.
//
// A Predictor stores the inputs that the server has not processed. When a state of the server
// arrives, with the number of inputs that it includes, the Predictor resets to that state and
// applies the later inputs again. It uses no clock and no network, and does not allocate.
#pragma once

#include "uplink/base.hpp"

namespace uplink {

// PredictionStats contains the counts of a Predictor.
struct PredictionStats {
  uint64_t inputs = 0;   // applied inputs
  uint64_t replayed = 0; // inputs that were applied again
  uint64_t states = 0;   // states of the server that were used
  uint64_t late = 0; // states that were not used, because they lack an input that an earlier state included
  uint64_t corrections = 0; // corrections by more than the tolerance
  double sum = 0;           // sum of the distances of all corrections
  double largest = 0;       // largest distance of a correction
  // Inputs that were dropped before the server had processed them, because more than max_inputs
  // were waiting. Their effect is missing after a correction.
  uint64_t dropped = 0;
};

// InputHistory tracks the sequence numbers of the inputs that the server has not processed. It is
// the part of a Predictor that does not depend on the types of states and inputs. The program
// stores the inputs, each in the slot that apply returns.
class InputHistory {
public:
  // sequences has room for capacity numbers, at least 1, and must outlive the history. Corrections
  // by at most tolerance are neither counted nor reported.
  InputHistory(uint64_t *sequences, size_t capacity, double tolerance)
      : sequences_(sequences), capacity_(capacity), tolerance_(tolerance) {}

  const PredictionStats &stats() const { return stats_; }
  size_t waiting() const { return static_cast<size_t>(count_ - oldest_); }
  // slot returns the slot of waiting input i. Input 0 is the oldest.
  size_t slot(size_t i) const { return static_cast<size_t>((oldest_ + i) % capacity_); }

  // apply adds an input with a sequence number, and sets *slot to its slot. Error::invalid: the
  // number is not higher than that of the previous input; nothing changes.
  Error apply(uint64_t sequence, size_t *slot) {
    if (sequence < next_) return Error::invalid;
    next_ = sequence + 1;
    stats_.inputs++;
    if (count_ - oldest_ == capacity_) {
      oldest_++;
      stats_.dropped++;
    }
    *slot = static_cast<size_t>(count_++ % capacity_);
    sequences_[*slot] = sequence;
    return Error::ok;
  }

  // correct removes the inputs with numbers below processed, which a state of the server includes.
  // It reports whether to use the state: then the program resets to it, applies the waiting inputs
  // again, and calls corrected.
  bool correct(uint64_t processed) {
    if (processed < done_) {
      stats_.late++;
      return false;
    }
    stats_.states++;
    done_ = processed;
    while (oldest_ < count_ && sequences_[oldest_ % capacity_] < processed) oldest_++;
    stats_.replayed += waiting();
    return true;
  }

  // corrected counts the distance by which the predicted state changed, and reports whether it exceeds the
  // tolerance.
  bool corrected(double distance) {
    if (distance <= tolerance_) return false;
    stats_.corrections++;
    stats_.sum += distance;
    if (!(distance <= stats_.largest)) stats_.largest = distance;
    return true;
  }

  void reset() { oldest_ = count_ = next_ = done_ = 0; }

private:
  uint64_t *sequences_;
  size_t capacity_;
  double tolerance_;
  uint64_t oldest_ = 0; // number of inputs removed so far
  uint64_t count_ = 0;  // number of inputs added so far
  uint64_t next_ = 0;   // lowest sequence number of the next input
  uint64_t done_ = 0;   // sequence number after the last input that the server processed
  PredictionStats stats_;
};

// Predictor predicts the state of one player. Game must have these functions, and these types,
// which are copied by assignment:
//
//   struct Game {
//     using State = Body;
//     using Input = Move;
//     // step advances a state by one input, as the server does. Its result depends only on its
//     // arguments.
//     void step(State &state, const Input &input);
//     // distance returns the distance between two states, in the unit of the tolerance.
//     double distance(const State &a, const State &b);
//     // corrected is called after each correction of more than the tolerance, for a smoother.
//     void corrected(const State &before, const State &after);
//   };
//
// The default of max_inputs corresponds to 2 s at 60 inputs a second.
template <typename Game, size_t max_inputs = 128> class Predictor {
public:
  using State = typename Game::State;
  using Input = typename Game::Input;

  // Corrections by at most tolerance are neither counted nor reported, but they are made.
  Predictor(Game &game, const State &start, double tolerance = 0)
      : game_(game), state_(start), before_(start), history_(sequences_, max_inputs, tolerance) {}
  Predictor(const Predictor &) = delete;
  Predictor &operator=(const Predictor &) = delete;

  // state returns the predicted state: the newest state of the server, advanced by all inputs that
  // it lacks.
  const State &state() const { return state_; }
  const PredictionStats &stats() const { return history_.stats(); }
  // waiting returns the number of inputs that the server's newest state does not include.
  size_t waiting() const { return history_.waiting(); }

  // apply applies an input that was sent with a sequence number. Error::invalid: the number is not
  // higher than that of the previous input; nothing changes.
  Error apply(uint64_t sequence, const Input &input) {
    size_t slot = 0;
    const Error e = history_.apply(sequence, &slot);
    if (e != Error::ok) return e;
    inputs_[slot] = input;
    game_.step(state_, input);
    return Error::ok;
  }

  // correct replaces the state by a state of the server, applies the later inputs again, and
  // returns the distance between the new and the previous predicted state. The state of the server
  // includes the inputs with sequence numbers below processed; inputs that were lost count as
  // processed. If an earlier state included more inputs, correct has no effect. Pass states with
  // equal processed in the order of their ticks.
  double correct(uint64_t processed, const State &state) {
    if (!replay(processed, state)) return 0;
    const double distance = game_.distance(before_, state_);
    if (history_.corrected(distance)) game_.corrected(before_, state_);
    return distance;
  }

  // place is like correct, for a state that does not continue the previous one: the player's first
  // state, or the first one after a respawn. It is neither counted as a correction nor reported.
  void place(uint64_t processed, const State &state) { replay(processed, state); }

  // reset restarts the prediction from a state and removes all inputs, for a new session. Sequence
  // numbers may restart at 0; the counts continue.
  void reset(const State &start) {
    state_ = start;
    history_.reset();
  }

private:
  static_assert(max_inputs > 0);

  // replay replaces the state by a state of the server and applies the later inputs again. It
  // returns false if an earlier state included more inputs; then nothing changes.
  bool replay(uint64_t processed, const State &state) {
    if (!history_.correct(processed)) return false;
    before_ = state_;
    state_ = state;
    for (size_t i = 0; i < history_.waiting(); i++) game_.step(state_, inputs_[history_.slot(i)]);
    return true;
  }

  Game &game_;
  State state_;
  State before_;
  uint64_t sequences_[max_inputs] = {};
  Input inputs_[max_inputs] = {};
  InputHistory history_;
};

} // namespace uplink
