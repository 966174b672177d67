package client_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/schema"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/internal/control"
	"github.com/uplink-rpc/uplink/internal/replication"
	"github.com/uplink-rpc/uplink/internal/replication/fragment"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/interpolate"
	"github.com/uplink-rpc/uplink/jitter"
	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/snapshot"
	"github.com/uplink-rpc/uplink/statesync"
	"github.com/uplink-rpc/uplink/transport"
)

// assault is what a server, or somebody who forges its datagrams, does to a client that calls an RPC and takes a world
// as snapshots and another one as state.
type assault struct {
	name string
	run  func(*rogue, *victim)
	ends bool // the client closes the session, and connects again
}

// victim is the client of an assault.
type victim struct {
	conn  *client.Conn
	move  *client.Stream[uplinktest.Move]
	crate replication.Offer // the offer of the snapshots, number 1
	puck  replication.Offer // of the state, number 2
	next  uint64

	snapshots *client.SnapshotView[crate]
	states    *client.StateView[puck]
}

type crate struct {
	Position    schema.Vec3 `uplink:"resolution=0.01,min=-1000,max=1000" interpolate:"position"`
	Velocity    schema.Vec3 `uplink:"resolution=0.01,min=-1000,max=1000" interpolate:"velocity"`
	Orientation schema.Quat `uplink:"bits=9" interpolate:"orientation"`
	Lit         bool
}

type puck struct {
	Position schema.Vec3 `uplink:"resolution=0.01,min=-1000,max=1000,velocity=Velocity"`
	Velocity schema.Vec3 `uplink:"resolution=0.01,min=-100,max=100"`
}

// Bounds of what is held of a server, of two worlds.
var mostHeld = map[string]int{
	"offers": replication.MaxStreams, "worlds": 6, "streams": 2, "requests": 1,
	"initial bytes": replication.MaxInitial, "snapshot bytes": 32 << 20, "objects": snapshot.MaxObjects * 5 / 4,
	"updates": 128, "spare updates": 2*128 + 1,
}

const (
	mostHeap  = 48 << 20 // bytes that an assault may leave on the heap
	mostLines = 80       // of the log
	mostText  = 6 << 10  // bytes of a line of the log
)

