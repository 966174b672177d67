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

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/internal/message"
	"github.com/uplink-rpc/uplink/internal/replication"
	"github.com/uplink-rpc/uplink/internal/replication/fragment"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/snapshot"
	"github.com/uplink-rpc/uplink/internal/statesync"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
)

// attack is an attack of a server, or of somebody who forges its datagrams, on a client that calls
// an RPC and subscribes to a world as snapshots and to another one as state.
type attack struct {
	name string
	run  func(*rogue, *victim)
	ends bool // the client ends the session, and reconnects
}

// maxHeld bounds the lists of a connection with two worlds that a server can make longer.
var maxHeld = map[string]int{
	"offers": replication.MaxReplicas, "worlds": 6, "streams": 2, "requests": 1,
	"initial bytes": replication.MaxInitial, "snapshot bytes": 32 << 20, "objects": snapshot.MaxObjects * 5 / 4,
	"updates": 128, "spare updates": 2*128 + 1,
}

const (
	maxHeap  = 48 << 20 // bytes by which an attack may increase the heap
	maxLines = 80       // of the log
	maxText  = 6 << 10  // bytes of a line of the log
)

var attacks = []attack{
	{name: "endless offers", ends: true, run: func(r *rogue, v *victim) {
		var all [][]byte
		for i := range 300 {
			o := v.crate
			o.Number, o.Name, o.Fields = uint8(i%replication.MaxReplicas), fmt.Sprint("world ", i), []string{"other"}
			if i%3 == 0 {
				o.Name = v.crate.Name // refused, and logged
			}
			all = append(all, r.offer(o))
		}
		r.messages(all...)
		if n := len(r.lines()); n == 0 || n > 64/3+3 {
			r.t.Errorf("%d lines logged", n)
		}
	}},
	{name: "one world by all numbers, withdrawn and offered again", run: func(r *rogue, v *victim) {
		for i := range 30 {
			o, p := v.crate, v.worldObject
			o.Number, p.Number = uint8(i%7), uint8(7+i%9)
			o.Initial, o.Hash = 100, 7
			stop := []byte{byte(message.Stop), uint8(i % 5)}
			r.messages(r.offer(o), append([]byte{byte(message.Piece), o.Number}, 1, 2, 3), r.offer(p), stop)
		}
	}},
	{name: "initial states that are never complete", run: func(r *rogue, v *victim) {
		for i := range 40 {
			o := v.crate
			o.Initial, o.Hash = replication.MaxInitial, uint64(i+1)
			r.messages(r.offer(o))
			r.messages(repeated(30, append([]byte{byte(message.Piece), o.Number}, make([]byte, 15<<10)...))...)
		}
	}},
	{name: "offers out of range", ends: true, run: func(r *rogue, v *victim) {
		for _, change := range []func(*replication.Offer){
			func(o *replication.Offer) { o.Number = replication.MaxReplicas },
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
			settle(3 * time.Second) // a malformed message ends the session; the client reconnects
			if n := v.conn.Stats().Malformed - before; n != 1 || v.conn.ID() == id {
				r.t.Errorf("%.100v was counted as malformed %d times", o, n)
			}
		}
	}},
	{name: "worlds whose interval exceeds a Duration", run: func(r *rogue, v *victim) {
		for _, hz := range []float64{1e-9, 1e-10, 1e-300, 5e-324} {
			o, p := v.crate, v.worldObject
			o.RateHz, p.RateHz, o.TickHz = hz, hz, hz
			before := v.conn.Stats().Replication
			r.messages(r.offer(o), r.offer(p))
			r.datagrams(repeated(500, append([]byte{byte(message.Down) | p.Number}, make([]byte, 20)...))...)
			for i, st := range v.conn.Stats().Replication {
				if n := st.Acks - before[i].Acks; n > 1 {
					r.t.Errorf("%v Hz: %d acks of world %s within a second", hz, n, st.Name)
				}
			}
		}
	}},
	{name: "requests for descriptions without end", run: func(r *rogue, v *victim) {
		r.silence()
		done := make(chan error, 1)
		go func() { done <- bind[crate](r.t, v.conn, "Other", client.BindConfig{}) }()
		before := r.counts().binds
		for i := range 2000 {
			_ = r.link().Send(encoded(r.t, &message.BindAnswer{RPC: 1, Reason: message.ReasonDescribe, Ask: make([]int, 1+i%9)}))
			settle(2 * ms)
		}
		if err := <-done; err == nil {
			r.t.Error("bound")
		}
		if n := r.counts().binds - before; n > 60 {
			r.t.Errorf("%d requests to bind", n)
		}
		r.datagrams(repeated(60, encoded(r.t, &message.BindAnswer{RPC: 1, Reason: 77}))...) // one for each request
	}},
	{name: "control characters in texts", run: texts},
	{name: "fragments of all kinds", run: func(r *rogue, v *victim) {
		rng := rand.New(rand.NewPCG(1, 2))
		var all [][]byte
		for i := range 4000 {
			b := binary.LittleEndian.AppendUint16([]byte{byte(message.DownFragment) | uint8(rng.IntN(3))}, uint16(i*rng.IntN(9)))
			b = append(b, byte(rng.IntN(fragment.MaxCount+2)), byte(rng.IntN(fragment.MaxCount+2)))
			all = append(all, append(b, make([]byte, replication.MaxFragment-rng.IntN(10)/9)...))
		}
		r.datagrams(all...)
	}},
	{name: "acks of frames that were never sent, and floods of acks", run: func(r *rogue, v *victim) {
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
	{name: "datagrams of unknown types", run: func(r *rogue, v *victim) {
		var all [][]byte
		for i := range 256 {
			if kind, _, err := message.Split([]byte{byte(i)}); err == nil && kind == message.Leaving {
				continue
			}
			all = append(all, []byte{byte(i)}, append([]byte{byte(i)}, bytes.Repeat([]byte{0xff}, 900)...))
		}
		r.datagrams(all...)
		if st := v.conn.Stats(); st.Malformed+st.CallsDropped < 400 {
			r.t.Errorf("%d messages are malformed, %d calls dropped", st.Malformed, st.CallsDropped)
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
			b[0] = byte(message.Down) | byte(1+rng.IntN(2))
			if rng.IntN(2) == 0 {
				b[1], b[2%len(b)] = 0, 0 // no baseline, or a recent one
			}
			all = append(all, b)
		}
		r.datagrams(all...)
	}},
	{name: "ticks that jump", run: jumps},
	{name: "inputs of negative ticks", run: func(r *rogue, v *victim) {
		world, err := statesync.NewShared(v.format.Schema, v.config)
		uplinktest.Must(r.t, err)
		sender, err := world.NewSender(v.config)
		uplinktest.Must(r.t, err)
		for tick := int64(-3); tick < 0; tick++ {
			uplinktest.Must(r.t, sender.AddInputs(tick, statesync.Input{Player: 1}))
		}
		uplinktest.Must(r.t, world.SetTick(1, v.format.Schema.NewSet()))
		m, _, err := sender.Append([]byte{byte(message.Down) | v.worldObject.Number})
		uplinktest.Must(r.t, err)
		r.datagrams(m)
		if st := v.conn.Stats().Replication[1]; st.Malformed != 1 || st.Messages != 0 {
			r.t.Errorf("%+v", st)
		}
	}},
	{name: "snapshots with many objects", run: largeSnapshots},
	{name: "state with ever more objects, inputs and ticks", run: largeStates},
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
				b[0] = 0x80 | byte(i/2%6) // of a handshake
			}
			_, err := socket.WriteTo(b, r.link().RemoteAddr())
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

// TestHostileServer checks that a client bounds its memory, its datagrams and its log under each
// attack, that it shows finite numbers and printable texts, and that it remains connected or
// reconnects.
func TestHostileServer(t *testing.T) {
	for _, a := range attacks {
		t.Run(a.name, func(t *testing.T) { synctest.Test(t, a.test) })
	}
}

func (a *attack) test(t *testing.T) {
	r := newRogue(t, nil)
	v := newVictim(r, client.Config{})
	id, start, heap := v.conn.ID(), time.Now(), heapSize()
	before := v.conn.Stats().Transport
	a.run(r, v)
	heap = heapSize() - heap
	after := v.conn.Stats().Transport
	sent, received := after.BytesSent-before.BytesSent, after.BytesReceived-before.BytesReceived
	t.Logf("%v: received %d datagrams, %d bytes, sent %d, %d bytes; heap grew by %d KB; %d lines logged; held %v",
		time.Since(start), after.DatagramsReceived-before.DatagramsReceived, received, after.DatagramsSent-before.DatagramsSent, sent, heap>>10, len(r.lines()), client.Held(v.conn, v.view, v.states))
	// A client sends heartbeats and path size probes by itself, in up to ten sessions here.
	if own := 24_000 + 100*uint64(time.Since(start)/time.Second); sent > received+own+v.move.Stats().Bytes*2 {
		t.Errorf("sent %d bytes, received %d", sent, received)
	}
	if heap > maxHeap {
		t.Errorf("the heap grew by %d bytes", heap)
	}
	for name, n := range client.Held(v.conn, v.view, v.states) {
		if n > maxHeld[name] {
			t.Errorf("%d %s held, want at most %d", n, name, maxHeld[name])
		}
	}
	v.show(t)
	lines := r.lines()
	for _, line := range lines {
		if !showable(strings.TrimSuffix(line, "\n")) || len(line) > maxText {
			t.Errorf("logged %d bytes: %.300q", len(line), line)
		}
	}
	if len(lines) > maxLines {
		t.Errorf("%d lines logged, the last %s", len(lines), lines[len(lines)-1])
	}
	if ended := v.conn.ID() != id; ended != a.ends {
		t.Errorf("the session has ended: %v", ended)
	}
	settle(5 * time.Second)
	frames := r.counts().frames
	v.call(t)
	settle(time.Second)
	if n := r.counts().frames - frames; n != 1 {
		t.Errorf("%d frames after the attack, want 1", n)
	}
}

func heapSize() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

const nasty = "\x1b]0;owned\x07\r\n\x9b2J\u202e{\"level\":\"ERROR\"}\x00\xff"

// texts sends texts wherever errors of the client contain them.
func texts(r *rogue, v *victim) {
	long := strings.Repeat(nasty, 16<<10/len(nasty)-20)
	check := func(what string, err error) {
		if err == nil || !showable(err.Error()) || len(err.Error()) > maxText {
			r.t.Errorf("%s: an error of %d bytes: %.300q", what, len(fmt.Sprint(err)), err)
		}
	}
	r.silence()
	for i, a := range []message.BindAnswer{
		{Reason: message.ReasonUnknown, Known: []string{nasty, nasty}},
		{Reason: message.ReasonCodec, Known: []string{nasty}},
		{Reason: message.ReasonSchema, Theirs: nasty},
		{Reason: message.ReasonSchema, Theirs: nasty, Field: 1000},
		{Reason: 77},
	} {
		a.RPC = uint8(1)
		done := make(chan error, 1)
		go func() { done <- bind[crate](r.t, v.conn, "Other", client.BindConfig{}) }()
		settle(time.Second)
		r.datagrams(repeated(9, encoded(r.t, &a))...) // one for each request
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
		o.Name = v.crate.Name // subscribed, so the error is logged
		r.messages(r.offer(o))
	}
}
