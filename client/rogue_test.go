package client_test

import (
	"bytes"
	"context"
	"log/slog"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/internal/endpoint"
	"github.com/uplink-rpc/uplink/internal/message"
	"github.com/uplink-rpc/uplink/internal/replication"
	"github.com/uplink-rpc/uplink/internal/replication/fragment"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/snapshot"
	"github.com/uplink-rpc/uplink/internal/statesync"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/internal/versions"
	"github.com/uplink-rpc/uplink/interpolate"
	"github.com/uplink-rpc/uplink/transport"
)

// rogue is a hostile server. Its handler runs in the listener's goroutine.
type rogue struct {
	t        *testing.T
	network  *uplinktest.Network
	listener *endpoint.Listener
	client   *client.Conn
	log      bytes.Buffer
	open     func(*endpoint.Conn) // called with each new session; may be nil

	mu   sync.Mutex
	mute bool           // requests to bind are not answered
	conn *endpoint.Conn // the newest
	got  counts
}

// counts counts the sessions of a rogue server, and the requests to bind and frames that it
// received.
type counts struct{ sessions, binds, frames int }

// newRogue starts a rogue server that calls open with each new session.
func newRogue(t *testing.T, open func(*endpoint.Conn)) *rogue {
	t.Helper()
	r := &rogue{t: t, network: newNetwork(t, 0, 1), open: open}
	var err error
	r.listener, err = endpoint.Listen(uplinktest.Addr, endpoint.Config{Network: r.network, HandshakesPerNetwork: 1000, Handshakes: 1000})
	uplinktest.Must(t, err)
	served := make(chan error, 1)
	go func() { served <- r.listener.Serve(context.Background(), r) }()
	t.Cleanup(func() {
		uplinktest.Must(t, r.listener.Close())
		uplinktest.Must(t, <-served)
	})
	return r
}

// dial connects a client that logs to r.log.
func (r *rogue) dial(cfg client.Config) *client.Conn {
	r.t.Helper()
	cfg.Logger = slog.New(slog.NewJSONHandler(&r.log, nil))
	r.client = uplinktest.Dial(r.t, r.network, cfg)
	settle(time.Second)
	return r.client
}

func (r *rogue) Opened(c *endpoint.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.conn = c
	r.got.sessions++
	if r.open != nil {
		r.open(c)
	}
}

func (r *rogue) Closed(*endpoint.Conn, error) {}

func (r *rogue) Datagram(c *endpoint.Conn, b []byte, _ time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if b = message.SkipDownAcks(b); len(b) == 0 {
		return
	}
	t, body, err := message.Split(b)
	switch {
	case err != nil:
		r.t.Errorf("the client sent %x: %v", b, err)
	case t == message.Bind:
		r.got.binds++
		if r.mute {
			return
		}
		q, err := message.ParseBindRequest(body)
		uplinktest.Must(r.t, err)
		// The client repeats its request if it is lost.
		_ = c.Send(encoded(r.t, &message.BindAnswer{RPC: q.RPC, Ring: q.Ring, Prior: q.Prior}))
	case t == message.Frame:
		r.got.frames++
	}
}

func (r *rogue) Message(*endpoint.Conn, []byte, time.Time) {}
func (r *rogue) Tick(time.Time)                            {}

// link returns the newest connection.
func (r *rogue) link() *endpoint.Conn {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.conn
}

// datagrams sends datagrams, 200 per millisecond.
func (r *rogue) datagrams(all ...[]byte) {
	for i, b := range all {
		_ = r.link().Send(b) // fails if the client has ended the session
		if i%200 == 199 {
			settle(ms)
		}
	}
	settle(100 * ms)
}

// messages sends reliable messages until the session ends.
func (r *rogue) messages(all ...[]byte) {
	for _, b := range all {
		err := r.link().SendReliable(b)
		for err == transport.ErrBacklog { //nolint:errorlint // it is not wrapped
			settle(20 * ms)
			err = r.link().SendReliable(b)
		}
		if err != nil {
			break
		}
	}
	settle(200 * ms)
}

// lines returns the lines that the client has logged.
func (r *rogue) lines() []string { return slices.Collect(strings.Lines(r.log.String())) }

// encoded returns a message.
func encoded(t testing.TB, m interface{ Append([]byte) ([]byte, error) }) []byte {
	t.Helper()
	b, err := m.Append(nil)
	uplinktest.Must(t, err)
	return b
}

// offer returns the message of an offer.
func (r *rogue) offer(o replication.Offer) []byte { return encoded(r.t, &o) }

// counts returns the counts so far.
func (r *rogue) counts() counts {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.got
}

// silence makes the server ignore requests to bind.
func (r *rogue) silence() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mute = true
}

// showable reports whether a text can be printed to a terminal.
func showable(s string) bool {
	return utf8.ValidString(s) && strings.IndexFunc(s, func(c rune) bool { return !unicode.IsPrint(c) }) < 0
}

