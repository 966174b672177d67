package client

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/internal/message"
	"github.com/uplink-rpc/uplink/internal/replication"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/rpcdelta/prior"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/snapshot"
	"github.com/uplink-rpc/uplink/internal/uplinktest/corpus"
	"github.com/uplink-rpc/uplink/internal/uplinktest/entries"
	"github.com/uplink-rpc/uplink/internal/versions"
	"github.com/uplink-rpc/uplink/interpolate"
)

// FuzzSnapshots handles arbitrary messages of a server in a view of snapshots with interpolation.
func FuzzSnapshots(f *testing.F) {
	x := corpus.Target{Parser: "message", Seeds: worldMessages(f, replication.SnapshotCodec), Inputs: 2_000, Check: checkSnapshots(replication.SnapshotCodec)}
	x.Run(f)
}

// FuzzAreas does so in a view of a world with areas.
func FuzzAreas(f *testing.F) {
	x := corpus.Target{Parser: "message", Seeds: worldMessages(f, areaCodec), Inputs: 2_000, Check: checkSnapshots(areaCodec)}
	x.Run(f)
}

func checkSnapshots(codec string) func(testing.TB, []byte) {
	return func(t testing.TB, in []byte) {
		r := newWorldFixture(t, codec)
		handled := 0
		v := r.snapshots(SnapshotConfig[worldObject]{Handle: func(s *Snapshot[worldObject]) {
			if handled++; len(s.IDs) != len(s.Objects) || !slices.IsSorted(s.IDs) {
				t.Fatalf("%d objects with ids %v", len(s.Objects), s.IDs)
			}
		}, Interpolate: &interpolate.Config{}})
		var latest Snapshot[worldObject]
		var shown interpolate.Sample[worldObject]
		for range r.handle(in) {
			v.Latest(&latest)
			v.Sample(r.now, &shown)
		}
		if st := v.Stats(); st.Messages != uint64(handled) {
			t.Fatalf("%d snapshots handled, stats %+v", handled, st)
		}
		before := handled
		r.restart()
		if !v.Latest(&latest) || handled != before+1 || latest.Tick != 1 || len(latest.Objects) != worldObjects {
			t.Fatalf("tick %d with %d objects in the new session, stats %+v", latest.Tick, len(latest.Objects), v.Stats())
		}
	}
}

type fuzzCall struct {
	At   schema.Vec3 `uplink:"resolution=0.125"`
	Name []byte      `uplink:"max=8"`
}

// FuzzCalls handles arbitrary requests to bind RPCs of the client, and payloads of calls.
func FuzzCalls(f *testing.F) {
	var seeds [][]byte
	for _, name := range []string{"Blast", "Boom"} {
		for _, fields := range [][]string{{"At vec3 resolution=0.125", "Name bytes max=8"}, {"Name bytes max=4", "Kind uint width=8"}, {"At vec2 resolution=1"}} {
			s, err := versions.Parse(name, fields)
			must(f, err)
			r := message.BindRequest{Name: name, Fingerprint: s.Fingerprint(), RateHz: 60, Ring: 64, Codec: "adaptive", Prior: prior.Generic().Hash()}
			for i, d := range fields {
				r.Described = append(r.Described, message.Described{Field: i, Description: d})
			}
			request, err := r.Append(nil)
			must(f, err)
			enc, err := rpcdelta.NewEncoder(s, rpcdelta.EncoderConfig{})
			must(f, err)
			payload, _, err := enc.AppendFrame(nil, s.NewFrame())
			must(f, err)
			seeds = append(seeds, append(entries.Of(request, true), entries.Of(payload, false)...))
		}
	}
	x := corpus.Target{Parser: "message", Seeds: seeds, Inputs: 3_000, Check: func(t testing.TB, in []byte) {
		handlers, handled := new(Handlers), uint64(0)
		must(t, Handle(handlers, "Blast", func(c Call[fuzzCall]) {
			if handled++; len(c.Value.Name) > 8 {
				t.Fatalf("%d bytes", len(c.Value.Name))
			}
		}))
		s := newTestLink(newConn(Config{Handlers: handlers, Logger: slog.New(slog.DiscardHandler)}, ""))
		number := uint64(0)
		for b, reliable := range entries.All(in) {
			number++
			kind, body, err := message.Split(b)
			switch {
			case err != nil:
			case kind == message.Bind && len(s.calls) < message.MaxCalls:
				var a message.BindAnswer
				r, err := message.ParseBindRequest(body)
				if err != nil {
					continue
				}
				if c, err := s.newIncoming(&r, &a); err == nil {
					s.calls = append(s.calls, c)
				}
			case kind == message.Frame && reliable:
				_ = s.reliableCall(b)
			case kind == message.Frame:
				_ = s.call(b, number)
			}
		}
		if s.stats.Calls != handled {
			t.Fatalf("%d calls, %d are counted", handled, s.stats.Calls)
		}
	}}
	x.Run(f)
}

