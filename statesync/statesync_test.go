package statesync_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/uplink-rpc/uplink/snapshot"
	"github.com/uplink-rpc/uplink/statesync"
)

func newBalls(t *testing.T) (*statesync.World[Ball], *statesync.Sender, *statesync.Receiver[Ball]) {
	t.Helper()
	w, err := statesync.NewWorld[Ball]("Ball", 60, statesync.Config{})
	must(t, err)
	s, err := w.NewSender(nil)
	must(t, err)
	r, err := statesync.NewReceiver[Ball]("Ball", 60, statesync.Config{})
	must(t, err)
	return w, s, r
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestInputsAndRemovals checks what an update contains beside the states of objects.
func TestInputsAndRemovals(t *testing.T) {
	w, s, r := newBalls(t)
	must(t, w.Prioritize(3, 1))
	must(t, w.Put(3, 1, &Ball{}))
	must(t, w.SetTick(5))
	must(t, s.AddInputs(4, statesync.Input{Player: 1, Data: []byte("jump")}, statesync.Input{Player: 9}))
	must(t, s.AddInputs(6))
	send := func() *statesync.Update[Ball] {
		t.Helper()
		b, err := s.Append(nil)
		must(t, err)
		u, err := r.Decode(b)
		must(t, err)
		must(t, s.Ack(r.AppendAck(nil)))
		return u
	}
	u := send()
	if u.Tick != 5 || !u.First || len(u.Objects) != 1 || u.Objects[0].ID != 3 || u.Objects[0].Generation != 1 {
		t.Errorf("the update is %+v, want object 3 of tick 5", u)
	}
	same := func(a, b statesync.Input) bool { return a.Player == b.Player && string(a.Data) == string(b.Data) }
	if in := u.Inputs; len(in) != 3 || in[0].Tick != 4 || !in[1].Missing || in[2].Missing || len(in[2].Inputs) != 0 ||
		!slices.EqualFunc(in[0].Inputs, []statesync.Input{{Player: 1, Data: []byte("jump")}, {Player: 9}}, same) {
		t.Errorf("the inputs are %+v, want those of ticks 4 and 6", in)
	}
	must(t, w.SetTick(6))
	if u = send(); len(u.Objects) != 1 || !u.Objects[0].Gone || u.First || len(u.Inputs) != 0 {
		t.Errorf("the update is %+v, want a removal", u)
	}
	if err := w.SetTick(5); !errors.Is(err, statesync.ErrTick) {
		t.Errorf("an earlier tick returned %v", err)
	}
}

// TestFormerSender checks that packets and acks of a replaced sender are dropped.
func TestFormerSender(t *testing.T) {
	w, former, r := newBalls(t)
	must(t, w.Prioritize(3, 1))
	must(t, w.Put(3, 0, &Ball{}))
	must(t, w.SetTick(1))
	old, err := former.Append(nil)
	must(t, err)
	_, err = r.Decode(old)
	must(t, err)
	ack := r.AppendAck(nil)
	s, err := w.NewSender(former)
	must(t, err)
	b, err := s.Append(nil)
	must(t, err)
	must(t, s.Ack(ack)) // of the former sender: it has no effect
	u, err := r.Decode(b)
	must(t, err)
	if !u.First || len(u.Objects) != 1 {
		t.Errorf("the first packet of the new sender is %+v, want First and object 3", u)
	}
	if _, err := r.Decode(old); err == nil {
		t.Error("decoded a packet of the former sender")
	}
	if err := s.Ack([]byte{0}); !errors.Is(err, snapshot.ErrMalformed) {
		t.Errorf("an ack of one byte returned %v", err)
	}
}
