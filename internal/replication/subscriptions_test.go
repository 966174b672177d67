package replication

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/internal/codec/malformed"
	"github.com/uplink-rpc/uplink/internal/message"
	"github.com/uplink-rpc/uplink/internal/replication/fragment"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/snapshot"
	"github.com/uplink-rpc/uplink/internal/uplinktest/entries"
	"github.com/uplink-rpc/uplink/internal/uplinktest/fakeconn"
	"github.com/uplink-rpc/uplink/internal/versions"
)

// ball is an object of these tests' world.
type ball struct {
	Position schema.Vec3 `uplink:"resolution=0.01,min=-1000,max=1000"`
	Lit      bool
}

const balls = 50

// probe is a view that stores what it receives.
type probe struct {
	SnapshotDecoder
	refuse    error
	tick      uint64
	set       *snapshot.Set
	processed Processed
	game      []gameMessage
	delivered int
}

func (p *probe) Check(*Offer) (message.Differences, error) { return message.Differences{}, p.refuse }

func (p *probe) Receive(message []byte, processed Processed, _ time.Time, _ bool, st *Stats) (tick uint64, complete bool, err error) {
	p.processed = append(p.processed[:0], processed...)
	if p.tick, p.set, err = p.Decode(message); err != nil {
		CountError(st, err)
	}
	return p.tick, err == nil && p.Complete(), err
}

func (p *probe) NewReceiver() Receiver { return p }

func (p *probe) Show() {}

func (p *probe) End() {}

func (p *probe) Game(tick uint64, message []byte) {
	p.game = append(p.game, gameMessage{tick, message})
}

func (p *probe) Deliver() { p.delivered++ }

// pair is a world of balls and its stream, of number 3, to a client.
type pair struct {
	t        testing.TB
	typ      *snapshot.Type[ball]
	lamps    *snapshot.Type[lamp] // with areas
	world    *World
	replicas *Replicas
	replica  *Replica
	queue    SendQueue
	toClient fakeconn.Conn
	offer    Offer
	next     int // number of the next snapshot

	subs     Subscriptions
	worlds   *Worlds
	sub      *Subscription // nil until subscribe
	probe    *probe
	toServer fakeconn.Conn
	now      time.Time
}

func newPair(t testing.TB) *pair { return newPairOver(t, fakeconn.Conn{Keep: true}) }

func newPairOver(t testing.TB, toClient fakeconn.Conn) *pair {
	t.Helper()
	typ, err := snapshot.Compile[ball]("balls")
	must(t, err)
	w, err := NewWorld(typ, "balls", 60, 60, func(put func(uint16, uint8, *ball) error) (err error) {
		for i := 0; i < balls && err == nil; i++ {
			err = put(uint16(i), 0, &ball{Position: schema.Vec3{Z: float64(i)}})
		}
		return err
	})
	must(t, err)
	return connect(t, typ, nil, w, toClient)
}

// lamp is a further type of objects, for worlds with areas.
type lamp struct {
	Name  string      `uplink:"max=8"`
	Color schema.Vec3 `uplink:"resolution=0.01,min=0,max=1"`
}

// newAreaPair returns a world with areas, which has lamps too.
func newAreaPair(t testing.TB) *pair {
	t.Helper()
	typ, err := snapshot.Compile[ball]("balls")
	must(t, err)
	lamps, err := snapshot.Compile[lamp]("lamps")
	must(t, err)
	w, err := NewWorld(typ, "balls", 60, 60, nil)
	must(t, err)
	must(t, w.WithAreas(100))
	_, err = w.AddType("lamps", versions.Descriptions(lamps.Source()), lamps.Schema())
	must(t, err)
	return connect(t, typ, lamps, w, fakeconn.Conn{Keep: true})
}