var assaults = []assault{
	{name: "offers without end", ends: true, run: func(r *rogue, v *victim) {
		var all [][]byte
		for i := range 300 {
			o := v.crate
			o.Number, o.Name, o.Fields = uint8(i%replication.MaxStreams), fmt.Sprint("world ", i), []string{"other"}
			if i%3 == 0 {
				o.Name = v.crate.Name // is refused, and logged
			}
			all = append(all, r.offer(o))
		}
		r.messages(all...)
		if n := len(r.log.all()); n == 0 || n > 64/3+3 {
			r.t.Errorf("%d lines are logged", n)
		}
	}},
	{name: "one world by all numbers, withdrawn and offered again", run: func(r *rogue, v *victim) {
		for i := range 30 {
			o, p := v.crate, v.puck
			o.Number, p.Number = uint8(i%7), uint8(7+i%9)
			o.Initial, o.Hash = 100, 7
			stop := []byte{byte(control.Stop), uint8(i % 5)}
			r.messages(r.offer(o), append([]byte{byte(control.Piece), o.Number}, 1, 2, 3), r.offer(p), stop)
		}
	}},
	{name: "initial states that are never finished", run: func(r *rogue, v *victim) {
		for i := range 40 {
			o := v.crate
			o.Initial, o.Hash = replication.MaxInitial, uint64(i+1)
			r.messages(r.offer(o))
			r.messages(repeated(30, append([]byte{byte(control.Piece), o.Number}, make([]byte, 15<<10)...))...)
		}
	}},
	{name: "offers that cannot be", ends: true, run: func(r *rogue, v *victim) {
		for _, change := range []func(*replication.Offer){
			func(o *replication.Offer) { o.Number = replication.MaxStreams },
			func(o *replication.Offer) { o.Name = strings.Repeat("n", replication.MaxName+1) },
			func(o *replication.Offer) { o.Fields = make([]string, 12000) },
			func(o *replication.Offer) { o.RateHz = math.NaN() },
			func(o *replication.Offer) { o.TickHz = math.Inf(1) },
			func(o *replication.Offer) { o.RateHz = 0 },
			func(o *replication.Offer) { o.Initial = replication.MaxInitial + 1 },
			func(o *replication.Offer) { o.Initial = -1 },
			func(o *replication.Offer) { o.Initial = math.MaxInt },
		} {
			o := v.crate
			change(&o)
			before, id := v.conn.Stats().Malformed, v.conn.ID()
			r.messages(r.offer(o))
			settle(3 * time.Second) // a malformed message ends the session; the client connects again
			if n := v.conn.Stats().Malformed - before; n != 1 || v.conn.ID() == id {
				r.t.Errorf("%.100v is counted as malformed %d times", o, n)
			}
		}
	}},
	{name: "worlds so slow that no interval can be held", run: func(r *rogue, v *victim) {
		for _, hz := range []float64{1e-9, 1e-10, 1e-300, 5e-324} {
			o, p := v.crate, v.puck
			o.RateHz, p.RateHz, o.TickHz = hz, hz, hz
			before := v.conn.Stats().Replication
			r.messages(r.offer(o), r.offer(p))
			r.datagrams(repeated(500, append([]byte{byte(control.Down) | p.Number}, make([]byte, 20)...))...)
			for i, st := range v.conn.Stats().Replication {
				if n := st.Acks - before[i].Acks; n > 1 {
					r.t.Errorf("%v Hz: %d acks of world %s within a second", hz, n, st.Name)
				}
			}
		}
	}},
	{name: "texts for terminals", run: func(r *rogue, v *victim) { texts(r, v) }},
	{name: "answers to bind that nobody asked for", run: func(r *rogue, v *victim) {
		var all [][]byte
		for i := range 2000 {
			a := control.BindAnswer{RPC: uint8(i), Ring: i - 5, Reason: control.Reason(i % 9), Field: -i, Theirs: "\x1b[2J", Prior: uint64(i)}
			b, err := a.Append(nil)
			uplinktest.Must(r.t, err)
			all = append(all, b)
		}
		r.datagrams(all...)
	}},
	{name: "fragments of all kinds", run: func(r *rogue, v *victim) {
		rng := rand.New(rand.NewPCG(1, 2))
		var all [][]byte
		for i := range 4000 {
			b := binary.LittleEndian.AppendUint16([]byte{byte(control.DownFragment) | uint8(rng.IntN(3))}, uint16(i*rng.IntN(9)))
			b = append(b, byte(rng.IntN(fragment.MaxCount+2)), byte(rng.IntN(fragment.MaxCount+2)))
			all = append(all, append(b, make([]byte, replication.MaxPart-rng.IntN(10)/9)...))
		}
		r.datagrams(all...)
	}},
	{name: "acks of what was never sent, and floods of acks", run: func(r *rogue, v *victim) {
		rng := rand.New(rand.NewPCG(3, 4))
		for i := range 400 {
			v.call(r.t)
			a := rpcdelta.Ack{Epoch: uint8(i % 8), Seq: uint16(rng.Uint32()), Len: 63, Window: rng.Uint64() >> 1, ResetReason: []error{nil, rpcdelta.ErrBaselineMissing, rpcdelta.ErrDesync}[i%3], Whole: i%2 == 0}
			if i%2 == 0 {
				a.Seq = uint16(v.next) - uint16(rng.IntN(70))
			}
			r.datagrams(ackFlood(a), ackFlood(rpcdelta.Ack{None: true, ResetReason: rpcdelta.ErrDesync}))
		}
		if st := v.move.Stats(); st.Redundancy > rpcdelta.MaxRedundancy || st.Bytes > st.Frames()*600 {
			r.t.Errorf("%d bytes in %d frames, redundancy %d", st.Bytes, st.Frames(), st.Redundancy)
		}
	}},
	{name: "jitter buffers that stand at their ends", run: func(r *rogue, v *victim) {
		for i := range 600 {
			s := control.Buffered{RPC: uint8(i % 2), Slack: time.Duration(i%3-1) * time.Hour, Target: time.Duration(i%2) * time.Hour, Missing: uint16(i * 7919), Late: uint16(i)}
			r.datagrams(s.Append(control.AppendSlack(nil, 1)))
			p := v.move.Stats().Pace
			if !(math.Abs(p.Rate-1) <= jitter.MaxPace+1e-9) {
				r.t.Fatalf("the clock is to run at %v", p.Rate)
			}
		}
	}},
	{name: "datagrams of unknown types", run: func(r *rogue, v *victim) {
		var all [][]byte
		for i := range 256 {
			if kind, _, err := control.Split([]byte{byte(i)}); err == nil && kind == control.Leaving {
				continue
			}
			all = append(all, []byte{byte(i)}, append([]byte{byte(i)}, bytes.Repeat([]byte{0xff}, 900)...))
		}
		r.datagrams(all...)
		if n := v.conn.Stats().Malformed; n < 400 {
			r.t.Errorf("%d messages are malformed", n)
		}
	}},
	{name: "snapshots and states of random bytes", run: func(r *rogue, v *victim) {
		rng := rand.New(rand.NewPCG(5, 6))
		var all [][]byte
		for range 20_000 {
			b := make([]byte, 2+rng.IntN(60))
			for i := range b {
				b[i] = byte(rng.Uint32())
			}
			b[0] = byte(control.Down) | byte(1+rng.IntN(2))
			if rng.IntN(2) == 0 {
				b[1], b[2%len(b)] = 0, 0 // no baseline, or one that is near
			}
			all = append(all, b)
		}
		r.datagrams(all...)
	}},
	{name: "ticks that jump", run: func(r *rogue, v *victim) { jumps(r, v) }},
	{name: "inputs of ticks before the first", run: func(r *rogue, v *victim) {
		format, config := puckStates(r.t)
		sender, err := statesync.NewSender(format.Schema, config)
		uplinktest.Must(r.t, err)
		for tick := int64(-3); tick < 0; tick++ {
			uplinktest.Must(r.t, sender.AddInputs(tick, statesync.Input{Player: 1}))
		}
		m, _, err := sender.Append([]byte{byte(control.Down) | v.puck.Number}, 1, format.Schema.NewSet())
		uplinktest.Must(r.t, err)
		r.datagrams(m)
		if st := v.conn.Stats().Replication[1]; st.Malformed != 1 || st.Messages != 0 {
			r.t.Errorf("%+v", st)
		}
	}},
	{name: "objects of few bytes", run: func(r *rogue, v *victim) { crowds(r, v) }},
	{name: "state of ever more objects, inputs and ticks", run: func(r *rogue, v *victim) { hordes(r, v) }},
	{name: "forged datagrams", run: func(r *rogue, v *victim) {
		rng := rand.New(rand.NewPCG(7, 8))
		before := v.conn.Stats().Transport
		socket := r.network.Socket(r.listener.Addr())
		for i := range 20_000 {
			b := make([]byte, 1+rng.IntN(80))
			for i := range b {
				b[i] = byte(rng.Uint32())
			}
			if i%2 == 0 {
				b[0] = 0x80 | byte(i/2%6) // a handshake's
			}
			_, err := socket.WriteTo(b, r.address())
			uplinktest.Must(r.t, err)
			if i%200 == 0 {
				settle(ms)
			}
		}
		settle(100 * ms)
		after := v.conn.Stats().Transport
		if got, sent := after.Dropped.Total()-before.Dropped.Total(), after.DatagramsSent-before.DatagramsSent; got < 19_900 || sent > 20 {
			r.t.Errorf("%d were dropped, %d sent", got, sent)
		}
	}},
}