// FuzzStates handles arbitrary messages of a server in a view of state.
func FuzzStates(f *testing.F) {
	x := corpus.Target{Parser: "message", Seeds: worldMessages(f, replication.StateCodec), Inputs: 3_000, Check: func(t testing.TB, in []byte) {
		r := newWorldFixture(t, replication.StateCodec)
		v := r.states(StateConfig[worldObject]{})
		wait := 0
		for range r.handle(in) {
			wait = len(v.all.queue)
			if spare := len(v.all.spare); wait+spare > maxPolled {
				t.Fatalf("%d updates wait, %d are kept for reuse", wait, spare)
			}
		}
		polled := v.Poll(func(u *StateUpdate[worldObject]) {
			for i := range u.Objects {
				if i > 0 && u.Objects[i].ID <= u.Objects[i-1].ID {
					t.Fatalf("object %d after %d", u.Objects[i].ID, u.Objects[i-1].ID)
				}
			}
		})
		if st := v.Stats(); wait > 0 && polled != wait || uint64(polled) > st.Messages { // an offer discards those that wait
			t.Fatalf("%d updates polled of %d, stats %+v", polled, wait, st)
		}
		r.restart()
		complete := false
		if n := v.Poll(func(u *StateUpdate[worldObject]) { complete = u.First && len(u.Objects) == worldObjects }); n != 1 || !complete {
			t.Fatalf("%d updates in the new session, stats %+v", n, v.Stats())
		}
	}}
	x.Run(f)
}

// FuzzMessage passes unreliable messages of a hostile server to a connection that has sent frames,
// and sends another frame after each. The connection stays usable.
func FuzzMessage(f *testing.F) {
	ack := rpcdelta.Ack{Seq: 3, Window: 5, Len: 3, Whole: true}
	none := rpcdelta.Ack{None: true, ResetReason: rpcdelta.ErrDesync}
	messages := [][]byte{
		ack.Append([]byte{byte(message.Acks)}),
		{byte(message.Acks)},
		{byte(message.Leaving)},
		none.Append([]byte{byte(message.Acks)}), none.Append(ack.Append([]byte{byte(message.Acks)})),
	}
	for _, a := range []message.BindAnswer{
		{RPC: 1, Ring: 2, Prior: prior.Generic().Hash()},
		{RPC: 1, Ring: 2, Prior: 7},
		{RPC: 1, Ring: -1},
		{RPC: 1, Reason: message.ReasonSchema, Field: -7, Theirs: "Buttons bits"},
		{RPC: 200},
		{RPC: 1, Reason: message.ReasonUnknown, Known: []string{"a", "b"}},
		{RPC: 1, Reason: 99},
	} {
		b, err := a.Append(nil)
		noError(f, err)
		messages = append(messages, b)
	}
	var seeds [][]byte
	for i, m := range messages {
		seeds = append(seeds, append(entries.Of(m, false), entries.Of(messages[(i+1)%len(messages)], false)...))
	}
	x := corpus.Target{Parser: "message", Seeds: seeds, Inputs: 3_000, Check: func(t testing.TB, in []byte) {
		c := newTestConn(t)
		s := c.current
		bound, asking := c.bindings[0].at, c.bindings[1].at
		var buf []byte
		call := func() {
			_, _, err := bound.enc.AppendFrame(buf[:0], bound.frame)
			noError(t, err)
		}
		for range 10 {
			call()
		}
		n, size := uint64(0), 0
		now := time.Unix(1, 0)
		for b, reliable := range entries.All(in) {
			if reliable {
				continue
			}
			s.Datagram(s.own, b, now)
			n++
			size += len(b)
			now = now.Add(time.Millisecond)
			call()
		}
		if asking.enc != nil && asking.refused != nil {
			t.Error("bound and refused")
		}
		if asking.refused != nil && len(asking.refused.Error()) > 2000+size {
			t.Errorf("an error of %d bytes", len(asking.refused.Error()))
		}
		if bad := c.stats.Malformed; bad > n {
			t.Errorf("%d of %d messages are malformed", bad, n)
		}
	}}
	x.Run(f)
}