// connect offers a world, which may have lamps, to a client.
func connect(t testing.TB, typ *snapshot.Type[ball], lamps *snapshot.Type[lamp], w *World, toClient fakeconn.Conn) *pair {
	t.Helper()
	p := &pair{t: t, typ: typ, lamps: lamps, world: w, now: time.Unix(0, 0), toClient: toClient}
	p.replicas = NewReplicas(&p.toClient)
	p.replicas.next = 3
	var err error
	p.replica, err = w.Offer(p.replicas)
	must(t, err)
	p.offer, err = ParseOffer(p.toClient.Last[1:])
	must(t, err)
	p.probe = &probe{SnapshotDecoder: NewSnapshotDecoder(typ.Schema(), typ.Schema().NewSet())}
	if lamps != nil {
		p.probe.SetTypes(p.typ.Schema(), lamps.Schema())
	}
	p.worlds = p.subs.Open(&p.toServer)
	p.worlds.Show(p.now)
	p.sub, err = p.subs.Subscribe("balls", p.probe, 1000, p.now)
	must(t, err)
	return p
}

// reliable delivers a message of the reliable channel to the client.
func (p *pair) reliable(t message.Type, body ...byte) error {
	return p.worlds.HandleMessage(t, body, p.now)
}

// offered delivers an offer.
func (p *pair) offered(o Offer) {
	p.t.Helper()
	b, err := o.Append(nil)
	must(p.t, err)
	must(p.t, p.reliable(message.Offer, b[1:]...))
}

// subscribe delivers the offer, the initial state and the replies.
func (p *pair) subscribe() *pair {
	p.t.Helper()
	p.offered(p.offer)
	for _, want := range []Answer{Request, Ready} {
		if p.offer.Areas && want == Request { // there is no initial state
			continue
		}
		must(p.t, p.replicas.HandleReply(p.toServer.Last[1:], &p.queue, p.now))
		if got := p.toServer.Last[2]; got != byte(want) {
			p.t.Fatalf("answer %d, want %d", got, want)
		}
		p.toClient.Sent = nil
		p.queue.Send(0)
		for _, b := range p.toClient.Sent {
			must(p.t, p.reliable(message.Type(b[0]), b[1:]...))
		}
	}
	return p
}

// send sends a snapshot and returns its datagrams.
func (p *pair) send(tick uint64, count int, put func(i int) (snapshot.Object, ball)) [][]byte {
	p.t.Helper()
	must(p.t, p.world.Begin(tick))
	row := make([]int32, p.typ.Schema().Components())
	for i := range count {
		o, b := put(i)
		must(p.t, p.typ.Quantize(row, &b))
		must(p.t, p.world.Put(0, o, row))
	}
	p.world.Commit()
	p.toClient.Sent = nil
	must(p.t, p.replica.Send(p.now))
	p.next++
	return p.toClient.Sent
}

// snapshot sends a snapshot of one datagram and returns it.
func (p *pair) snapshot() []byte {
	p.t.Helper()
	n := p.next
	return p.send(uint64(n+1), balls, func(i int) (snapshot.Object, ball) {
		return snapshot.Object{ID: uint16(i)}, ball{Position: schema.Vec3{X: float64(n * i % 900), Z: float64(i)}, Lit: n%30 == 0}
	})[0]
}

// deliver delivers a datagram to the client.
func (p *pair) deliver(b []byte) {
	p.t.Helper()
	kind, body, err := message.Split(b)
	must(p.t, err)
	must(p.t, p.worlds.HandleDatagram(kind, body, p.now))
}

// ack delivers the client's ack, if it sent one, to the server.
func (p *pair) ack() {
	if b := p.toServer.Last; len(b) > 0 && b[0] == byte(message.DownAck) {
		must(p.t, p.replicas.HandleAck(b[1:], p.now))
	}
}

