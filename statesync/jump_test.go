package statesync_test

import (
	"testing"

	"github.com/uplink-rpc/uplink/statesync"
)

// TestTickJumps has ticks that jump, however far, come as they were sent, and what follows go on.
func TestTickJumps(t *testing.T) {
	s, r := pair(t, schema(t), config)
	set := still(t, schema(t), 3)
	tick := int64(-1 << 50)
	for _, jump := range []int64{1, 1, 2, 1000, 1, 1 << 29, 1, 1<<30 + 5, 1, 1 << 33, 1 << 40, 1, 1, 1 << 51, 1, 7} {
		tick += jump
		if err := s.AddInputs(tick, statesync.Input{Data: []byte{byte(jump)}}); err != nil {
			t.Fatal(err)
		}
		for id := range uint16(3) {
			_ = s.Prioritize(id, 1)
		}
		out, info, err := s.Append(nil, tick, set)
		if err != nil {
			t.Fatal(err)
		}
		u, err := r.Decode(out)
		if err != nil || u.Tick != tick || len(u.Objects) != len(info.Objects) || len(u.Objects) == 0 {
			t.Fatalf("tick %d, %d after the last, came as %+v: %v", tick, jump, u, err)
		}
		if n := len(u.Inputs); n == 0 || u.Inputs[n-1].Tick != tick || u.Inputs[n-1].Missing {
			t.Fatalf("tick %d: inputs %+v", tick, u.Inputs)
		}
		if err := s.Ack(r.Ack()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestForeignEpoch has a receiver that does not have the epoch that somebody else acked in its name get a new start soon, and
// acks of before a new start that come late make no other.
func TestForeignEpoch(t *testing.T) {
	s, r := pair(t, schema(t), config)
	set := still(t, schema(t), 3)
	tick := int64(0)
	send := func() []byte {
		tick++
		for id := range uint16(3) {
			_ = s.Prioritize(id, 1)
		}
		out, _, err := s.Append(nil, tick, set)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	for range 10 {
		if _, err := r.Decode(send()); err != nil {
			t.Fatal(err)
		}
		_ = s.Ack(r.Ack())
	}
	old := r.Ack()
	old.Reset = true
	_ = s.Ack(old) // a new start
	lost := send()
	lie := statesync.Ack{Epoch: old.Epoch + 1, Newest: old.Newest + 1}
	if err := s.Ack(lie); err != nil {
		t.Fatal(err)
	}
	_ = s.Ack(old) // it was late
	if st := s.Stats(); st.Starts != 1 {
		t.Errorf("%d starts, want 1", st.Starts)
	}
	refused := 0
	for range 30 {
		if _, err := r.Decode(send()); err != nil {
			refused++
		}
		_ = s.Ack(r.Ack())
	}
	if st := s.Stats(); refused < 1 || refused > 9 || st.Starts != 2 {
		t.Errorf("%d packets are refused, %d starts", refused, st.Starts)
	}
	if _, err := r.Decode(lost); err == nil {
		t.Error("a packet of before the new start was taken")
	}
}
