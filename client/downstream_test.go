package client

import (
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/internal/codec/malformed"
	"github.com/uplink-rpc/uplink/internal/control"
	"github.com/uplink-rpc/uplink/internal/fragment"
	"github.com/uplink-rpc/uplink/internal/uplinktest/entries"
	"github.com/uplink-rpc/uplink/internal/uplinktest/race"
	"github.com/uplink-rpc/uplink/internal/worlds"
	"github.com/uplink-rpc/uplink/interpolate"
	"github.com/uplink-rpc/uplink/schema"
	"github.com/uplink-rpc/uplink/snapshot"
	"github.com/uplink-rpc/uplink/transport"
)

// ball is an object of these tests' world.
type ball struct {
	Position schema.Vec3 `uplink:"resolution=0.01,min=-1000,max=1000" interpolate:"position"`
	Lit      bool
}

// wire is a carrier that keeps what it gets last.
type wire struct {
	last []byte
	full bool
}

func (w *wire) Send(b []byte) error { w.last = append(w.last[:0], b...); return nil }

func (w *wire) SendReliable(b []byte) error {
	if w.full {
		return transport.ErrBacklog
	}
	return w.Send(b)
}
func (w *wire) Wake(time.Time) {}

// origin is a server's end of a world of balls.
type origin struct {
	t     testing.TB
	typ   *snapshot.Type[ball]
	world *snapshot.World
	enc   *snapshot.Encoder
	ticks worlds.Ticks
	next  uint16
	buf   []byte
	offer control.DownOffer
	start []byte
}

const balls = 50

