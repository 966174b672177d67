package replication

import (
	"runtime"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/internal/cubes"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/snapshot"
	"github.com/uplink-rpc/uplink/internal/statesync"
	"github.com/uplink-rpc/uplink/internal/uplinktest/allocs"
	"github.com/uplink-rpc/uplink/internal/uplinktest/fakeconn"
	"github.com/uplink-rpc/uplink/internal/uplinktest/race"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// cube is a recorded cube as a game would declare it.
type cube struct {
	Rotation    schema.Quat `uplink:"bits=10"`
	Position    schema.Vec3 `uplink:"resolution=0.001953125,min=-256,max=255.99"`
	Interacting bool
}

// recorded returns the first cubes of each frame of a recording.
func recorded(t testing.TB, name string, count int) [][]cube {
	t.Helper()
	frames, err := cubes.Load("../../testdata/traces/" + name)
	must(t, err)
	out := make([][]cube, len(frames))
	for n := range frames {
		for i := range min(count, len(frames[n])) {
			c := &frames[n][i]
			out[n] = append(out[n], cube{c.Orientation(), c.Meters(), c.Interacting != 0})
		}
	}
	return out
}

const (
	small  = "cubes_delta_data_120.bin.gz"
	all    = 901 // cubes of a recording
	tickHz = 60
	// ackDelay is the number of ticks from a message to its ack: a round trip of 100 ms.
	ackDelay = 6
)

// recording is a world of recorded cubes, played forward and backward, and players who ack each
// message after ackDelay ticks.
type recording struct {
	t       testing.TB
	codec   string
	frames  [][]cube
	typ     *snapshot.Type[cube]
	world   *World
	tick    uint64
	now     time.Time
	clock   func() time.Time // returns now
	spread  time.Duration    // of broadcasts
	some    bool             // not all players receive each tick
	players []*recordingPlayer
	ack     []byte
	inputs  []statesync.Input
}

type recordingPlayer struct {
	fakeconn.Conn
	replicas *Replicas
	replica  *Replica
	queue    SendQueue
	sending  func() // called by Send, unless it is nil
}

func (p *recordingPlayer) Send(b []byte) error {
	if p.sending != nil {
		p.sending()
	}
	return p.Conn.Send(b)
}

// newRecording returns a world with subscribed players. Snapshots have the first frame as their
// initial state if that is set.
func newRecording(t testing.TB, codec string, frames [][]cube, initial bool, players int) *recording {
	t.Helper()
	typ, err := snapshot.Compile[cube]("cubes")
	must(t, err)
	w, err := NewWorld(typ, "cubes", tickHz, tickHz, func(put func(uint16, uint8, *cube) error) (err error) {
		for i := range frames[0] {
			if initial && err == nil {
				err = put(uint16(i), 0, &frames[0][i])
			}
		}
		return err
	})
	must(t, err)
	r := &recording{t: t, codec: codec, frames: frames, typ: typ, world: w, now: time.Unix(0, 0), inputs: []statesync.Input{{Data: []byte{1, 2}}}}
	r.clock = func() time.Time { return r.now }
	for range players {
		r.join()
	}
	return r
}

// join adds a subscribed player.
func (r *recording) join() *recordingPlayer {
	p := &recordingPlayer{}
	p.replicas = NewReplicas(p)
	var err error
	if r.codec == SnapshotCodec {
		p.replica, err = r.world.Offer(p.replicas)
	} else {
		p.replica, err = r.world.OfferState(p.replicas, StateConfig{Bandwidth: 1_000_000_000})
	}
	must(r.t, err)
	p.reply(r, Ready)
	r.players = append(r.players, p)
	return p
}

// reply handles an answer of the client.
func (p *recordingPlayer) reply(r *recording, a Answer) {
	must(r.t, p.replicas.HandleReply(AppendReply(nil, p.replica.number, a)[1:], &p.queue, r.now))
}

// next makes a tick.
func (r *recording) next() {
	r.tick++
	r.now = r.now.Add(time.Second / tickHz)
	must(r.t, r.world.Begin(r.tick))
	n := uint64(len(r.frames))
	at := r.tick % (2*n - 2)
	if at >= n {
		at = 2*n - 2 - at
	}
	for i := range r.frames[at] {
		must(r.t, r.typ.Add(r.world.Open(), snapshot.Object{ID: uint16(i)}, &r.frames[at][i]))
	}
	r.world.Commit()
	for _, p := range r.players {
		if r.codec == SnapshotCodec {
			continue
		}
		must(r.t, p.replica.State(func(s *statesync.Sender) error {
			for i := range r.frames[at] {
				must(r.t, s.Prioritize(uint16(i), 1))
			}
			return s.AddInputs(int64(r.tick), r.inputs...)
		}))
	}
}

// send makes a tick and sends it to all players.
func (r *recording) send() {
	r.next()
	n, err := r.world.Broadcast(r.clock, r.spread)
	must(r.t, err)
	if _, waits := r.world.Release(r.now.Add(r.spread)); waits {
		r.t.Fatalf("messages wait for more than %v", r.spread)
	}
	if n != len(r.players) && !r.some {
		r.t.Fatalf("tick %d was sent to %d players of %d", r.tick, n, len(r.players))
	}
}

// step makes a tick, sends it, and acks an older one.
func (r *recording) step() {
	r.send()
	if r.tick <= ackDelay {
		return
	}
	newest := r.tick - 1 - ackDelay // messages count from 0
	r.ack = r.appendAck(r.ack[:0], uint16(newest), 1<<min(newest, 63)-1)
	for _, p := range r.players {
		must(r.t, p.replicas.HandleAck(r.ack, r.now))
	}
}

// appendAck appends an ack of stream 0 in the first epoch.
func (r *recording) appendAck(dst []byte, newest uint16, window uint64) []byte {
	if r.codec == StateCodec {
		a := statesync.Ack{Newest: newest, Window: window}
		return a.Append(append(dst, 0))
	}
	a := snapshot.Ack{Newest: newest, Window: window}
	return a.Append(append(dst, 0))
}

var codecs = []string{SnapshotCodec, StateCodec}

// TestBroadcastAllocs checks that a tick for many players and its acks allocate nothing.
func TestBroadcastAllocs(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	for codec, count := range map[string]int{SnapshotCodec: all, StateCodec: 20} {
		r := newRecording(t, codec, recorded(t, small, count), true, 9)
		r.spread = time.Second / tickHz / 2
		for range 300 {
			r.step()
		}
		if n := allocs.PerRun(100, r.step); n != 0 {
			t.Errorf("%s: %v allocations per tick", codec, n)
		}
		if st := r.world.Stats(); st.Acked != 9*(r.tick-ackDelay) || st.InvalidAcks != 0 || st.BaselineAge != ackDelay+1 || st.Resets != 0 {
			t.Errorf("%s: %d ticks, stats %+v", codec, r.tick, st)
		}
	}
}

// heap returns the size of reachable memory in bytes.
// TestPlayerMemory bounds the memory of a player's stream of snapshots.
func TestPlayerMemory(t *testing.T) {
	if race.Enabled || testing.Short() {
		t.Skip("it measures the memory of the process")
	}
	frames := recorded(t, small, all)
	measure := func(players int) float64 {
		before := allocs.Heap()
		r := newRecording(t, SnapshotCodec, frames, true, players)
		for range 100 {
			r.step()
		}
		n := float64(allocs.Heap() - before)
		runtime.KeepAlive(r)
		return n
	}
	few, many := measure(16), measure(144)
	if each := (many - few) / 128; each > 2<<10 {
		t.Errorf("%.0f bytes per player, want at most 2 KiB", each)
	}
}
