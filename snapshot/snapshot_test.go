package snapshot_test

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/uplink-rpc/uplink/schema"
	"github.com/uplink-rpc/uplink/snapshot"
)

type crate struct {
	Position schema.Vec3 `uplink:"resolution=0.01,min=-50,max=50"`
	Open     bool
}

// crates puts three crates, of which one moves with the tick.
func crates(tick int) func(put func(id uint16, generation uint8, v *crate) error) error {
	return func(put func(uint16, uint8, *crate) error) error {
		for id := range uint16(3) {
			c := crate{Position: schema.Vec3{X: float64(id)}, Open: tick > 10}
			if id == 1 {
				c.Position.Y = float64(tick) / 4
			}
			if err := put(2*id, uint8(id), &c); err != nil {
				return err
			}
		}
		return nil
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestLossyLink checks that a client decodes each snapshot that it receives, whatever was lost
// before, and that clients with the same baseline receive the same bytes.
func TestLossyLink(t *testing.T) {
	for _, initial := range []func(put func(uint16, uint8, *crate) error) error{nil, crates(0)} {
		w, err := snapshot.NewWorld("Crate", initial)
		must(t, err)
		senders := []*snapshot.Sender{w.NewSender(), w.NewSender(), w.NewSender()}
		receivers := make([]*snapshot.Receiver[crate], len(senders))
		for i := range receivers {
			receivers[i], err = snapshot.NewReceiver("Crate", initial)
			must(t, err)
		}
		if _, err := senders[0].Append(nil, 1000); err == nil {
			t.Error("encoded a snapshot before Begin")
		}
		size := 0
		for tick := range 100 {
			w.Begin()
			must(t, crates(tick)(w.Put))
			var payloads [][]byte
			for i, s := range senders {
				b, err := s.Append([]byte("header"), 1000)
				must(t, err)
				payloads = append(payloads, b[len("header"):])
				if lost := i > 0 && tick%3 == 0; lost {
					continue
				}
				got, err := receivers[i].Decode(payloads[i])
				must(t, err)
				if want := got.Objects[1]; int(got.Seq) != tick || len(got.Objects) != 3 || want.ID != 2 || want.Generation != 1 ||
					want.State != (crate{Position: schema.Vec3{X: 1, Y: float64(tick) / 4}, Open: tick > 10}) {
					t.Fatalf("tick %d: client %d decoded %+v", tick, i, got)
				}
				must(t, s.Ack(receivers[i].AppendAck(nil)))
			}
			if !bytes.Equal(payloads[1], payloads[2]) {
				t.Fatalf("tick %d: two clients with the same baseline received %x and %x", tick, payloads[1], payloads[2])
			}
			size += len(payloads[0])
		}
		if size > 100*12 {
			t.Errorf("the snapshots took %d bytes, want at most 12 each", size)
		}
	}
}

// TestDropped checks the errors of payloads and acks that are dropped.
func TestDropped(t *testing.T) {
	w, err := snapshot.NewWorld[crate]("Crate", nil)
	must(t, err)
	r, err := snapshot.NewReceiver[crate]("Crate", nil)
	must(t, err)
	s := w.NewSender()
	w.Begin()
	must(t, crates(1)(w.Put))
	if b, err := s.Append([]byte{1}, 3); !errors.Is(err, snapshot.ErrTooLarge) || !slices.Equal(b, []byte{1}) {
		t.Errorf("a limit of 3 bytes returned %x, %v", b, err)
	}
	b, err := s.Append(nil, 1000)
	must(t, err)
	_, err = r.Decode(b)
	must(t, err)
	if _, err := r.Decode(b); !errors.Is(err, snapshot.ErrLate) {
		t.Errorf("a duplicate returned %v", err)
	}
	if _, err := r.Decode(b[:1]); !errors.Is(err, snapshot.ErrMalformed) {
		t.Errorf("the first byte returned %v", err)
	}
	ack := r.AppendAck(nil)
	if err := s.Ack(append(ack, 0)); !errors.Is(err, snapshot.ErrMalformed) {
		t.Errorf("an ack with a further byte returned %v", err)
	}
	if err := w.NewSender().Ack(ack); !errors.Is(err, snapshot.ErrAck) {
		t.Errorf("an ack of another sender returned %v", err)
	}
	if err := w.Put(9, 0, &crate{Position: schema.Vec3{X: 51}}); err == nil {
		t.Error("put a position out of range")
	}
}

func TestSendAndReceiveDoNotAllocate(t *testing.T) {
	w, err := snapshot.NewWorld[crate]("Crate", nil)
	must(t, err)
	r, err := snapshot.NewReceiver[crate]("Crate", nil)
	must(t, err)
	s := w.NewSender()
	tick := 0
	payload, ack := make([]byte, 0, 1000), make([]byte, 0, 20)
	var c crate
	step := func() {
		tick++
		w.Begin()
		for id := range uint16(50) {
			c.Position.X = float64(tick % 32)
			must(t, w.Put(id, 0, &c))
		}
		payload, err = s.Append(payload[:0], 1000)
		must(t, err)
		_, err = r.Decode(payload)
		must(t, err)
		ack = r.AppendAck(ack[:0])
		must(t, s.Ack(ack))
	}
	for range 200 {
		step()
	}
	if n := testing.AllocsPerRun(100, step); n != 0 {
		t.Errorf("a snapshot allocated %v times", n)
	}
}