// TestInitialState checks which pieces of an initial state a client accepts, and what it replies.
func TestInitialState(t *testing.T) {
	whole := func(b []byte) [][]byte { return [][]byte{b} }
	altered := func(b []byte) [][]byte { return [][]byte{append(b[:60], bytes.Clone(b[61:])...), {7}} }
	for name, c := range map[string]struct {
		wrongHash uint64
		pieces    func(state []byte) [][]byte
		err       bool // of the last piece
		phase     subscriptionPhase
	}{
		"complete":   {pieces: func(b []byte) [][]byte { return [][]byte{b[:50], b[50:]} }, phase: subscribed},
		"too short":  {pieces: func(b []byte) [][]byte { return [][]byte{b[:50]} }, phase: requesting},
		"too long":   {pieces: func(b []byte) [][]byte { return [][]byte{append(b, 1)} }, err: true, phase: requesting},
		"empty":      {pieces: func([]byte) [][]byte { return [][]byte{{}} }, err: true, phase: requesting},
		"after it":   {pieces: func(b []byte) [][]byte { return [][]byte{b, {1}} }, err: true, phase: subscribed},
		"altered":    {pieces: altered, err: true, phase: refusing},
		"wrong hash": {wrongHash: 1, pieces: whole, err: true, phase: refusing},
	} {
		p := newPair(t)
		p.offer.Hash += c.wrongHash
		p.offered(p.offer)
		answered := func(phase subscriptionPhase) {
			if want := AppendReply(nil, 3, phase.answer()); !bytes.HasPrefix(p.toServer.Last, want) || (len(p.toServer.Last) > len(want)) != (phase == refusing) {
				t.Errorf("%s: answered %x in phase %d", name, p.toServer.Last, phase)
			}
		}
		answered(requesting)
		p.deliver([]byte{byte(message.Down) | 3, 1, 2}) // ignored
		var err error
		for _, b := range c.pieces(bytes.Clone(p.replica.mode.initial)) {
			err = p.reliable(message.Piece, append([]byte{3}, b...)...)
		}
		if (err != nil) != c.err || p.sub.feed.phase != c.phase || (p.sub.Err() != nil) != (c.phase == refusing) {
			t.Errorf("%s: %v, phase %d, %v", name, err, p.sub.feed.phase, p.sub.Err())
		}
		answered(c.phase)
		if st := p.sub.Stats(); st.Datagrams != 0 || st.Initial != uint64(len(p.replica.mode.initial)) {
			t.Errorf("%s: %+v", name, st)
		}
	}
}

// TestReplyRetry checks that a reply for which the reliable channel has no room is sent later.
func TestReplyRetry(t *testing.T) {
	p := newPair(t)
	p.toServer.Full = true
	p.offered(p.offer)
	for range 2 {
		if next := p.now.Add(replyInterval); p.toServer.Last != nil || !p.toServer.Woken.Equal(next) {
			t.Fatalf("answered %x, woken at %v", p.toServer.Last, p.toServer.Woken)
		}
		p.now = p.toServer.Woken
		p.worlds.Tick(p.now)
	}
	p.toServer.Full = false
	if p.worlds.Tick(p.now); p.toServer.Last == nil {
		t.Error("not answered")
	}
	p.toServer.Last = nil
	if p.worlds.Tick(p.now); p.toServer.Last != nil {
		t.Error("answered twice")
	}
}

// TestAckRate checks that acks are sent at most at the offered rate, and that one that had to wait
// is sent later.
func TestAckRate(t *testing.T) {
	p := newPair(t).subscribe()
	p.deliver(p.snapshot())
	p.deliver(p.snapshot())
	due := p.now.Add(Interval(60))
	if st := p.sub.Stats(); st.Acks != 1 || !p.toServer.Woken.Equal(due) {
		t.Errorf("%d acks at once, woken at %v, want %v", st.Acks, p.toServer.Woken, due)
	}
	for _, want := range []uint64{2, 2} {
		p.worlds.Tick(due)
		if st := p.sub.Stats(); st.Acks != want {
			t.Errorf("%d acks, want %d", st.Acks, want)
		}
	}
}

// TestOfferReplaced checks that an offer by another number replaces the one before, that the server
// can stop a stream, and that a lost link withdraws its offers.
func TestOfferReplaced(t *testing.T) {
	p := newPair(t).subscribe()
	p.offer.Number = 5
	p.offered(p.offer)
	if p.sub.feed.phase != subscribed { // the initial state is known
		t.Errorf("phase %d", p.sub.feed.phase)
	}
	p.deliver(p.snapshot())
	if st := p.sub.Stats(); st.Datagrams != 0 {
		t.Errorf("a message of the offer before is received: %+v", st)
	}
	must(t, p.reliable(message.Stop, 5))
	if n := len(p.subs.Offered()); n != 1 || p.sub.feed.phase != unoffered {
		t.Errorf("phase %d, %d offers", p.sub.feed.phase, n)
	}
	p.offered(p.offer)
	if p.subs.Open(&fakeconn.Conn{}).End(); p.sub.feed.phase != subscribed {
		t.Errorf("phase %d after the end of another link", p.sub.feed.phase)
	}
	if p.worlds.End(); p.sub.feed.phase != unoffered || len(p.subs.Offered()) != 0 {
		t.Errorf("phase %d, %d offers after the end of the link", p.sub.feed.phase, len(p.subs.Offered()))
	}
}