// call makes the next call.
func (v *victim) call(t *testing.T) {
	t.Helper()
	m := uplinktest.MoveAt(1, v.next)
	uplinktest.Must(t, v.move.Send(&m))
	v.next++
}

// show looks at what the client shows of the snapshots: each number is one.
func (v *victim) show(t *testing.T) {
	t.Helper()
	var latest client.Snapshot[crate]
	var sample interpolate.Sample[crate]
	v.snapshots.Latest(&latest)
	v.snapshots.Sample(time.Now(), &sample)
	if latest.Time < 0 || sample.Time > 1<<62 {
		t.Errorf("shows the times %v and %v", latest.Time, sample.Time)
	}
	for _, c := range append(latest.Objects, sample.Objects...) {
		p, u, q := &c.Position, &c.Velocity, &c.Orientation
		for _, x := range []float64{p.X, p.Y, p.Z, u.X, u.Y, u.Z, q.X, q.Y, q.Z, q.W} {
			if math.IsNaN(x) || math.IsInf(x, 0) {
				t.Fatalf("shows %+v", c)
			}
		}
	}
}

// newVictim connects a client to a rogue server, which has not done anything yet.
func newVictim(r *rogue, cfg client.Config) *victim {
	t := r.t
	v := &victim{conn: r.dial(cfg)}
	v.move = uplinktest.Bind(t, v.conn, "Move")
	crates, err := snapshot.Compile[crate]("crates")
	uplinktest.Must(t, err)
	format, _ := puckStates(t)
	v.crate = replication.Offer{Number: 1, Name: "crates", Codec: replication.SnapshotCodec, Fields: replication.Fields(crates.Source()), RateHz: 60, TickHz: 60}
	v.puck = replication.Offer{Number: 2, Name: "pucks", Codec: replication.StateCodec, Fields: format.Fields, RateHz: 60, TickHz: 60}
	r.messages(r.offer(v.crate), r.offer(v.puck))
	v.snapshots, err = client.SubscribeSnapshots(t.Context(), v.conn, "crates", client.SnapshotConfig[crate]{
		Interpolate: &interpolate.Config{Adaptive: true, Method: interpolate.Hermite, Extrapolate: 200 * ms},
	})
	uplinktest.Must(t, err)
	v.states, err = client.SubscribeState(t.Context(), v.conn, "pucks", client.StateConfig[puck]{})
	uplinktest.Must(t, err)
	if v.snapshots.Err() != nil || v.states.Err() != nil {
		t.Fatal(v.snapshots.Err(), v.states.Err())
	}
	return v
}

