package statesync_test

import (
	"testing"

	"github.com/uplink-rpc/uplink/internal/statesync"
)

// TestTickJumps sends ticks that jump ahead by any distance.
func TestTickJumps(t *testing.T) {
	s, r := pair(t, testSchema(t), config)
	set := still(t, testSchema(t), 3)
	tick := int64(-1 << 50)
	for _, jump := range []int64{1, 1, 2, 1000, 1, 1 << 29, 1, 1<<30 + 5, 1, 1 << 33, 1 << 40, 1, 1, 1 << 51, 1, 7} {
		tick += jump
		must(t, s.AddInputs(tick, statesync.Input{Data: []byte{byte(jump)}}))
		out, info := send(t, s, tick, set)
		u, err := r.Decode(out)
		if err != nil || u.Tick != tick || len(u.Objects) != len(info.Objects) || len(u.Objects) == 0 {
			t.Fatalf("tick %d, %d after the last, came as %+v: %v", tick, jump, u, err)
		}
		if n := len(u.Inputs); n == 0 || u.Inputs[n-1].Tick != tick || u.Inputs[n-1].Missing {
			t.Fatalf("tick %d: inputs %+v", tick, u.Inputs)
		}
		must(t, s.Ack(r.Ack()))
	}
}

// TestForeignEpoch forges the ack of an epoch that the receiver does not have. The receiver gets a
// restart soon, and late acks from before it cause no other.
func TestForeignEpoch(t *testing.T) {
	s, r := pair(t, testSchema(t), config)
	set := still(t, testSchema(t), 3)
	tick := int64(0)
	send := func() []byte {
		tick++
		out, _ := send(t, s, tick, set)
		return out
	}
	for range 10 {
		decode(t, r, send())
		_ = s.Ack(r.Ack())
	}
	old := r.Ack()
	old.Reset = true
	_ = s.Ack(old) // a new start
	lost := send()
	lie := statesync.Ack{Epoch: old.Epoch + 1, Newest: old.Newest + 1}
	must(t, s.Ack(lie))
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

// TestSenderAfterSender replaces sender and receiver. Late packets and acks of the old ones have no
// effect, and the new receiver recognizes the first packet of the new sender.
func TestSenderAfterSender(t *testing.T) {
	cfg := config
	cfg.First, cfg.Epoch = 1<<20+70, 250 // as after others
	old, before := pair(t, testSchema(t), cfg)
	set := still(t, testSchema(t), 3)
	tick := int64(0)
	send := func(s *sender) []byte {
		tick++
		must(t, s.AddInputs(tick))
		out, _ := send(t, s, tick, set)
		return out
	}
	late := [][]byte{send(old), send(old)} // whole, as nothing is acked
	for _, p := range late {
		if _, err := before.Decode(p); err != nil {
			t.Fatal(err)
		}
	}
	_ = old.Ack(before.Ack())
	late = append(late, send(old))
	acked := before.Ack()

	cfg.First, cfg.Epoch = old.Next()
	s, r := pair(t, testSchema(t), cfg)
	if err := s.Ack(acked); err != nil || s.Stats().StaleAcks != 1 {
		t.Errorf("the first sender's ack: %v, %+v", err, s.Stats())
	}
	firsts := 0
	take := func(p []byte, want bool) {
		t.Helper()
		u, err := r.Decode(p)
		if (err == nil) != want {
			t.Errorf("decoded as %+v, %v", u, err)
		}
		if err == nil && u.First {
			firsts++
		}
	}
	take(late[0], true) // it refers to nothing
	if err := s.Ack(r.Ack()); err != nil || s.Stats().StaleAcks != 2 {
		t.Errorf("an ack of the first sender's packet: %v, %+v", err, s.Stats())
	}
	tick--
	one := send(s)
	u, err := r.Decode(one)
	if err != nil || !u.First || len(u.Objects) != 3 || len(u.Inputs) != 1 {
		t.Fatalf("the second sender's first packet is %+v, %v", u, err)
	}
	take(late[1], false)
	take(late[2], false)
	for range 100 {
		must(t, s.Ack(r.Ack()))
		take(send(s), true)
	}
	if st := s.Stats(); firsts != 1 || st.Starts != 0 || st.Whole > 6 {
		t.Errorf("%d of the others are first, %+v", firsts, st)
	}
	must(t, s.Ack(statesync.Ack{Reset: true, None: true}))
	take(send(s), true)
	if firsts != 1 || s.Stats().Starts != 1 {
		t.Errorf("a new start of the same sender is a first packet; %+v", s.Stats())
	}
}