// ackFlood returns a datagram full of copies of an ack.
func ackFlood(a rpcdelta.Ack) []byte {
	b := []byte{byte(message.Acks)}
	for len(b)+16 < transport.MaxPayload {
		b = a.Append(b)
	}
	return b
}

// repeated returns n copies of b.
func repeated(n int, b []byte) (all [][]byte) {
	for range n {
		all = append(all, bytes.Clone(b))
	}
	return all
}

type crate struct {
	Position    schema.Vec3 `uplink:"resolution=0.01,min=-1000,max=1000" interpolate:"position"`
	Velocity    schema.Vec3 `uplink:"resolution=0.01,min=-1000,max=1000" interpolate:"velocity"`
	Orientation schema.Quat `uplink:"bits=9" interpolate:"orientation"`
	Lit         bool
}

type worldObject struct {
	Position schema.Vec3 `uplink:"resolution=0.01,min=-1000,max=1000,velocity=Velocity"`
	Velocity schema.Vec3 `uplink:"resolution=0.01,min=-100,max=100"`
}

// victim is a client of a rogue server. It calls Move, and subscribes to a world of crates as
// snapshots and to one of worldObjects as state.
type victim struct {
	conn        *client.Conn
	move        *client.Stream[uplinktest.Move]
	next        uint64            // number of the next call
	crate       replication.Offer // the offer of crates, number 1
	worldObject replication.Offer // of worldObjects, number 2

	view         *client.SnapshotView[crate]
	states       *client.StateView[worldObject]
	crates       *snapshot.Type[crate]
	worldObjects *snapshot.Type[worldObject]
	format       *replication.StateFormat // of worldObjects
	config       statesync.Config         // of worldObjects at 60 ticks per second
	splitter     fragment.Splitter
}

// newVictim connects a client to a rogue server.
func newVictim(r *rogue, cfg client.Config) *victim {
	t := r.t
	v := &victim{conn: r.dial(cfg)}
	v.move = uplinktest.Bind(t, v.conn, "Move")
	var err error
	v.crates, err = snapshot.Compile[crate]("crates")
	uplinktest.Must(t, err)
	v.worldObjects, err = snapshot.Compile[worldObject]("worldObjects")
	uplinktest.Must(t, err)
	v.format, err = replication.StateFormatOf(v.worldObjects)
	uplinktest.Must(t, err)
	v.config, err = v.format.Config(60)
	uplinktest.Must(t, err)
	v.crate = replication.Offer{Number: 1, Name: "crates", Codec: replication.SnapshotCodec, Fields: versions.Descriptions(v.crates.Source()), RateHz: 60, TickHz: 60}
	v.worldObject = replication.Offer{Number: 2, Name: "worldObjects", Codec: replication.StateCodec, Fields: v.format.Fields, RateHz: 60, TickHz: 60}
	for _, of := range v.config.Velocities {
		v.worldObject.PerTick = append(v.worldObject.PerTick, of.PerTick)
	}
	r.messages(r.offer(v.crate), r.offer(v.worldObject))
	v.view, err = client.SubscribeSnapshots(t.Context(), v.conn, "crates", client.SnapshotConfig[crate]{
		Interpolate: &interpolate.Config{Adaptive: true, Method: interpolate.Hermite, Extrapolate: 200 * ms},
	})
	uplinktest.Must(t, err)
	v.states, err = client.SubscribeState(t.Context(), v.conn, "worldObjects", client.StateConfig[worldObject]{})
	uplinktest.Must(t, err)
	if v.view.Err() != nil || v.states.Err() != nil {
		t.Fatal(v.view.Err(), v.states.Err())
	}
	return v
}

// call makes the next call.
func (v *victim) call(t *testing.T) {
	t.Helper()
	m := uplinktest.MoveAt(1, v.next)
	uplinktest.Must(t, uplinktest.Sent(v.move.Send(&m)))
	v.next++
}