// TestHostileServer: whatever a server does to a client, what the client holds, sends and logs
// is bounded, what it shows
// of the server's texts is printable, and the session goes on, or ends and is made again.
func TestHostileServer(t *testing.T) {
	for _, a := range assaults {
		t.Run(a.name, func(t *testing.T) { synctest.Test(t, a.test) })
	}
}

func (a *assault) test(t *testing.T) {
	r := newRogue(t, nil)
	v := newVictim(r, client.Config{})
	id, start, heap := v.conn.ID(), time.Now(), heapSize()
	before := v.conn.Stats().Transport
	a.run(r, v)
	heap = heapSize() - heap
	after := v.conn.Stats().Transport
	sent, received := after.BytesSent-before.BytesSent, after.BytesReceived-before.BytesReceived
	t.Logf("%v: received %d datagrams, %d bytes, sent %d, %d bytes; heap grew by %d KB; %d lines logged; held %v",
		time.Since(start), after.DatagramsReceived-before.DatagramsReceived, received, after.DatagramsSent-before.DatagramsSent, sent, heap>>10, len(r.log.all()), client.Held(v.conn, v.snapshots, v.states))
	// A client sends a heartbeat a second, and searches for the path's largest datagram, by itself.
	if own := 12_000 + 100*uint64(time.Since(start)/time.Second); sent > received+own+v.move.Stats().Bytes*2 {
		t.Errorf("sent %d bytes, received %d", sent, received)
	}
	if heap > mostHeap {
		t.Errorf("the heap grew by %d bytes", heap)
	}
	for name, n := range client.Held(v.conn, v.snapshots, v.states) {
		if n > mostHeld[name] {
			t.Errorf("%d %s are held, want at most %d", n, name, mostHeld[name])
		}
	}
	v.show(t)
	lines := r.log.all()
	for _, line := range lines {
		if !showable(line) || len(line) > mostText {
			t.Errorf("logged %d bytes: %.300q", len(line), line)
		}
	}
	if len(lines) > mostLines {
		t.Errorf("%d lines are logged, the last %s", len(lines), lines[len(lines)-1])
	}
	if ended := v.conn.ID() != id; ended != a.ends {
		t.Errorf("the session has ended: %v", ended)
	}
	settle(5 * time.Second)
	_, _, frames, _, _ := r.counts()
	v.call(t)
	settle(time.Second)
	if _, _, now, _, _ := r.counts(); now != frames+1 {
		t.Errorf("%d frames came after it", now-frames)
	}
}

func heapSize() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

const nasty = "\x1b]0;owned\x07\r\n\x9b2J\u202e{\"level\":\"ERROR\"}\x00\xff"

