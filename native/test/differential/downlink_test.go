//go:build native

package differential

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/uplink-rpc/uplink/area"
	"github.com/uplink-rpc/uplink/internal/cubes"
	"github.com/uplink-rpc/uplink/internal/replication/areas"
	"github.com/uplink-rpc/uplink/internal/snapshot"
	"github.com/uplink-rpc/uplink/internal/uplinktest/cubeset"
)

var worldFrames = flag.Int("world-frames", 400, "number of snapshots of a recording to play for each link")

// maxMemory is the permitted memory of a decoder of 901 objects, in bytes.
const maxMemory = 3 << 19

const recording = "../../../testdata/traces/cubes_delta_data_2000.bin.gz"

// world is a sender of the Go packages, and their decoder.
type world interface {
	// send makes the next message.
	send(n int) ([]byte, error)
	decode([]byte) (*snapshot.Set, error)
	acks() []byte
	ack([]byte) error
}

// recorded are the snapshots of a recording.
type recorded struct {
	sets     []*snapshot.Set
	world    *snapshot.World
	encoder  snapshot.Encoder
	receipts snapshot.Receipts
	decoder  *snapshot.Decoder
}

func (r *recorded) send(n int) ([]byte, error) {
	r.world.Begin().CopyFrom(r.sets[n])
	number := r.world.Next() - 1
	b := r.receipts.Baseline(number)
	payload, _, err := r.encoder.Append(nil, r.world, b, 1<<17)
	r.receipts.Sent(number, b)
	return payload, err
}

func (r *recorded) decode(b []byte) (*snapshot.Set, error) {
	_, set, err := r.decoder.Decode(b)
	return set, err
}

func (r *recorded) acks() []byte {
	a := r.decoder.Ack()
	return a.Append(nil)
}

func (r *recorded) ack(b []byte) error {
	a, _, err := snapshot.ParseAck(b)
	if err == nil {
		_, err = r.receipts.Ack(a)
	}
	return err
}

// recordedAreas are those of a world with areas: squares of the plane, of which the player sees
// some.
type recordedAreas struct {
	sets    []*snapshot.Set
	world   *areas.World
	kind    *areas.Type
	builder areas.Builder
	view    areas.View
	decoder *areas.Decoder
}

// square returns the area of a position, 1 to 16.
func square(row []int32) area.ID {
	const size = 4096 // steps
	x, y := min(max(int(row[4])/size+2, 0), 3), min(max(int(row[5])/size+2, 0), 3)
	return area.ID(1 + x + 4*y)
}

func (r *recordedAreas) send(n int) ([]byte, error) {
	r.world.Begin()
	set := r.sets[n]
	for i := range set.Len() {
		if err := r.world.Put(r.kind, set.Object(i), set.Row(i), square(set.Row(i))); err != nil {
			return nil, err
		}
	}
	r.world.Commit()
	if n%90 == 0 {
		var seen []area.ID
		for k := range 8 {
			seen = append(seen, area.ID(1+(n/90+k)%16))
		}
		r.view.See(seen)
	}
	return r.builder.Append(nil, r.world, &r.view, r.view.Receipts.Baseline(r.world.Next()-1), areas.Limits{Enter: 1200, Hold: 8}), nil
}

func (r *recordedAreas) decode(b []byte) (*snapshot.Set, error) {
	_, _, err := r.decoder.Decode(b)
	return r.decoder.Shown(0), err
}

func (r *recordedAreas) acks() []byte {
	a := r.decoder.Ack()
	return a.Append(nil)
}

func (r *recordedAreas) ack(b []byte) error {
	a, _, err := snapshot.ParseAck(b)
	if err == nil {
		_, err = r.view.Ack(a)
	}
	return err
}

// TestWorlds plays a recording of 901 cubes to the decoders of both implementations, over links
// that lose, delay and damage messages. Each result must be the same.
func TestWorlds(t *testing.T) {
	frames, err := cubes.Load(recording)
	if err != nil {
		t.Fatal(err)
	}
	sets, err := cubeset.Of(frames)
	if err != nil {
		t.Fatal(err)
	}
	n := min(*worldFrames, len(sets)-1)
	for _, loss := range []float64{0, 0.05, 0.2} {
		t.Run(fmt.Sprintf("snapshots, loss %v", loss), func(t *testing.T) {
			initial := snapshot.NewWorld(cubeset.Schema(), nil)
			initial.Begin().CopyFrom(sets[0])
			coded, _, err := new(snapshot.Encoder).Append(nil, initial, snapshot.Baseline{Empty: true}, 1<<20)
			if err != nil {
				t.Fatal(err)
			}
			s := cubeset.Schema()
			native, err := newNativeSnapshots(s, coded)
			if err != nil {
				t.Fatal(err)
			}
			defer checkMemory(t, native)
			compareWorlds(t, n, loss, &recorded{sets: sets[1:], world: snapshot.NewWorld(s, sets[0]), decoder: snapshot.NewDecoder(s, sets[0])}, native)
		})
		t.Run(fmt.Sprintf("areas, loss %v", loss), func(t *testing.T) {
			s := cubeset.Schema()
			native, err := newNativeAreas(s)
			if err != nil {
				t.Fatal(err)
			}
			defer checkMemory(t, native)
			r := &recordedAreas{sets: sets[1:], world: areas.NewWorld(), decoder: areas.NewDecoder(s)}
			r.kind = r.world.AddType(s)
			compareWorlds(t, n, loss, r, native)
		})
	}
}

// checkMemory checks what the decoder of a world of 901 objects took.
func checkMemory(t *testing.T, w *nativeWorld) {
	most, left := w.close()
	t.Logf("at most %d bytes", most)
	if most > maxMemory || left != 0 {
		t.Errorf("%d bytes, at most %d are permitted; %d were not released", most, maxMemory, left)
	}
}

// compareWorlds plays n snapshots.
func compareWorlds(t *testing.T, n int, loss float64, w world, native *nativeWorld) {
	t.Helper()
	rng := rand.New(rand.NewPCG(*seed, uint64(loss*100)))
	decoded := 0
	receive := func(b []byte) {
		set, err := w.decode(b)
		if got := native.decode(b); !sameReason(err, got) {
			t.Fatalf("seed %d: %v, the library: %v", *seed, err, got)
		}
		if err == nil {
			decoded++
			if !native.equal(set) {
				t.Fatalf("seed %d: a snapshot differs", *seed)
			}
		}
		if want, got := w.acks(), native.ack(); !bytes.Equal(want, got) {
			t.Fatalf("seed %d: ack %x, the library: %x", *seed, want, got)
		}
	}
	var waiting [][]byte // messages, and acks of them, arrive 5 snapshots later
	var acks [][]byte
	for i := range n {
		b, err := w.send(i)
		if err != nil {
			t.Fatal(err)
		}
		waiting = append(waiting, b)
		if len(waiting) > 5 {
			b, waiting = waiting[0], waiting[1:]
			if rng.IntN(20) == 0 {
				damaged := bytes.Clone(b)
				damaged[rng.IntN(len(b))] ^= 1 << rng.IntN(8)
				receive(damaged)
			}
			if rng.Float64() >= loss {
				receive(b)
			}
			acks = append(acks, w.acks())
		}
		if len(acks) > 5 {
			b, acks = acks[0], acks[1:]
			if rng.Float64() >= loss {
				_ = w.ack(b) // a damaged message can move the decoder beyond what was sent
			}
		}
	}
	t.Logf("%d snapshots sent, %d decoded", n, decoded)
	if float64(decoded) < float64(n)*(1-loss)*0.6 {
		t.Error("too few were decoded")
	}
}