// stored returns how many numbers of streams refer to the subscription, and the number of fields of
// all stored offers.
func (p *pair) stored() (numbers, fields int) {
	for n, s := range p.worlds.feeds {
		if s != nil {
			numbers++
		}
		if o := p.worlds.offers[n]; o != nil {
			fields += len(o.Fields)
		}
	}
	return numbers, fields
}

// TestOffersBounded offers a world by each number with as many fields as an offer can have: the
// subscription has one number at a time, and larger offers are rejected.
func TestOffersBounded(t *testing.T) {
	p := newPair(t).subscribe()
	o := p.offer
	o.Fields = make([]string, maxFields)
	for i := range uint8(3 * MaxReplicas) {
		o.Number = i % MaxReplicas
		p.offered(o)
		if i%5 == 0 {
			must(t, p.reliable(message.Stop, i/2%MaxReplicas))
		}
		if numbers, fields := p.stored(); numbers > 1 || fields > MaxReplicas*maxFields {
			t.Fatalf("the world has %d numbers, offers have %d fields", numbers, fields)
		}
	}
	_, before := p.stored()
	o.Fields = append(o.Fields, "one more")
	b, err := o.Append(nil)
	must(t, err)
	err = p.reliable(message.Offer, b[1:]...)
	if _, fields := p.stored(); !errors.Is(err, message.ErrMalformed) || fields != before {
		t.Errorf("an offer of %d fields: %v", len(o.Fields), err)
	}
}

// oversized returns the payload of snapshot 1 with more objects than a set has, if snapshot 0 has
// some.
func (p *pair) oversized() []byte {
	s := p.typ.Schema()
	w := snapshot.NewHistory(s, nil)
	w.Begin()
	set, row := w.Begin(), make([]int32, s.Components())
	for i := range snapshot.MaxObjects {
		must(p.t, set.Add(snapshot.Object{ID: uint16(60_000 - snapshot.MaxObjects + i)}, row))
	}
	payload, _, err := new(snapshot.Encoder).Append(nil, w, snapshot.Baseline{Distance: 1}, 1<<20)
	must(p.t, err)
	return payload
}

// TestErrorCounts checks how messages that cannot be decoded are counted.
func TestErrorCounts(t *testing.T) {
	p := newPair(t).subscribe()
	first := bytes.Clone(p.snapshot())
	p.deliver(first)
	p.snapshot() // is lost, but acked
	a := snapshot.Ack{Newest: 1, Window: 1}
	must(t, p.replicas.HandleAck(a.Append([]byte{3}), p.now))
	missing := bytes.Clone(p.snapshot())
	truncated := bytes.Clone(p.snapshot())
	half := append([]byte{byte(message.DownFragment) | 3, 0, 0, 0, 1}, make([]byte, MaxFragment)...)
	for n := range uint16(fragment.Window + 1) {
		binary.LittleEndian.PutUint16(half[1:], n)
		p.deliver(half)
	}
	for _, b := range [][]byte{
		first, first, missing, truncated[:len(truncated)-1],
		{byte(message.Down) | 3},
		{byte(message.Down) | 3, 0x80},
		{byte(message.DownFragment) | 3, 1},
		{byte(message.Down) | 3, 0, 9},
		append([]byte{byte(message.Down) | 3, 0}, p.oversized()...),
	} {
		p.deliver(b)
	}
	st := p.sub.Stats()
	if st.Messages != 1 || st.Late != 2 || st.Incomplete != 1 || st.BadFragments != 1 || st.Truncated != 1 {
		t.Errorf("%+v", st)
	}
	if st.BaselineMissing+st.Malformed != 4 || st.BaselineMissing == 0 || st.Malformed < 2 || p.probe.delivered != 1 {
		t.Errorf("%+v, %d delivered", st, p.probe.delivered)
	}
	if err := p.worlds.HandleDatagram(message.Down, []byte{byte(message.Down) | 4, 1}, p.now); !errors.Is(err, message.ErrMalformed) {
		t.Errorf("a message of an unknown world: %v", err)
	}
}