// texts has the client meet the server's texts wherever errors show them.
func texts(r *rogue, v *victim) {
	long := strings.Repeat(nasty, 16<<10/len(nasty)-20)
	check := func(what string, err error) {
		if err == nil || !showable(err.Error()) || len(err.Error()) > mostText {
			r.t.Errorf("%s: an error of %d bytes: %.300q", what, len(fmt.Sprint(err)), err)
		}
	}
	r.mu.Lock()
	r.mute = true
	r.mu.Unlock()
	for i, a := range []control.BindAnswer{
		{Reason: control.ReasonUnknown, Known: []string{nasty, nasty}},
		{Reason: control.ReasonCodec, Known: []string{nasty}},
		{Reason: control.ReasonSchema, Theirs: nasty},
		{Reason: control.ReasonSchema, Theirs: nasty, Field: 1000},
		{Reason: 77},
	} {
		a.RPC = uint8(1)
		done := make(chan error, 1)
		go func() {
			_, err := client.Bind[crate](r.t.Context(), v.conn, "Other", client.BindConfig{})
			done <- err
		}()
		settle(time.Second)
		b, err := a.Append(nil)
		uplinktest.Must(r.t, err)
		r.datagrams(repeated(9, b)...) // one for each request
		check(fmt.Sprint("answer ", i), <-done)
	}
	o := v.crate
	o.Number, o.Name = 9, "odd"+nasty
	r.messages(r.offer(o))
	ctx, cancel := context.WithTimeout(r.t.Context(), time.Second)
	defer cancel()
	_, err := client.SubscribeSnapshots(ctx, v.conn, "none", client.SnapshotConfig[crate]{})
	check("other worlds", err)
	for i, change := range []func(*replication.Offer){
		func(o *replication.Offer) { o.Codec = long },
		func(o *replication.Offer) { o.Fields = []string{long} },
	} {
		o := v.crate
		o.Number, o.Name = 10, fmt.Sprint("bad ", i)
		change(&o)
		r.messages(r.offer(o))
		_, err := client.SubscribeSnapshots(r.t.Context(), v.conn, o.Name, client.SnapshotConfig[crate]{})
		check(o.Name, err)
		o.Name = v.crate.Name // one that is taken: it is logged
		r.messages(r.offer(o))
	}
}

// crowds sends snapshots of about as many objects as there can be, each of few bytes, of a world
// of 1,000 snapshots a second.
func crowds(r *rogue, v *victim) {
	typ, err := snapshot.Compile[crate]("crates")
	uplinktest.Must(r.t, err)
	world := snapshot.NewWorld(typ.Schema(), nil)
	enc := snapshot.NewEncoder(typ.Schema(), world)
	o := v.crate
	o.Number, o.Name, o.RateHz, o.TickHz = 5, "crowd", replication.MaxRate, replication.MaxRate
	r.messages(r.offer(o))
	_, err = client.SubscribeSnapshots(r.t.Context(), v.conn, o.Name, client.SnapshotConfig[crate]{Interpolate: &interpolate.Config{Adaptive: true}})
	uplinktest.Must(r.t, err)
	var ticks replication.Ticks
	var splitter fragment.Splitter
	all := typ.Schema().NewSet()
	const objects = 4000 // which fit a message even with nothing to tell them from
	for i := range objects {
		uplinktest.Must(r.t, typ.Add(all, snapshot.Object{ID: uint16(i)}, &crate{Orientation: schema.Quat{W: 1}}))
	}
	size := 0
	const snapshots = 200
	for n := range uint16(snapshots) {
		world.Begin().CopyFrom(all)
		ticks.Set(n, uint64(n)+1)
		payload, info, err := enc.Append(nil, replication.MaxMessage)
		uplinktest.Must(r.t, err)
		m := append(ticks.Append(nil, n, info.Baseline), payload...)
		size += len(m)
		if len(m) < replication.MaxPart {
			r.datagrams(append([]byte{byte(control.Down) | o.Number}, m...))
		} else {
			f, err := splitter.Split(m, replication.MaxPart)
			uplinktest.Must(r.t, err)
			for b, more := f.Next([]byte{byte(control.DownFragment) | o.Number}); more; b, more = f.Next([]byte{byte(control.DownFragment) | o.Number}) {
				r.datagrams(b)
			}
		}
		uplinktest.Must(r.t, enc.Ack(snapshot.Ack{Newest: n, Window: 1<<min(n, 63) - 1}))
	}
	st := v.conn.Stats().Replication[2]
	r.t.Logf("%d snapshots of %d objects in %d bytes", st.Messages, objects, size)
	if st.Messages < snapshots*9/10 {
		r.t.Errorf("%+v", st)
	}
}

