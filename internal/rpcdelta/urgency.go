package rpcdelta

import (
	"github.com/uplink-rpc/uplink/internal/rpcdelta/adaptive"
	"github.com/uplink-rpc/uplink/internal/rpcdelta/cost"
	"github.com/uplink-rpc/uplink/internal/schema"
)

// urgency decides which frames must be sent without waiting for later ones. A frame is urgent if a
// discrete field changed, or if the model of the codec did not expect its values: their cost in
// bits (the negative logarithm of their probability) is far above the usual one. Urgency affects
// only when frames are sent, so the ends need not agree on it.
type urgency struct {
	coder  *adaptiveCoder
	fields []fieldUrgency
	recent *adaptive.Frames // all frames, as if the decoder had accepted them
	frame  frameUrgency     // urgency of the frame that is being measured
}

// fieldUrgency is the urgency of one field.
type fieldUrgency struct {
	rule  urgencyRule
	flags float64   // cost of the flags of the frame that is being measured
	usual []float64 // mean cost of each component's changes; 0 before the first change
}

// urgencyRule determines which frames are urgent.
type urgencyRule uint8

const (
	neverUrgent      urgencyRule = iota
	urgentUnexpected             // a value that the model did not expect
	urgentNewValue               // an unexpected value, or an unexpected change
	urgentChange                 // any change
)

const (
	// surprise is the cost in bits above the usual cost from which a value counts as unexpected: it
	// is 65,000 times less likely than usual.
	surprise = 16
	// unexpectedChange is the cost in bits from which a change counts as unexpected: in this state,
	// fewer than one frame in 16 changes the field.
	unexpectedChange = 4
	// usualRate is the weight of a change in the mean cost.
	usualRate = 1.0 / 16
	// recentFrames is the number of frames that a prediction from the previous frame reads.
	recentFrames = 8
)

// newUrgency returns the urgency of frames of schema s.
func newUrgency(s *schema.Schema, c *adaptiveCoder) *urgency {
	u := &urgency{
		coder:  c,
		fields: make([]fieldUrgency, len(s.Fields())),
		recent: adaptive.NewFrames(s.Components(), s.Strings(), recentFrames),
	}
	for i, l := range s.Layouts() {
		u.fields[i].rule = ruleOf(&l)
		u.fields[i].usual = make([]float64, l.N)
	}
	return u
}

// ruleOf returns the rule of a field.
func ruleOf(l *schema.Layout) urgencyRule {
	switch f := l.Field; {
	case f.Urgent != nil && *f.Urgent:
		return urgentChange
	case f.Urgent != nil:
		return neverUrgent
	case f.Kind == schema.KindBits || f.Kind == schema.KindBool:
		return urgentChange
	case f.Kind == schema.KindUint || f.Kind == schema.KindInt:
		return urgentNewValue
	case f.Kind == schema.KindFixed || f.Kind == schema.KindBytes:
		return neverUrgent
	}
	return urgentUnexpected
}

// frameUrgency determines when a frame and its copies are sent.
type frameUrgency uint8

const (
	patient  frameUrgency = iota // may wait for later frames
	atOnce                       // sent without delay: the model did not expect a value
	repeated                     // sent without delay, and so are its copies: an urgent field changed
)

// add adds frame seq, which follows the frame added last, and returns its urgency.
func (u *urgency) add(f *schema.Frame, seq uint64) frameUrgency {
	u.frame = patient
	u.coder.coder.MeasureNext(u, f, seq, u.coder.state, u.recent)
	u.recent.Put(seq, f, adaptive.Shape{})
	return u.frame
}

// Count, Frame, Flags, Contents and Component implement [cost.Meter].
func (*urgency) Count(float64) {}
func (*urgency) Frame(int)     {}

func (u *urgency) Flags(field int, bits float64) { u.fields[field].flags = bits }

func (u *urgency) Contents(field int, _ float64) {
	if u.fields[field].rule == urgentChange {
		u.frame = repeated
	}
}

func (u *urgency) Component(field, k int, bits float64, by cost.Predictor, _ int64) {
	if by == cost.ByRest {
		return
	}
	f := &u.fields[field]
	usual := &f.usual[k]
	if *usual == 0 {
		*usual = bits
	}
	switch {
	case f.rule == urgentChange, f.rule == urgentNewValue && f.flags > unexpectedChange:
		u.frame = repeated
	case f.rule != neverUrgent && bits > *usual+surprise:
		u.frame = max(u.frame, atOnce)
	}
	*usual += (min(bits, *usual+surprise) - *usual) * usualRate
}
