package predict

import (
	"cmp"
	"errors"
	"fmt"
	"math"
)

// Config configures a [Predictor] of states S under inputs I.
type Config[S, I any] struct {
	// Step advances a state by one input, as the server does. It must depend only on its arguments.
	Step func(state *S, input *I)
	// Distance returns the distance between two states, in the unit of Tolerance: for example
	// between the positions of the player.
	Distance func(a, b *S) float64
	// Tolerance is the distance up to which a correction is neither counted nor reported; default
	// 0. The state is corrected all the same.
	Tolerance float64
	// Corrected, if set, is called after each correction of more than Tolerance with the predicted
	// state before and after it, for a smoother. Both are valid during the call.
	Corrected func(before, after *S)
	// Inputs is the maximum number of inputs that are kept until the server has processed them, up
	// to 4096; default 128, which is 2 s at 60 inputs a second.
	Inputs int
}

const (
	defaultInputs = 128
	maxInputs     = 4096
)

// errOrder reports an input whose sequence number is not higher than that of the previous input.
var errOrder = errors.New("predict: the sequence numbers of inputs must ascend")

// Stats contains the counts of a [Predictor].
type Stats struct {
	// Inputs is the number of applied inputs, and Replayed the number of inputs that were applied
	// again.
	Inputs, Replayed uint64
	// States is the number of the server's states used. Late is the number of states that were not
	// used, because they lack an input that an earlier state included.
	States, Late uint64
	// Corrections is the number of corrections of more than Config.Tolerance. Sum is the sum of
	// their distances, and Largest the largest one. A distance that is not a number counts as
	// infinite.
	Corrections  uint64
	Sum, Largest float64
	// Dropped is the number of inputs that were dropped before the server had processed them,
	// because there were more than Config.Inputs. Their effect is missing after a correction.
	Dropped uint64
}

// Predictor predicts the state of one player. States are copied by assignment, so S must not refer
// to memory that Step changes. After New nothing is allocated. Not safe for concurrent use.
type Predictor[S, I any] struct {
	cfg    Config[S, I]
	state  S
	before S             // scratch of replay
	inputs []numbered[I] // ring buffer
	oldest uint64        // number of inputs that were removed from the ring
	count  uint64        // number of inputs that were ever added to it
	next   uint64        // lowest sequence number that an input may have
	done   uint64        // sequence number after the last input that the server processed
	stats  Stats
}

type numbered[I any] struct {
	seq   uint64
	input I
}

// New returns a predictor that starts from a state. An error names the invalid field of cfg.
func New[S, I any](start S, cfg Config[S, I]) (*Predictor[S, I], error) {
	cfg.Inputs = cmp.Or(cfg.Inputs, defaultInputs)
	switch {
	case cfg.Step == nil:
		return nil, errors.New("predict: Config.Step is nil")
	case cfg.Distance == nil:
		return nil, errors.New("predict: Config.Distance is nil")
	case !(cfg.Tolerance >= 0):
		return nil, fmt.Errorf("predict: Config.Tolerance is %v, want 0 or above", cfg.Tolerance)
	case cfg.Inputs < 1 || cfg.Inputs > maxInputs:
		return nil, fmt.Errorf("predict: Config.Inputs is %d, want 1 to %d", cfg.Inputs, maxInputs)
	}
	return &Predictor[S, I]{cfg: cfg, state: start, inputs: make([]numbered[I], cfg.Inputs)}, nil
}

// State returns the predicted state: the server's newest state plus all inputs that it does not
// contain. It is valid until the next call of a method.
func (p *Predictor[S, I]) State() *S { return &p.state }

// Stats returns the counts.
func (p *Predictor[S, I]) Stats() Stats { return p.stats }

// Apply applies an input that was sent with a sequence number. Numbers ascend, with gaps or
// without; else Apply returns an error and changes nothing.
func (p *Predictor[S, I]) Apply(seq uint64, input *I) error {
	if seq < p.next {
		return fmt.Errorf("%w: %d after %d", errOrder, seq, p.next-1)
	}
	p.next = seq + 1
	p.stats.Inputs++
	if p.count-p.oldest == uint64(len(p.inputs)) {
		p.oldest++
		p.stats.Dropped++
	}
	*p.at(p.count) = numbered[I]{seq, *input}
	p.count++
	p.cfg.Step(&p.state, input)
	return nil
}

// Correct replaces the state by one of the server and predicts from there. The server's state
// contains the inputs with sequence numbers below processed, which is 0 if it contains none. Inputs
// that the server lost or dropped count as processed. The inputs from processed on are applied
// again. Correct returns the distance between the predicted states before and after. It does
// nothing if an earlier state contained more inputs. Pass states with the same inputs in the order
// of their ticks.
func (p *Predictor[S, I]) Correct(processed uint64, state *S) (distance float64) {
	if !p.replay(processed, state) {
		return 0
	}
	distance = p.cfg.Distance(&p.before, &p.state)
	if distance <= p.cfg.Tolerance {
		return distance
	}
	if math.IsNaN(distance) {
		distance = math.Inf(1)
	}
	p.stats.Corrections++
	p.stats.Sum += distance
	p.stats.Largest = max(p.stats.Largest, distance)
	if p.cfg.Corrected != nil {
		p.cfg.Corrected(&p.before, &p.state)
	}
	return distance
}

// Place is Correct for a state that does not continue the previous one: the player's first state,
// or the first after a respawn. It is not counted as a correction, nor reported.
func (p *Predictor[S, I]) Place(processed uint64, state *S) { p.replay(processed, state) }

// replay replaces the state by a state of the server plus the later inputs. It reports false if the
// state is outdated.
func (p *Predictor[S, I]) replay(processed uint64, state *S) bool {
	if processed < p.done {
		p.stats.Late++
		return false
	}
	p.stats.States++
	p.done = processed
	for p.oldest < p.count && p.at(p.oldest).seq < processed {
		p.oldest++
	}
	p.before, p.state = p.state, *state
	for i := p.oldest; i < p.count; i++ {
		p.cfg.Step(&p.state, &p.at(i).input)
		p.stats.Replayed++
	}
	return true
}

// Waiting returns the number of inputs that the server's newest state does not contain.
func (p *Predictor[S, I]) Waiting() int { return int(p.count - p.oldest) }

// Reset starts again from a state without inputs, as in a new session. Sequence numbers may start
// at 0 again; the counts continue.
func (p *Predictor[S, I]) Reset(start S) {
	clear(p.inputs)
	p.state, p.oldest, p.count, p.next, p.done = start, 0, 0, 0, 0
}

func (p *Predictor[S, I]) at(i uint64) *numbered[I] { return &p.inputs[i%uint64(len(p.inputs))] }