// worldMessages returns inputs with messages of a world by a codec, in and out of order, and with
// messages that end or replace the stream.
func worldMessages(f *testing.F, codec string) [][]byte {
	r := newWorldFixture(f, codec)
	if codec == replication.StateCodec {
		r.states(StateConfig[worldObject]{})
	} else {
		r.snapshots(SnapshotConfig[worldObject]{})
	}
	var messages [][]byte
	for range 3 {
		messages = append(messages, bytes.Clone(r.send()))
		r.deliver(messages[len(messages)-1])
		r.ack()
	}
	first, delta := entries.Of(messages[0], false), entries.Of(messages[2], false)
	return [][]byte{
		first,
		slices.Concat(delta, first, delta),
		slices.Concat(entries.Of(r.offer, true), first),
		entries.Of([]byte{byte(message.Stop), 0}, true),
		entries.Of([]byte{byte(message.DownFragment), 0, 0, 1, 1, 5}, false),
	}
}

// handle receives the server's first three ticks, of which the last two are deltas, and then the
// messages of a fuzz target's input, after each of which it yields.
func (r *worldFixture) handle(in []byte) func(yield func() bool) {
	return func(yield func() bool) {
		for range 3 {
			r.deliver(r.send())
			r.ack()
		}
		for b, reliable := range entries.All(in) {
			kind, body, err := message.Split(b)
			switch {
			case err != nil:
			case reliable && (kind == message.Offer || kind == message.Piece || kind == message.Stop):
				_ = r.worlds.HandleMessage(kind, body, r.now)
			case !reliable && (kind == message.Down || kind == message.DownFragment):
				_ = r.worlds.HandleDatagram(kind, body, r.now)
			}
			r.now = r.now.Add(time.Millisecond)
			r.worlds.Tick(r.now)
			if !yield() {
				return
			}
		}
	}
}

// restart begins a new session with another server, and delivers its first tick.
func (r *worldFixture) restart() {
	r.worlds.End()
	r.worlds = r.conn.subscriptions.Open(&r.toServer)
	r.worlds.Show(r.now)
	next := newWorldFixture(r.t, r.codec)
	next.now = r.now
	r.reliable(next.offer)
	must(r.t, next.streams.HandleReply(r.toServer.Last[1:], nil, r.now))
	r.deliver(next.send())
}

// note has fields that can share memory with the value restored into the same place before.
type note struct {
	Position schema.Vec3 `uplink:"resolution=0.01,min=-1000,max=1000" interpolate:"position"`
	Name     string      `uplink:"max=8"`
	Scores   []int8      `uplink:"max=8"`
	arbitraryCall
}

type arbitraryCall struct {
	Text []byte `uplink:"max=8"`
}

// TestSampleAliasing checks that newer snapshots do not change a sample of an older one, byte
// strings included.
func TestSampleAliasing(t *testing.T) {
	typ, err := snapshot.Compile[note]("notes")
	must(t, err)
	r, err := newObjects("notes", &SnapshotConfig[note]{Interpolate: &interpolate.Config{}})
	must(t, err)
	f := r.newFeed()
	f.show()
	must(t, f.begin(&replication.Offer{Name: "notes", Codec: replication.SnapshotCodec, RateHz: 20, TickHz: 20}))
	now := time.Now()
	receive := func(tick int) {
		set := typ.Schema().NewSet()
		label := fmt.Sprint("at ", tick)
		v := note{Name: label, Scores: []int8{int8(tick)}, arbitraryCall: arbitraryCall{Text: []byte(label)}}
		must(t, typ.Add(set, snapshot.Object{ID: 1}, &v))
		f.receive(uint64(tick), set, nil, nil, now.Add(time.Duration(tick)*50*time.Millisecond))
	}
	for tick := range 10 {
		receive(tick)
	}
	var shown interpolate.Sample[note]
	if !r.sample(now.Add(450*time.Millisecond), &shown) {
		t.Fatal("nothing is shown")
	}
	tick := int(shown.Time / (50 * time.Millisecond))
	for range 2 {
		want, got := fmt.Sprint("at ", tick), &shown.Objects[0]
		if tick >= 9 || got.Name != want || string(got.Text) != want || got.Scores[0] != int8(tick) {
			t.Errorf("%+v with %q is shown, want that of tick %d", got, got.Text, tick)
		}
		receive(10) // while the caller still uses the sample
	}
}