// jumps sends snapshots of three objects, whose ticks are all over the range, for worlds of any ticks a second.
func jumps(r *rogue, v *victim) {
	typ, err := snapshot.Compile[crate]("crates")
	uplinktest.Must(r.t, err)
	rng := rand.New(rand.NewPCG(9, 10))
	for i, hz := range []float64{1000, 60, 1, 1e-6, 1e-300} {
		world := snapshot.NewWorld(typ.Schema(), nil)
		enc := snapshot.NewEncoder(typ.Schema(), world)
		o := v.crate
		o.Number, o.TickHz = uint8(i), hz
		r.messages(r.offer(o))
		taken := v.conn.Stats().Replication[0].Messages
		var ticks replication.Ticks
		for n := range uint16(600) {
			set := world.Begin()
			for id := range uint16(3) {
				q := schema.Quat{X: rng.NormFloat64(), Y: rng.NormFloat64(), W: 1}
				c := crate{Position: schema.Vec3{X: rng.Float64() * 999}, Velocity: schema.Vec3{Y: rng.Float64() * 999}, Orientation: q}
				uplinktest.Must(r.t, typ.Add(set, snapshot.Object{ID: id}, &c))
			}
			ticks.Set(n, rng.Uint64()%(replication.MaxTick+1)>>rng.IntN(53))
			payload, info, err := enc.Append(nil, replication.MaxPart)
			uplinktest.Must(r.t, err)
			r.datagrams(append(ticks.Append([]byte{byte(control.Down) | o.Number}, n, info.Baseline), payload...))
			uplinktest.Must(r.t, enc.Ack(snapshot.Ack{Newest: n, Window: 1<<min(n, 63) - 1}))
			v.show(r.t)
		}
		if taken = v.conn.Stats().Replication[0].Messages - taken; taken != 600 {
			r.t.Errorf("%v Hz: %d messages were taken", hz, taken)
		}
	}
}

// hordes sends states that bring new objects and the inputs of 250 players at each of 32 ticks,
// which nobody polls, and then
// some of ticks far away.
func hordes(r *rogue, v *victim) {
	_, cfg := puckStates(r.t)
	typ, err := snapshot.Compile[puck]("pucks")
	uplinktest.Must(r.t, err)
	tick := int64(0)
	for n := range uint64(400) {
		cfg.First, cfg.Budget = n, 4*replication.MaxPart
		sender, err := statesync.NewSender(typ.Schema(), cfg)
		uplinktest.Must(r.t, err)
		if n > 380 {
			tick += 1 << 48
		}
		for range statesync.MaxTicks {
			tick++
			var in []statesync.Input
			for p := range 250 {
				in = append(in, statesync.Input{Player: uint8(p)})
			}
			uplinktest.Must(r.t, sender.AddInputs(tick, in...))
		}
		set := typ.Schema().NewSet()
		const updates = 255
		for i := range updates {
			id := (int(n)*updates)%65_000 + i
			uplinktest.Must(r.t, typ.Add(set, snapshot.Object{ID: uint16(id)}, &puck{}))
			uplinktest.Must(r.t, sender.Prioritize(uint16(id), 1))
		}
		m, _, err := sender.Append([]byte{byte(control.Down) | v.puck.Number}, tick, set)
		uplinktest.Must(r.t, err)
		var splitter fragment.Splitter
		for range n % 2000 {
			_, _ = splitter.Split(make([]byte, 2*replication.MaxPart), replication.MaxPart) // its number is n
		}
		if len(m) < transport.MaxPayload {
			r.datagrams(m)
			continue
		}
		f, err := splitter.Split(m[1:], replication.MaxPart)
		uplinktest.Must(r.t, err)
		for b, more := f.Next([]byte{byte(control.DownFragment) | v.puck.Number}); more; b, more = f.Next([]byte{byte(control.DownFragment) | v.puck.Number}) {
			r.datagrams(b)
		}
	}
	if st := v.conn.Stats().Replication[1]; st.Messages < 128 || st.Unpolled == 0 {
		r.t.Errorf("%+v", st)
	}
}

// puckStates returns the format of pucks in state packets, and its settings at 60 ticks a second.
func puckStates(t testing.TB) (*replication.StateFormat, statesync.Config) {
	t.Helper()
	typ, err := snapshot.Compile[puck]("pucks")
	uplinktest.Must(t, err)
	format, err := replication.StateFormatOf(typ)
	uplinktest.Must(t, err)
	cfg, err := format.Config(60)
	uplinktest.Must(t, err)
	return format, cfg
}