// TestCountError checks that each error of a decoder has its own count, and that counts are added
// up.
func TestCountError(t *testing.T) {
	for err, want := range map[error]Stats{
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
		var st Stats
		if CountError(&st, fmt.Errorf("wrapped: %w", err)); st != want {
			t.Errorf("%v: %+v", err, st)
		}
	}
	sum := []Stats{{Name: "a", Players: 1, Late: 2, BaselineAge: 3}}
	sum = AddStats(sum, &Stats{Name: "b", Acks: 1})
	sum = AddStats(sum, &Stats{Name: "a", Players: 2, Late: 3, BaselineAge: 1})
	if len(sum) != 2 || sum[0] != (Stats{Name: "a", Players: 3, Late: 5, BaselineAge: 3}) || sum[1] != (Stats{Name: "b", Acks: 1}) {
		t.Errorf("%+v", sum)
	}
}

// FuzzSubscriptions handles arbitrary messages of a server, for a world without areas and one with
// areas: see package entries. Nothing panics, the stored initial state is bounded, and a new
// session works.
func FuzzSubscriptions(f *testing.F) {
	worlds := []func(testing.TB) *pair{newPair, newAreaPair}
	for _, world := range worlds {
		p := world(f).subscribe()
		offer, err := p.offer.Append(nil)
		must(f, err)
		f.Add(entries.Of(offer, true))
		f.Add(entries.Of(p.snapshot(), false))
		if len(p.replica.mode.initial) > 0 {
			f.Add(entries.Of(append([]byte{byte(message.Piece), 3}, p.replica.mode.initial...), true))
		}
	}
	f.Add(entries.Of([]byte{byte(message.Stop), 3}, true))
	f.Add(entries.Of([]byte{byte(message.DownFragment) | 3, 0, 0, 1, 1, 5}, false))
	f.Fuzz(func(t *testing.T, in []byte) {
		for _, world := range worlds {
			world(t).subscribe().handle(in, world(t))
		}
	})
}

// handle handles the messages of a fuzz target's input, and then a new session with again's world.
func (p *pair) handle(in []byte, again *pair) {
	for msg, reliable := range entries.All(in) {
		kind, body, err := message.Split(msg)
		switch {
		case err != nil:
		case reliable && (kind == message.Offer || kind == message.Piece || kind == message.Stop):
			_ = p.reliable(kind, body...)
		case !reliable && (kind == message.Down || kind == message.DownFragment):
			_ = p.worlds.HandleDatagram(kind, body, p.now)
		}
		p.now = p.now.Add(time.Millisecond)
		p.worlds.Tick(p.now)
	}
	if st := p.sub.Stats(); st.Messages != uint64(p.probe.delivered) || len(p.sub.feed.initial) > MaxInitial {
		p.t.Fatalf("%d delivered, %d bytes of the initial state are stored, stats %+v", p.probe.delivered, len(p.sub.feed.initial), st)
	}
	if numbers, fields := p.stored(); numbers > 1 || fields > MaxReplicas*maxFields {
		p.t.Fatalf("the world has %d numbers, offers have %d fields", numbers, fields)
	}
	p.worlds.End()
	p.worlds = p.subs.Open(&p.toServer)
	p.worlds.Show(p.now)
	p.replica, p.replicas, p.world, p.next = again.replica, again.replicas, again.world, 0
	p.offered(again.offer)
	if p.sub.feed.phase == requesting { // else the client has that state
		must(p.t, p.reliable(message.Piece, append([]byte{3}, p.replica.mode.initial...)...))
	}
	must(p.t, p.replicas.HandleReply(p.toServer.Last[1:], &p.queue, p.now))
	p.replica.player = &p.toClient
	before := p.probe.delivered
	p.deliver(p.snapshot())
	if p.probe.delivered != before+1 {
		p.t.Fatalf("a snapshot of the new session is not received: %+v", p.sub.Stats())
	}
}