// show checks that all numbers that the client shows of the snapshots are finite.
func (v *victim) show(t *testing.T) {
	t.Helper()
	var latest client.Snapshot[crate]
	var sample interpolate.Sample[crate]
	v.view.Latest(&latest)
	v.view.Sample(time.Now(), &sample)
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

// sendDown sends a message of a replication stream, in fragments if necessary.
func (v *victim) sendDown(r *rogue, number uint8, m []byte) {
	if len(m) < replication.MaxFragment {
		r.datagrams(append([]byte{byte(message.Down) | number}, m...))
		return
	}
	f, err := v.splitter.Split(nil, m, replication.MaxFragment)
	uplinktest.Must(r.t, err)
	for {
		b, more := f.Next([]byte{byte(message.DownFragment) | number})
		if !more {
			return
		}
		r.datagrams(b)
	}
}

// sendSnapshots sends n snapshots of crates, each with its tick and objects, and acknowledges them.
func (v *victim) sendSnapshots(r *rogue, number uint8, n uint16, tick func(n uint16) uint64, fill func(*snapshot.Set)) {
	world := snapshot.NewHistory(v.crates.Schema(), nil)
	var enc snapshot.Encoder
	var receipts snapshot.Receipts
	var ticks replication.Ticks
	for i := range n {
		fill(world.Begin())
		ticks.Set(i, tick(i))
		b := receipts.Baseline(uint64(i))
		payload, _, err := enc.Append(nil, world, b, replication.MaxMessage)
		uplinktest.Must(r.t, err)
		receipts.Sent(uint64(i), b)
		v.sendDown(r, number, append(ticks.Append(nil, i, b.Distance), payload...))
		_, err = receipts.Ack(snapshot.Ack{Newest: i, Window: 1<<min(i, 63) - 1})
		uplinktest.Must(r.t, err)
		v.show(r.t)
	}
}

// largeSnapshots sends 200 snapshots of 4,000 objects, which take few bytes each, of a world of
// 1,000 snapshots per second.
func largeSnapshots(r *rogue, v *victim) {
	o := v.crate
	o.Number, o.Name, o.RateHz, o.TickHz = 5, "crowd", replication.MaxRate, replication.MaxRate
	r.messages(r.offer(o))
	_, err := client.SubscribeSnapshots(r.t.Context(), v.conn, o.Name, client.SnapshotConfig[crate]{Interpolate: &interpolate.Config{Adaptive: true}})
	uplinktest.Must(r.t, err)
	all := v.crates.Schema().NewSet()
	for i := range 4000 { // they fit a message even without a baseline
		uplinktest.Must(r.t, v.crates.Add(all, snapshot.Object{ID: uint16(i)}, &crate{Orientation: schema.Quat{W: 1}}))
	}
	v.sendSnapshots(r, o.Number, 200, func(n uint16) uint64 { return uint64(n) + 1 }, func(s *snapshot.Set) { s.CopyFrom(all) })
	if st := v.conn.Stats().Replication[2]; st.Messages < 180 {
		r.t.Errorf("%+v", st)
	}
}

// jumps sends snapshots whose ticks are random, for worlds with several numbers of ticks per
// second, and then one that is too late.
func jumps(r *rogue, v *victim) {
	rng := rand.New(rand.NewPCG(9, 10))
	for i, hz := range []float64{1000, 60, 1, 1e-6, 1e-300} {
		o := v.crate
		o.Number, o.TickHz = uint8(i), hz
		r.messages(r.offer(o))
		before := v.conn.Stats().Replication[0]
		last := replication.TickAt(1<<61, hz)
		tick := func(n uint16) uint64 {
			if n == 600 {
				return last + 1
			}
			return rng.Uint64() % (last + 1) >> rng.IntN(53)
		}
		v.sendSnapshots(r, o.Number, 601, tick, func(set *snapshot.Set) {
			for id := range uint16(3) {
				q := schema.Quat{X: rng.NormFloat64(), Y: rng.NormFloat64(), W: 1}
				c := crate{Position: schema.Vec3{X: rng.Float64() * 999}, Velocity: schema.Vec3{Y: rng.Float64() * 999}, Orientation: q}
				uplinktest.Must(r.t, v.crates.Add(set, snapshot.Object{ID: id}, &c))
			}
		})
		after := v.conn.Stats().Replication[0]
		if n, malformed := after.Messages-before.Messages, after.Malformed-before.Malformed; n != 600 || malformed != 1 {
			r.t.Errorf("%v Hz: %d messages were accepted, %d malformed", hz, n, malformed)
		}
	}
}

// largeStates sends 400 states with new objects and the inputs of 250 players at each of 32 ticks,
// which the client does not poll. The last ones have distant ticks.
func largeStates(r *rogue, v *victim) {
	tick := int64(0)
	for n := range uint64(400) {
		cfg := v.config
		cfg.First, cfg.Budget = n, 4*replication.MaxFragment
		world, err := statesync.NewShared(v.format.Schema, cfg)
		uplinktest.Must(r.t, err)
		sender, err := world.NewSender(cfg)
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
		set := v.worldObjects.Schema().NewSet()
		const updates = 255
		for i := range updates {
			id := uint16((int(n)*updates)%65_000 + i)
			uplinktest.Must(r.t, v.worldObjects.Add(set, snapshot.Object{ID: id}, &worldObject{}))
			uplinktest.Must(r.t, sender.Prioritize(id, 1))
		}
		uplinktest.Must(r.t, world.SetTick(tick, set))
		m, _, err := sender.Append(nil)
		uplinktest.Must(r.t, err)
		v.sendDown(r, v.worldObject.Number, m)
	}
	if st := v.conn.Stats().Replication[1]; st.Messages < 128 || st.Unpolled == 0 {
		r.t.Errorf("%+v", st)
	}
}