func newOrigin(t testing.TB) *origin {
	t.Helper()
	typ, err := snapshot.Compile[ball]("balls")
	must(t, err)
	start := typ.Schema().NewSet()
	for i := range balls {
		must(t, typ.Add(start, snapshot.Object{ID: uint16(i)}, &ball{Position: schema.Vec3{Z: float64(i)}}))
	}
	w := snapshot.NewWorld(typ.Schema(), start)
	o := &origin{t: t, typ: typ, world: w, enc: snapshot.NewEncoder(typ.Schema(), w)}
	o.start, err = worlds.AppendInitial(nil, typ.Schema(), start, control.MaxInitial)
	must(t, err)
	o.offer = control.DownOffer{
		Number: 3, Name: "balls", Codec: worlds.Codec, Fields: worlds.Fields(typ.Source()), RateHz: 60, TickHz: 60,
		Initial: len(o.start), Hash: worlds.Hash(start),
	}
	return o
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// message is the next snapshot's, type included.
func (o *origin) message() []byte {
	set := o.world.Begin()
	for i := range balls {
		b := ball{Position: schema.Vec3{X: float64(int(o.next) * i % 900), Z: float64(i)}, Lit: o.next%30 == 0}
		must(o.t, o.typ.Add(set, snapshot.Object{ID: uint16(i)}, &b))
	}
	o.ticks.Set(o.next, uint64(o.next)+1)
	payload, info, err := o.enc.Append(nil, control.MaxDownMessage)
	must(o.t, err)
	o.buf = o.ticks.Append(append(o.buf[:0], byte(control.Down)|o.offer.Number), o.next, info.Baseline)
	o.buf = append(o.buf, payload...)
	o.next++
	return o.buf
}

// offered is what the offer looks like on the wire.
func (o *origin) offered() []byte {
	b, err := o.offer.Append(nil)
	must(o.t, err)
	return b[1:]
}

// quietConn is a connection that nothing runs for.
func quietConn() *Conn {
	c := newConn(Config{Logger: slog.New(slog.DiscardHandler)}, "nowhere")
	c.closed = make(chan struct{})
	return c
}

// viewOf takes the world of an origin.
func viewOf(t testing.TB, c *Conn, cfg SnapshotConfig[ball]) *downstream {
	t.Helper()
	in, err := newSnapshotInlet("balls", &cfg)
	must(t, err)
	d := &downstream{conn: c, name: "balls", inlet: in, ackHz: 1000, answer: make(chan error, 1)}
	c.down.taken = append(c.down.taken, d)
	return d
}

// deliver hands a message of the reliable channel over.
func deliver(t testing.TB, c *Conn, link carrier, b []byte) error {
	t.Helper()
	kind, body, err := control.Split(b)
	must(t, err)
	return c.down.message(link, kind, body)
}

// TestInitialState comes in pieces: what does not fit the offer is refused.
func TestInitialState(t *testing.T) {
	piece := func(b []byte) []byte { return append([]byte{byte(control.Piece), 3}, b...) }
	for name, c := range map[string]struct {
		change func(*origin)
		pieces func(*origin) [][]byte
		err    bool // of the last piece
		phase  downPhase
	}{
		"whole":    {pieces: func(o *origin) [][]byte { return [][]byte{o.start[:50], o.start[50:]} }, phase: taking},
		"short":    {pieces: func(o *origin) [][]byte { return [][]byte{o.start[:50]} }, phase: awaiting},
		"long":     {pieces: func(o *origin) [][]byte { return [][]byte{append(o.start, 1)} }, err: true, phase: awaiting},
		"nothing":  {pieces: func(*origin) [][]byte { return [][]byte{{}} }, err: true, phase: awaiting},
		"after it": {pieces: func(o *origin) [][]byte { return [][]byte{o.start, {1}} }, err: true, phase: taking},
		"altered": {pieces: func(o *origin) [][]byte {
			o.start[len(o.start)/2] ^= 1
			return [][]byte{o.start}
		}, err: true, phase: refusing},
		"another": {change: func(o *origin) { o.offer.Hash++ }, pieces: func(o *origin) [][]byte { return [][]byte{o.start} }, err: true, phase: refusing},
	} {
		o, conn, link := newOrigin(t), quietConn(), &wire{}
		if c.change != nil {
			c.change(o)
		}
		d := viewOf(t, conn, SnapshotConfig[ball]{})
		must(t, deliver(t, conn, link, append([]byte{byte(control.Offer)}, o.offered()...)))
		if n, a, err := control.ParseReply(link.last[1:]); n != 3 || a != control.Send || err != nil {
			t.Fatalf("%s: the offer was answered %x", name, link.last)
		}
		var err error
		for _, p := range c.pieces(o) {
			err = deliver(t, conn, link, piece(p))
		}
		if (err != nil) != c.err || d.phase != c.phase {
			t.Errorf("%s: %v, phase %d", name, err, d.phase)
		}
		if _, a, err := control.ParseReply(link.last[1:]); err != nil || a != d.phase.reply() {
			t.Errorf("%s: answered %x in phase %d", name, link.last, d.phase)
		}
	}
}

// TestAnswerWaits: an answer for which there is no room is sent once there is.
func TestAnswerWaits(t *testing.T) {
	o, conn, link := newOrigin(t), quietConn(), &wire{full: true}
	viewOf(t, conn, SnapshotConfig[ball]{})
	must(t, deliver(t, conn, link, append([]byte{byte(control.Offer)}, o.offered()...)))
	now := time.Now()
	if next := conn.down.tick(now); link.last != nil || next.IsZero() {
		t.Fatalf("answered %x, next at %v", link.last, next)
	}
	link.full = false
	if next := conn.down.tick(now); link.last == nil || !next.IsZero() {
		t.Errorf("answered %x, next at %v", link.last, next)
	}
}

// ready gives a view that takes an origin's snapshots.
func ready(t testing.TB, o *origin, conn *Conn, link carrier, cfg SnapshotConfig[ball]) *downstream {
	t.Helper()
	d := viewOf(t, conn, cfg)
	must(t, deliver(t, conn, link, append([]byte{byte(control.Offer)}, o.offered()...)))
	must(t, deliver(t, conn, link, append([]byte{byte(control.Piece), o.offer.Number}, o.start...)))
	if d.phase != taking {
		t.Fatalf("phase %d", d.phase)
	}
	return d
}

// TestSnapshotAllocatesNothing: taking, handing out, interpolating and acking snapshots.
func TestSnapshotAllocatesNothing(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	o, conn, link := newOrigin(t), quietConn(), &wire{}
	handled := 0
	d := ready(t, o, conn, link, SnapshotConfig[ball]{
		Handle: func(*Snapshot[ball]) { handled++ }, Interpolate: &interpolate.Config{},
	})
	in := d.inlet.(*snapshotInlet[ball])
	now := time.Now()
	var messages [][]byte
	for range 400 {
		messages = append(messages, append([]byte(nil), o.message()...))
		a, _, err := snapshot.ParseAck(link.last[2:])
		if err == nil && link.last[0] == byte(control.DownAck) {
			must(t, o.enc.Ack(a))
		}
		if len(messages) <= 200 {
			now = now.Add(time.Second / 60)
			must(t, conn.down.datagram(control.Down, messages[len(messages)-1], now))
		} else { // the encoder need not know more
			a := snapshot.Ack{Newest: o.next - 1, Window: 1<<63 - 1}
			must(t, o.enc.Ack(a))
		}
	}
	next := 200
	var latest Snapshot[ball]
	var shown interpolate.Sample[ball]
	one := func() {
		now = now.Add(time.Second / 60)
		if err := conn.down.datagram(control.Down, messages[next], now); err != nil {
			t.Fatal(err)
		}
		next++
		if !in.latest(&latest) || !in.sample(now, &shown) {
			t.Fatal("nothing is shown")
		}
	}
	one()
	if n := testing.AllocsPerRun(100, one); n != 0 {
		t.Errorf("%v allocations a snapshot", n)
	}
	if st := d.counted(); st.Messages != uint64(next) || handled != next || latest.Tick != uint64(next) || st.Acks == 0 {
		t.Errorf("%d handled, the newest of tick %d, counted %+v", handled, latest.Tick, st)
	}
}

// TestCountsByReason: each thing that cannot be used is counted for what it is.
func TestCountsByReason(t *testing.T) {
	o, conn, link := newOrigin(t), quietConn(), &wire{}
	d := ready(t, o, conn, link, SnapshotConfig[ball]{})
	now := time.Now()
	send := func(b []byte) {
		kind, body, err := control.Split(b)
		must(t, err)
		must(t, conn.down.datagram(kind, body, now))
	}
	first := append([]byte(nil), o.message()...)
	send(first)
	o.message() // is lost, and yet acked
	a := snapshot.Ack{Newest: 1, Window: 1}
	must(t, o.enc.Ack(a))
	missing := append([]byte(nil), o.message()...)
	cut := append([]byte(nil), o.message()...)
	half := []byte{byte(control.DownFragment) | 3, 0, 0, 0, 1}
	half = append(half, make([]byte, control.MaxPart)...)
	for range fragment.Window + 1 {
		send(half)
		binary.LittleEndian.PutUint16(half[1:], binary.LittleEndian.Uint16(half[1:])+1)
	}
	for range 2 { // each is late: it came before
		send(first)
	}
	send(missing)
	send(cut[:len(cut)-1])
	send([]byte{byte(control.Down) | 3})
	send([]byte{byte(control.Down) | 3, 0x80})
	send([]byte{byte(control.DownFragment) | 3, 1})
	send([]byte{byte(control.Down) | 3, 0, 9})
	send([]byte{byte(control.Down) | 3, 0, 0x80, 2, 1 << 6, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
	got := d.counted()
	if got.Messages != 1 || got.Late != 2 || got.Incomplete != 1 || got.BadFragments != 1 || got.Truncated != 1 || got.BadCounts != 1 {
		t.Errorf("%+v", got)
	}
	if got.BaselineMissing+got.Malformed != 4 || got.BaselineMissing == 0 || got.Malformed < 2 {
		t.Errorf("%+v", got)
	}
	if err := conn.down.datagram(control.Down, []byte{byte(control.Down) | 4, 1}, now); !errors.Is(err, control.ErrMalformed) {
		t.Errorf("of a world that is not there: %v", err)
	}
}

// TestReasons: each error of a decoder has a count of its own.
func TestReasons(t *testing.T) {
	for err, want := range map[error]ReplicationStats{
		snapshot.ErrLate:            {Late: 1},
		snapshot.ErrBaselineMissing: {BaselineMissing: 1},
		snapshot.ErrDesync:          {Desync: 1},
		malformed.ErrTruncated:      {Truncated: 1},
		malformed.ErrCount:          {BadCounts: 1},
		malformed.ErrID:             {BadIDs: 1},
		malformed.ErrBounds:         {BadValues: 1},
		malformed.ErrLength:         {Malformed: 1},
		snapshot.ErrMalformed:       {Malformed: 1},
	} {
		var one, two ReplicationStats
		one.count(fmt.Errorf("wrapped: %w", err))
		two.Add(&one)
		if one != want || two != want {
			t.Errorf("%v: %+v, added %+v", err, one, two)
		}
	}
}

// FuzzDownstreams throws what a server might send at a client: a byte of length, whose highest bit says that it comes
// over the reliable channel, and that many bytes. Nothing panics, and a new connection works.
func FuzzDownstreams(f *testing.F) {
	o := newOrigin(f)
	f.Add(entries.Of(append([]byte{byte(control.Offer)}, o.offered()...), true))
	f.Add(entries.Of(append([]byte{byte(control.Piece), 3}, o.start...), true))
	f.Add(entries.Of(o.message(), false))
	f.Add(entries.Of([]byte{byte(control.Stop), 3}, true))
	f.Add(entries.Of([]byte{byte(control.DownFragment) | 3, 0, 0, 1, 1, 5}, false))
	f.Fuzz(func(t *testing.T, in []byte) {
		o, conn, link := newOrigin(t), quietConn(), &wire{}
		handled := 0
		d := ready(t, o, conn, link, SnapshotConfig[ball]{Handle: func(*Snapshot[ball]) { handled++ }, Interpolate: &interpolate.Config{}})
		now := time.Now()
		e := &events{Conn: conn}
		for msg, reliable := range entries.All(in) {
			kind, body, err := control.Split(msg)
			switch {
			case err != nil:
			case reliable && (kind == control.Offer || kind == control.Piece || kind == control.Stop):
				_ = conn.down.message(link, kind, body)
			case !reliable && (kind == control.Down || kind == control.DownFragment):
				_ = e.down.datagram(kind, body, now)
			}
			now = now.Add(time.Millisecond)
			conn.down.tick(now)
		}
		if st := d.counted(); st.Messages != uint64(handled) {
			t.Fatalf("%d handled, counted %+v", handled, st)
		}
		if len(d.initial) > control.MaxInitial {
			t.Fatalf("%d bytes are held", len(d.initial))
		}
		again := &wire{}
		conn.down.reset(link)
		o = newOrigin(t)
		must(t, deliver(t, conn, again, append([]byte{byte(control.Offer)}, o.offered()...)))
		if d.phase == awaiting { // else it has that state
			must(t, deliver(t, conn, again, append([]byte{byte(control.Piece), 3}, o.start...)))
		}
		before := handled
		must(t, conn.down.datagram(control.Down, o.message(), now))
		if handled != before+1 {
			t.Fatalf("a snapshot of the new connection was not taken: %+v", d.counted())
		}
	})
}
