// Client-side prediction: a client applies its own inputs at once, and corrects the result when the
// server's state arrives. docs/prediction.md describes it.
//
// A Predictor keeps the inputs that the server has not processed. When a state of the server comes with
// the number of inputs processed in it, the Predictor goes back to that state and applies the later
// inputs again. It has no clock and no network, and allocates nothing.
#pragma once

#include "uplink/base.hpp"

namespace uplink {

// PredictionStats counts what a Predictor did.
struct PredictionStats {
  uint64_t inputs = 0;      // applied
  uint64_t replayed = 0;    // how often one was applied again
  uint64_t states = 0;      // of the server, that were used
  uint64_t late = 0;        // and not used: they lack an input that was processed before
  uint64_t corrections = 0; // of more than the tolerance
  double sum = 0;           // of their distances
  double largest = 0;       // of their distances
  // Inputs that were dropped before the server had processed them, because there were more than
  // max_inputs. Their effect is missing after a correction.
  uint64_t dropped = 0;
};

// InputHistory numbers the inputs that the server has not processed. It is the part of a Predictor
// without states and inputs: the program keeps these, each input in the slot with its index.
class InputHistory {
public:
  // sequences has room for capacity numbers, at least 1. A distance up to tolerance is neither counted nor
  // reported.
  InputHistory(uint64_t *sequences, size_t capacity, double tolerance)
      : sequences_(sequences), capacity_(capacity), tolerance_(tolerance) {}

  const PredictionStats &stats() const { return stats_; }
  size_t waiting() const { return static_cast<size_t>(count_ - oldest_); }
  // slot returns where waiting input i is kept. Input 0 is the oldest.
  size_t slot(size_t i) const { return static_cast<size_t>((oldest_ + i) % capacity_); }

  // apply sets the slot for an input with a sequence number. Error::invalid: the number is not above that
  // of the input before; nothing changes.
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

  // correct removes the inputs with numbers below processed, which a state of the server contains. It
  // reports whether the state is to be used: the program goes back to it, applies the waiting inputs
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
  uint64_t oldest_ = 0; // inputs that were removed
  uint64_t count_ = 0;  // inputs that were ever added
  uint64_t next_ = 0;   // lowest sequence number of the next input
  uint64_t done_ = 0;   // sequence number after the last input that the server processed
  PredictionStats stats_;
};

// Predictor predicts the state of one player. Game has these types, which are copied by assignment, and
// functions:
//
//   struct Game {
//     using State = Body;
//     using Input = Move;
//     // step advances a state by one input, as the server does. It depends on its arguments alone.
//     void step(State &state, const Input &input);
//     // distance returns how far apart two states are, in the unit of the tolerance.
//     double distance(const State &a, const State &b);
//     // corrected is called after each correction of more than the tolerance, for a smoother.
//     void corrected(const State &before, const State &after);
//   };
//
// max_inputs 128 is 2 s at 60 inputs a second.
template <typename Game, size_t max_inputs = 128> class Predictor {
public:
  using State = typename Game::State;
  using Input = typename Game::Input;

  // A distance up to tolerance is neither counted nor reported; the state is corrected all the same.
  Predictor(Game &game, const State &start, double tolerance = 0)
      : game_(game), state_(start), before_(start), history_(sequences_, max_inputs, tolerance) {}
  Predictor(const Predictor &) = delete;
  Predictor &operator=(const Predictor &) = delete;

  // state returns the predicted state: the newest one of the server with all inputs that it lacks.
  const State &state() const { return state_; }
  const PredictionStats &stats() const { return history_.stats(); }
  // waiting returns the number of inputs that the server's newest state does not contain.
  size_t waiting() const { return history_.waiting(); }

  // apply applies an input that was sent with a sequence number. Error::invalid: the number is not above
  // that of the input before; nothing changes.
  Error apply(uint64_t sequence, const Input &input) {
    size_t slot = 0;
    const Error e = history_.apply(sequence, &slot);
    if (e != Error::ok) return e;
    inputs_[slot] = input;
    game_.step(state_, input);
    return Error::ok;
  }

  // correct replaces the state by one of the server, and predicts from there. That state contains the
  // inputs with sequence numbers below processed: those that the server lost count as processed. It
  // returns the distance of the predicted state from the one before. If the server has sent a state with
  // more inputs before, it does nothing. States with equally many come in the order of their ticks.
  double correct(uint64_t processed, const State &state) {
    if (!replay(processed, state)) return 0;
    const double distance = game_.distance(before_, state_);
    if (history_.corrected(distance)) game_.corrected(before_, state_);
    return distance;
  }

  // place is correct for a state that does not continue the one before: the first one of the player, or the
  // first one after a respawn. It is neither counted as a correction nor reported.
  void place(uint64_t processed, const State &state) { replay(processed, state); }

  // reset starts again from a state without inputs, as in a new session. Sequence numbers may start at 0
  // again; the counts continue.
  void reset(const State &start) {
    state_ = start;
    history_.reset();
  }

private:
  static_assert(max_inputs > 0);

  // replay replaces the state by one of the server with the later inputs, and reports whether it did.
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
