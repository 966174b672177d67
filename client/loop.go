package client

import (
	"errors"
	"fmt"
	"time"

	"github.com/uplink-rpc/uplink/predict"
)

// LoopConfig configures a [Loop].
type LoopConfig[S, I any] struct {
	// Input returns the player's input for a tick. at is the time at which the tick is due, which
	// is in the past if Advance was called late. seq is the sequence number of the call with the
	// input; it is 0 in the first tick of each session: earlier numbers are then obsolete. If the
	// session changes before the input is sent, Input is called again for the tick.
	Input func(at time.Time, seq uint64) I
	// Predict configures the prediction. Its Step is called with inputs as the server decodes them.
	Predict predict.Config[S, I]
}

// maxCatchUp is the delay above which a [Loop] skips ticks. After a longer stall, most of the
// missed inputs would arrive too late, and their prediction would have to be corrected.
const maxCatchUp = 150 * time.Millisecond

// Loop runs the ticks of a client that predicts its player, at the rate of an RPC
// (BindConfig.RateHz) and at the pace of its jitter buffer at the server (ds.JitterBuffer). In each
// tick it gets the player's input from the game, sends it by the RPC, and applies it to the
// predicted state S. The game passes the states of the player that the server sends, and the Loop
// corrects the prediction with them. The server must register the RPC with ds.ForPrediction.
//
// A Loop continues in a new session of the connection and after a handover: inputs that only the
// previous server has received are discarded, and the prediction continues from the first state of
// the new server. While the client is reconnecting, ticks pass without input.
//
// After NewLoop nothing is allocated, apart from fields coded as msgpack. Not safe for concurrent
// use.
type Loop[S, I any] struct {
	stream   *Stream[I]
	cfg      LoopConfig[S, I]
	me       *predict.Predictor[S, I]
	interval time.Duration // interval of ticks at the normal pace
	next     time.Time     // time at which the next tick is due; zero before the first one
	session  *sender
	dropped  uint64 // number of dropped inputs when the session began
	tick     uint64 // tick of the last state of the server
	id       uint32 // id of the player's object in that state
	known    bool   // a state of the server was received in this session
	passed   uint64 // tick of the last state that was passed to Correct
	former   uint64 // value of passed when the session began
	input    I      // scratch of run
	stats    LoopStats
}

// LoopStats contains the counts of a [Loop].
type LoopStats struct {
	predict.Stats
	// Skipped is the number of ticks that were not run because Advance was called more than 150 ms
	// after they were due. Unsent is the number of ticks without an input, because the client was
	// reconnecting or because of an error that Advance returned.
	Skipped, Unsent uint64
}

// NewLoop returns a loop that sends its inputs by a stream, which has no other sender. start is the
// state until the server sends one. An error names the invalid field of cfg.
func NewLoop[S, I any](stream *Stream[I], start S, cfg LoopConfig[S, I]) (*Loop[S, I], error) {
	if cfg.Input == nil {
		return nil, errors.New("client: LoopConfig.Input is nil")
	}
	me, err := predict.New(start, cfg.Predict)
	if err != nil {
		return nil, fmt.Errorf("client: LoopConfig.Predict: %w", err)
	}
	interval := time.Duration(float64(time.Second) / stream.b.schema.RateHz())
	return &Loop[S, I]{stream: stream, cfg: cfg, me: me, interval: interval}, nil
}

// Advance runs the ticks that are due at now, and returns when the next one is due. Call it then,
// or once in each frame drawn, with [time.Now]. If it is called late, it runs the missed ticks at
// once; if it is more than 150 ms late, it skips them. It returns the first error of [Stream.Send]
// other than ErrReconnecting, without running further ticks. The loop remains usable.
func (l *Loop[S, I]) Advance(now time.Time) (next time.Time, err error) {
	if l.next.IsZero() {
		l.next = now
	}
	if late := now.Sub(l.next); late > maxCatchUp {
		l.stats.Skipped += uint64(late / l.interval)
		l.next = now
	}
	for !l.next.After(now) && err == nil {
		at := l.next
		l.next = at.Add(l.stream.b.paceAt(now).Interval(l.interval))
		if err = l.run(at); err != nil {
			l.stats.Unsent++
		}
		if errors.Is(err, ErrReconnecting) {
			err = nil
		}
	}
	return l.next, err
}

// Correct corrects the prediction with a state of the player's object in a snapshot or update,
// whose Tick and Processed are tick and p. id is the object's id as in Snapshot.IDs. Correct
// applies the inputs again that the state does not include. A state whose tick is not later than
// that of the last state has no effect, so Latest may be passed in each frame. The state must not
// be older than tick, which Snapshot.Ages reports.
//
// If id differs from that of the last state, for example after a respawn with another generation,
// or if the session is new, the change is neither counted as a correction nor reported to the game.
//
// An error means that the messages do not contain the number of processed calls of the RPC, because
// the server does not register it with ds.ForPrediction.
func (l *Loop[S, I]) Correct(tick uint64, id uint32, p Processed, state *S) error {
	session, processed, ok := l.stream.b.processedIn(p)
	if session == nil { // reconnecting
		return nil
	}
	if session != l.session {
		l.begin(session)
	}
	l.passed = tick
	switch {
	case l.known && tick <= l.tick:
	case !ok:
		if !l.known && tick != l.former && l.me.Stats().Dropped > l.dropped {
			return fmt.Errorf("client: RPC %s: the server's states do not tell which calls they contain: register the RPC with ds.ForPrediction",
				l.stream.b.schema.RPC())
		}
	case l.known && id == l.id:
		l.tick = tick
		l.me.Correct(processed, state)
	default:
		l.tick, l.id, l.known = tick, id, true
		l.me.Place(processed, state)
	}
	return nil
}

// begin begins a session.
func (l *Loop[S, I]) begin(session *sender) {
	l.session, l.known, l.former, l.dropped = session, false, l.passed, l.me.Stats().Dropped
	l.me.Reset(*l.me.State())
}

// run runs the tick that is due at a time.
func (l *Loop[S, I]) run(at time.Time) error {
	for {
		session, seq, err := l.stream.upcoming()
		if err != nil {
			return err
		}
		if session != l.session {
			l.begin(session)
		}
		l.input = l.cfg.Input(at, seq)
		switch sent, err := l.stream.sendIn(session, seq, &l.input); {
		case err != nil:
			return err
		case sent:
			return l.me.Apply(seq, &l.input)
		}
	}
}

// State returns the predicted state. It is valid until the next call of a method.
func (l *Loop[S, I]) State() *S { return l.me.State() }

// Known reports whether a state of the server was received in this session.
func (l *Loop[S, I]) Known() bool { return l.known }

// Waiting returns the number of inputs that the server's newest state does not include.
func (l *Loop[S, I]) Waiting() int { return l.me.Waiting() }

// Stats returns the counts.
func (l *Loop[S, I]) Stats() LoopStats {
	l.stats.Stats = l.me.Stats()
	return l.stats
}
