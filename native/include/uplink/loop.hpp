// The ticks of a client that predicts its player. docs/prediction.md describes it.
//
//   Loop<Game> loop(*client, rpc, *frame, 60, game, start);
//   // each frame drawn, after Socket::run and Client::poll_event:
//   loop.correct(*world, snapshot.tick, uplink::object_key(id, generation), body);
//   loop.advance(uplink::now(), &next); // when the next tick is due
//   draw(loop.state());
#pragma once

#include "uplink/client.hpp"
#include "uplink/predict.hpp"

namespace uplink {

// max_catch_up is the delay in ns above which a Loop skips ticks. After a longer stall, most of the
// missed inputs would arrive too late, and their prediction would have to be corrected.
constexpr uint64_t max_catch_up = 150000000;

// object_key identifies an object by its id and its generation.
constexpr uint32_t object_key(uint16_t id, uint8_t generation) {
  return static_cast<uint32_t>(id) << 8 | generation;
}

// Loop runs the ticks of a client that predicts its player, at the pace of the jitter buffer of an
// RPC. In each tick it gets the player's input from the game, calls the RPC with it, and applies it
// to the predicted state. The program passes the states of the player that the server sends, and
// the Loop corrects the prediction with them. The server must register the RPC with
// ds.ForPrediction.
//
// A Loop continues in a new session and after a handover: it removes the inputs of the previous
// session, and continues from the first state of the new one. While the RPC is not bound, ticks
// pass without input.
//
// Game must have the types and functions that a Predictor requires, and:
//
//   // input returns the player's input for a tick. at is the time at which the tick is due, which is in the
//   // past if advance was called late. sequence is the number of the call with the input; it is 0 in the
//   // first tick of each session: numbers from before then have no meaning.
//   Input input(uint64_t at, uint64_t sequence);
//   // pack sets a frame of the RPC to an input. unpack restores what the server decodes: step gets that.
//   Error pack(const Input &input, Frame &frame);
//   Error unpack(const Frame &frame, Input &input);
//
// A Loop must be used on the thread of the client. It does not allocate.
template <typename Game, size_t max_inputs = 128> class Loop {
public:
  using State = typename Game::State;
  using Input = typename Game::Input;

  // rpc is the number that Client::bind returned for the schema of the frame. Only the Loop may
  // call this RPC. hz is the number of ticks per second, above 0. start is the state until the
  // server sends one. tolerance is that of a Predictor.
  Loop(Client &client, uint8_t rpc, Frame &frame, double hz, Game &game, const State &start,
       double tolerance = 0)
      : client_(client), rpc_(rpc), frame_(frame), interval_(static_cast<uint64_t>(1e9 / hz)), game_(game),
        me_(game, start, tolerance) {}

  // advance runs the ticks that are due at now, and sets *next to the time at which the next one is
  // due. If it is called late, it runs the missed ticks at once; if it is more than max_catch_up
  // late, it skips them. It returns the first error of Game::pack, Game::unpack or Client::call and
  // ends there; the loop remains usable.
  Error advance(uint64_t now, uint64_t *next) {
    if (!started_ || now > next_ + max_catch_up) {
      if (started_) skipped_ += (now - next_) / interval_;
      next_ = now;
      started_ = true;
    }
    Error e = Error::ok;
    while (next_ <= now && e == Error::ok) {
      const uint64_t at = next_;
      next_ = at + client_.pace(rpc_, now).interval(interval_);
      e = run(at, now);
      if (e != Error::ok) unsent_++;
      if (e == Error::closed) e = Error::ok;
    }
    *next = next_;
    return e;
  }

  // correct corrects the prediction with a state of the player's object in the newest message of a
  // world, and that message's tick. It applies the inputs again that the state does not include. A
  // state whose tick is not later than that of the last state has no effect, so the newest state
  // may be passed in each frame. key identifies the object. If it differs from that of the last
  // state, for example after a respawn, or if the session is new, the change is neither counted as
  // a correction nor reported. Error::invalid: the messages do not contain the number of processed
  // calls of the RPC, because the server does not register it with ds.ForPrediction.
  Error correct(const ClientWorld &world, uint64_t tick, uint32_t key, const State &state) {
    uint64_t session = 0, sequence = 0, processed = 0;
    if (!client_.next_call(rpc_, &session, &sequence)) return Error::ok;
    if (session != session_) begin(session);
    passed_ = tick;
    if (known_ && tick <= tick_) return Error::ok;
    if (!world.processed(rpc_, &processed))
      return !known_ && tick != former_ && stats().dropped > dropped_ ? Error::invalid : Error::ok;
    if (known_ && key == key_)
      me_.correct(processed, state);
    else
      me_.place(processed, state);
    tick_ = tick;
    key_ = key;
    known_ = true;
    return Error::ok;
  }

  // state returns the predicted state.
  const State &state() const { return me_.state(); }
  // known reports whether a state of the server was received in this session.
  bool known() const { return known_; }
  // waiting returns the number of inputs that the server's newest state does not include.
  size_t waiting() const { return me_.waiting(); }
  const PredictionStats &stats() const { return me_.stats(); }
  // skipped returns the number of ticks that were skipped because advance was called too late.
  // unsent returns the number of ticks without an input, because the RPC was not bound or because
  // of an error.
  uint64_t skipped() const { return skipped_; }
  uint64_t unsent() const { return unsent_; }

private:
  void begin(uint64_t session) {
    session_ = session;
    known_ = false;
    former_ = passed_;
    dropped_ = stats().dropped;
    me_.reset(State(me_.state()));
  }

  Error run(uint64_t at, uint64_t now) {
    uint64_t session = 0, sequence = 0;
    if (!client_.next_call(rpc_, &session, &sequence)) return Error::closed;
    if (session != session_) begin(session);
    Input input = game_.input(at, sequence);
    Error e = game_.pack(input, frame_);
    if (e == Error::ok) e = client_.call(rpc_, frame_, now);
    if (e == Error::ok) e = game_.unpack(frame_, input);
    return e == Error::ok ? me_.apply(sequence, input) : e;
  }

  Client &client_;
  uint8_t rpc_;
  Frame &frame_;
  uint64_t interval_;
  Game &game_;
  Predictor<Game, max_inputs> me_;
  uint64_t next_ = 0;    // time at which the next tick is due
  uint64_t session_ = 0; // session of Client::next_call; 0: none
  uint64_t dropped_ = 0; // PredictionStats::dropped when the session began
  uint64_t passed_ = 0;  // tick of the last call of correct
  uint64_t former_ = 0;  // value of passed_ when the session began
  uint64_t tick_ = 0;    // tick of the last state that was used
  uint32_t key_ = 0;
  bool started_ = false, known_ = false;
  uint64_t skipped_ = 0, unsent_ = 0;
};

} // namespace uplink
