package client

import (
	"bytes"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/area"
	"github.com/uplink-rpc/uplink/internal/message"
	"github.com/uplink-rpc/uplink/internal/replication"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/snapshot"
	"github.com/uplink-rpc/uplink/internal/statesync"
	"github.com/uplink-rpc/uplink/internal/uplinktest/allocs"
	"github.com/uplink-rpc/uplink/internal/uplinktest/fakeconn"
	"github.com/uplink-rpc/uplink/internal/uplinktest/race"
	"github.com/uplink-rpc/uplink/internal/versions"
	"github.com/uplink-rpc/uplink/interpolate"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// worldObject is an object of the world of these tests.
type worldObject struct {
	Position schema.Vec3 `uplink:"resolution=0.01,min=-1000,max=1000,velocity=Velocity" interpolate:"position"`
	Velocity schema.Vec3 `uplink:"resolution=0.01,min=-100,max=100"`
	Resting  bool        `statesync:"rest"`
}

const worldObjects = 20

// areaCodec is SnapshotCodec, of a world with areas and with goals.
const areaCodec = "areas"

// goal is a further type of objects.
type goal struct {
	Team string `uplink:"max=4"`
}

// worldFixture is a server's world of worldObjects and its stream to a client, in one goroutine.
type worldFixture struct {
	t        testing.TB
	typ      *snapshot.Type[worldObject]
	goals    *snapshot.Type[goal]
	world    *replication.World
	streams  *replication.Replicas
	stream   *replication.Replica
	codec    string
	toClient fakeconn.Conn
	toServer fakeconn.Conn
	conn     *Conn
	worlds   *replication.Worlds
	offer    []byte
	now      time.Time
	tick     uint64
	count    int       // of worldObjects
	row      [16]int32 // scratch
}

// newWorldFixture offers the world to a client by a codec.
func newWorldFixture(t testing.TB, codec string) *worldFixture {
	t.Helper()
	typ, err := snapshot.Compile[worldObject]("worldObjects")
	must(t, err)
	w, err := replication.NewWorld(typ, "worldObjects", 60, 60, nil)
	must(t, err)
	goals, err := snapshot.Compile[goal]("goals")
	must(t, err)
	if codec == areaCodec {
		must(t, w.WithAreas(1<<10))
		_, err := w.AddType("goals", versions.Descriptions(goals.Source()), goals.Schema())
		must(t, err)
	}
	r := &worldFixture{t: t, codec: codec, typ: typ, goals: goals, world: w, now: time.Unix(0, 0), count: worldObjects}
	r.conn = newConn(Config{Logger: slog.New(slog.DiscardHandler), Transport: Transport{BindTimeout: time.Second}}, "nowhere")
	r.worlds = r.conn.subscriptions.Open(&r.toServer)
	r.worlds.Show(r.now)
	r.streams = replication.NewReplicas(&r.toClient)
	if codec == replication.StateCodec {
		r.stream, err = w.OfferState(r.streams, replication.StateConfig{Bandwidth: 1_000_000_000})
	} else {
		r.stream, err = w.Offer(r.streams)
	}
	must(t, err)
	r.stream.See([]area.ID{1, 2, 3})
	r.offer = bytes.Clone(r.toClient.Last)
	r.reliable(r.offer)
	return r
}

// reliable delivers a message of the reliable channel to the client.
func (r *worldFixture) reliable(b []byte) {
	r.t.Helper()
	kind, body, err := message.Split(b)
	must(r.t, err)
	must(r.t, r.worlds.HandleMessage(kind, body, r.now))
}

// subscribed delivers the client's reply to the server.
func (r *worldFixture) subscribed() {
	must(r.t, r.streams.HandleReply(r.toServer.Last[1:], nil, r.now))
	r.toServer.Last = nil
}

// send makes a tick and returns the datagram with it, in memory that the next call reuses.
func (r *worldFixture) send() []byte {
	r.tick++
	r.now = r.now.Add(time.Second / 60)
	must(r.t, r.world.Begin(r.tick))
	for i := range r.count {
		p := worldObject{Position: schema.Vec3{X: float64(i) + float64(r.tick%100)/100}, Velocity: schema.Vec3{X: 0.6}}
		r.put(0, i, func(row []int32) error { return r.typ.Quantize(row, &p) })
	}
	if r.codec == areaCodec {
		g := goal{Team: fmt.Sprint(r.tick / 64 % 2)}
		r.put(1, 7, func(row []int32) error { return r.goals.Quantize(row, &g) })
	}
	r.world.Commit()
	if r.codec == replication.StateCodec {
		must(r.t, r.stream.State(func(s *statesync.Sender) error {
			for i := range uint16(worldObjects) {
				must(r.t, s.Prioritize(i, 1))
			}
			return s.AddInputs(int64(r.tick), statesync.Input{Player: 1, Data: []byte{byte(r.tick)}}, statesync.Input{Player: 2})
		}))
	}
	must(r.t, r.stream.Send(r.now))
	return r.toClient.Last
}

// put puts an object. With areas it moves to another one every 64 ticks.
func (r *worldFixture) put(typ, i int, quantize func(row []int32) error) {
	row := r.row[:r.typ.Schema().Components()]
	if typ == 1 {
		row = r.row[:r.goals.Schema().Components()]
	}
	must(r.t, quantize(row))
	var in []area.ID
	if r.codec == areaCodec {
		in = append(in, area.ID(1+(uint64(i)+r.tick/64)%3))
	}
	must(r.t, r.world.Put(typ, snapshot.Object{ID: uint16(i)}, row, in...))
}

// deliver delivers a datagram to the client.
func (r *worldFixture) deliver(b []byte) {
	r.t.Helper()
	kind, body, err := message.Split(b)
	must(r.t, err)
	must(r.t, r.worlds.HandleDatagram(kind, body, r.now))
}

// ack delivers the client's last ack to the server.
func (r *worldFixture) ack() {
	if b := r.toServer.Last; len(b) > 0 && b[0] == byte(message.DownAck) {
		must(r.t, r.streams.HandleAck(b[1:], r.now))
	}
}

// recorded returns the datagrams of the next ticks, of which the server assumes that all arrive.
func (r *worldFixture) recorded(ticks int) (out [][]byte) {
	for range ticks {
		out = append(out, bytes.Clone(r.send()))
		ack := []byte{0}
		if seq := uint16(r.tick - 1); r.codec != replication.StateCodec {
			a := snapshot.Ack{Newest: seq, Window: 1<<63 - 1}
			ack = a.Append(ack)
		} else {
			a := statesync.Ack{Newest: seq, Window: 1<<63 - 1}
			ack = a.Append(ack)
		}
		must(r.t, r.streams.HandleAck(ack, r.now))
	}
	return out
}

// snapshots subscribes to the world's snapshots.
func (r *worldFixture) snapshots(cfg SnapshotConfig[worldObject]) *SnapshotView[worldObject] {
	r.t.Helper()
	cfg.AckHz = 1000
	if r.codec == areaCodec {
		goals, err := NewObjectType("goals", SnapshotConfig[goal]{})
		must(r.t, err)
		cfg.Types = []AnyObjectType{goals}
	}
	v, err := SubscribeSnapshots(r.t.Context(), r.conn, "worldObjects", cfg)
	must(r.t, err)
	r.subscribed()
	return v
}

// states subscribes to the world's state.
func (r *worldFixture) states(cfg StateConfig[worldObject]) *StateView[worldObject] {
	r.t.Helper()
	cfg.AckHz = 1000
	v, err := SubscribeState(r.t.Context(), r.conn, "worldObjects", cfg)
	must(r.t, err)
	r.subscribed()
	return v
}

// TestReceiveAllocs checks that receiving, acking, interpolating, polling and handling allocate
// nothing.
func TestReceiveAllocs(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	received := 0
	update := func(u *StateUpdate[worldObject]) {
		received++
		for _, in := range u.Inputs {
			if in.Missing || len(in.Inputs) != 2 || in.Inputs[0].Data[0] != byte(in.Tick) {
				t.Errorf("inputs of tick %d are %+v", in.Tick, in)
			}
		}
	}
	for name, subscribe := range map[string]func() (r *worldFixture, use func()){
		"snapshots": func() (*worldFixture, func()) {
			r := newWorldFixture(t, replication.SnapshotCodec)
			v := r.snapshots(SnapshotConfig[worldObject]{Handle: func(*Snapshot[worldObject]) { received++ }, Interpolate: &interpolate.Config{}})
			var latest Snapshot[worldObject]
			var shown interpolate.Sample[worldObject]
			return r, func() {
				if !v.Latest(&latest) || latest.Tick != uint64(received) || !v.Sample(time.Now(), &shown) {
					t.Fatalf("the latest is tick %d of %d", latest.Tick, received)
				}
			}
		},
		"snapshots of areas": func() (*worldFixture, func()) {
			r := newWorldFixture(t, areaCodec)
			v := r.snapshots(SnapshotConfig[worldObject]{Handle: func(*Snapshot[worldObject]) { received++ }, Interpolate: &interpolate.Config{}})
			var latest Snapshot[worldObject]
			return r, func() {
				if !v.Latest(&latest) || latest.Tick != uint64(received) || len(latest.Objects) != worldObjects {
					t.Fatalf("the latest is tick %d of %d, with %d objects", latest.Tick, received, len(latest.Objects))
				}
			}
		},
		"handled state": func() (*worldFixture, func()) {
			r := newWorldFixture(t, replication.StateCodec)
			r.states(StateConfig[worldObject]{Handle: update})
			return r, func() {}
		},
		"polled state": func() (*worldFixture, func()) {
			r := newWorldFixture(t, replication.StateCodec)
			v := r.states(StateConfig[worldObject]{})
			return r, func() { v.Poll(update) }
		},
	} {
		received = 0
		r, use := subscribe()
		for range 200 {
			r.deliver(r.send())
			use()
			r.ack()
		}
		messages := r.recorded(50)
		one := func() {
			r.now = r.now.Add(time.Second / 60)
			r.deliver(messages[0])
			messages = messages[1:]
			use()
		}
		one()
		if n := allocs.PerRun(40, one); n != 0 {
			t.Errorf("%s: %v allocations per message", name, n)
		}
		if st := r.conn.Stats().Replication[0]; st.Messages != uint64(received) || received < 240 || st.Acks == 0 {
			t.Errorf("%s: %d received, stats %+v", name, received, st)
		}
	}
}

// TestLatest checks that the newest snapshot is the latest, whatever arrives between it and the
// first call: late snapshots, malformed messages, or nothing.
func TestLatest(t *testing.T) {
	malformed := func(b []byte) []byte { return b[:2] }
	for name, between := range map[string]func(late []byte) [][]byte{
		"nothing":        func([]byte) [][]byte { return nil },
		"late":           func(late []byte) [][]byte { return [][]byte{late} },
		"late twice":     func(late []byte) [][]byte { return [][]byte{late, late} },
		"malformed":      func(late []byte) [][]byte { return [][]byte{malformed(late), malformed(late)} },
		"malformed late": func(late []byte) [][]byte { return [][]byte{malformed(late), late} },
	} {
		r := newWorldFixture(t, replication.SnapshotCodec)
		v := r.snapshots(SnapshotConfig[worldObject]{})
		var latest Snapshot[worldObject]
		if v.Latest(&latest) {
			t.Errorf("%s: a snapshot before the first", name)
		}
		if name != "nothing" { // as without the call above
			v.objects.wanted, v.objects.latest = false, sync.Once{}
		}
		late := bytes.Clone(r.send())
		r.deliver(r.send())
		for _, b := range between(late) {
			r.deliver(b)
		}
		for range 2 {
			if !v.Latest(&latest) || latest.Tick != 2 || latest.Late || len(latest.Objects) != worldObjects || latest.Objects[3].Position.X != 3.02 {
				t.Errorf("%s: the latest is tick %d with %+v", name, latest.Tick, latest.Objects)
			}
			r.deliver(late) // and afterwards
		}
		// A world that is offered again is shown as it was until its first snapshot.
		if r.reliable(r.offer); !v.Latest(&latest) || latest.Tick != 2 || len(latest.Objects) != worldObjects || len(latest.Processed) > 0 {
			t.Errorf("%s: tick %d of the world before with %d objects and the calls %v", name, latest.Tick, len(latest.Objects), latest.Processed)
		}
	}
}

// TestUnpolled checks that the number of updates that wait for Poll is limited, and that those
// dropped are not acked.
func TestUnpolled(t *testing.T) {
	r := newWorldFixture(t, replication.StateCodec)
	v := r.states(StateConfig[worldObject]{})
	for range maxPolled + 9 {
		r.deliver(r.send())
		r.ack()
	}
	if st := v.Stats(); st.Unpolled != 9 || st.Messages != maxPolled || len(v.all.queue) != maxPolled {
		t.Errorf("%d updates wait, stats %+v", len(v.all.queue), st)
	}
	if n := v.Poll(func(*StateUpdate[worldObject]) {}); n != maxPolled {
		t.Errorf("%d updates were polled, want %d", n, maxPolled)
	}
	r.deliver(r.send())
	objects := 0
	if n := v.Poll(func(u *StateUpdate[worldObject]) { objects = len(u.Objects) }); n != 1 || objects != worldObjects {
		t.Errorf("%d updates were polled, the last with %d objects", n, objects)
	}
	if st := r.stream.Stats(); st.Acked != maxPolled || st.InvalidAcks != 0 {
		t.Errorf("%+v", st)
	}
}

// TestUnpolledSwitch checks that the updates of two servers that wait for Poll after a switch limit
// those that follow.
func TestUnpolledSwitch(t *testing.T) {
	r := newWorldFixture(t, replication.StateCodec)
	v := r.states(StateConfig[worldObject]{})
	first, second := r.worlds, r.conn.subscriptions.Open(&r.toServer)
	r.worlds = second
	r.reliable(r.offer)
	for range maxPolled {
		b := r.send()
		for _, r.worlds = range []*replication.Worlds{first, second} {
			r.deliver(b)
		}
	}
	second.Show(r.now)
	for range 9 {
		r.deliver(r.send())
	}
	if st := v.Stats(); st.Unpolled != 9 || len(v.all.queue) != 2*maxPolled {
		t.Errorf("%d updates wait, stats %+v", len(v.all.queue), st)
	}
}

// TestOffersRefused checks the reason for which an offer is refused that does not match the
// client's type.
func TestOffersRefused(t *testing.T) {
	for want, change := range map[string]func(*replication.Offer){
		`codec "snapshot"`:        func(o *replication.Offer) { o.Codec = replication.SnapshotCodec },
		`codec "state2"`:          func(o *replication.Offer) { o.Codec = "state2" },
		"at the server {Resting ": func(o *replication.Offer) { o.Fields[2] = "Resting uint width=1" },
		"unknown option odd":      func(o *replication.Offer) { o.Fields[2] = "Resting bool odd=1" },
		"no such field":           func(o *replication.Offer) { o.Fields, o.PerTick = []string{"Height scalar resolution=1"}, nil },
		"initial state":           func(o *replication.Offer) { o.Initial = 10 },
	} {
		r := newWorldFixture(t, replication.StateCodec)
		o, err := replication.ParseOffer(r.toClient.Last[1:])
		must(t, err)
		change(&o)
		b, err := o.Append(nil)
		must(t, err)
		r.reliable(b)
		if _, err = SubscribeState(t.Context(), r.conn, "worldObjects", StateConfig[worldObject]{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %s: %v", want, err)
		}
		got := r.toServer.Last
		if !bytes.HasPrefix(got, replication.AppendReply(nil, o.Number, replication.Refused)) {
			t.Errorf("%s: answered %x", want, got)
		}
		if a, err := message.ParseBindAnswer(got[3:]); err != nil || a.Reason == message.ReasonNone || !strings.Contains(a.Theirs, want) {
			t.Errorf("%s: explained %+v: %v", want, a, err)
		}
	}
}

// TestPanicInPoll checks that a panic of the function that Poll calls, or runtime.Goexit, ends
// Poll, and that the next Poll continues with the next update.
func TestPanicInPoll(t *testing.T) {
	r := newWorldFixture(t, replication.StateCodec)
	v := r.states(StateConfig[worldObject]{})
	var got []uint64
	for _, fail := range []func(){func() { panic("a bug in the game") }, runtime.Goexit, func() {}} {
		for range 10 {
			r.deliver(r.send())
			r.ack()
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			defer func() { _ = recover() }()
			v.Poll(func(u *StateUpdate[worldObject]) {
				if got = append(got, u.Tick); len(got)%10 == 4 {
					fail()
				}
			})
		}()
		<-done
	}
	if len(got) != 30 || !slices.IsSorted(got) || got[29] != 30 {
		t.Errorf("got updates of ticks %v", got)
	}
}
