package client

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/internal/control"
	"github.com/uplink-rpc/uplink/internal/uplinktest/entries"
	"github.com/uplink-rpc/uplink/internal/uplinktest/race"
	"github.com/uplink-rpc/uplink/internal/worlds"
	"github.com/uplink-rpc/uplink/schema"
	"github.com/uplink-rpc/uplink/snapshot"
	"github.com/uplink-rpc/uplink/statesync"
)

// puck is an object that goes down as state.
type puck struct {
	Position schema.Vec3 `uplink:"resolution=0.01,min=-1000,max=1000,velocity=Velocity"`
	Velocity schema.Vec3 `uplink:"resolution=0.01,min=-100,max=100"`
	Resting  bool        `statesync:"rest"`
}

// spring is a server's end of a world of pucks.
type spring struct {
	t      testing.TB
	typ    *snapshot.Type[puck]
	sender *statesync.Sender
	tick   int64
	offer  control.DownOffer
}

func newSpring(t testing.TB) *spring {
	t.Helper()
	typ, err := snapshot.Compile[puck]("pucks")
	must(t, err)
	shared, err := worlds.StatesOf(typ, 60)
	must(t, err)
	sender, err := statesync.NewSender(shared.Schema, shared.Config)
	must(t, err)
	return &spring{t: t, typ: typ, sender: sender, offer: control.DownOffer{
		Number: 5, Name: "pucks", Codec: worlds.StateCodec, Fields: shared.Fields, RateHz: 60, TickHz: 60,
	}}
}

// message is the next one, type included.
func (s *spring) message() []byte {
	s.tick++
	set := s.typ.Schema().NewSet()
	for i := range 20 {
		p := puck{Position: schema.Vec3{X: float64(i) + float64(s.tick%100)/100}, Velocity: schema.Vec3{X: 0.6}}
		must(s.t, s.typ.Add(set, snapshot.Object{ID: uint16(i)}, &p))
		must(s.t, s.sender.Prioritize(uint16(i), 1))
	}
	must(s.t, s.sender.AddInputs(s.tick, statesync.Input{Player: 1, Data: []byte{byte(s.tick)}}, statesync.Input{Player: 2}))
	b, _, err := s.sender.Append([]byte{byte(control.Down) | s.offer.Number}, s.tick, set)
	must(s.t, err)
	return b
}

func (s *spring) offered() []byte {
	b, err := s.offer.Append(nil)
	must(s.t, err)
	return b
}

// hear takes what the client acked last.
func (s *spring) hear(link *wire) {
	if len(link.last) == 0 || link.last[0] != byte(control.DownAck) {
		return
	}
	a, _, err := statesync.ParseAck(link.last[2:])
	must(s.t, err)
	must(s.t, s.sender.Ack(a))
}

// poolOf takes the world of a spring.
func poolOf(t testing.TB, c *Conn, cfg StateConfig[puck]) (*downstream, *stateInlet[puck]) {
	t.Helper()
	in, err := newStateInlet("pucks", &cfg)
	must(t, err)
	d := &downstream{conn: c, name: "pucks", inlet: in, ackHz: 1000, answer: make(chan error, 1)}
	c.down.taken = append(c.down.taken, d)
	return d, in
}

// TestStateAllocatesNothing: taking, handing out, and acking updates.
func TestStateAllocatesNothing(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	for name, handled := range map[string]bool{"Handle": true, "Poll": false} {
		s, conn, link := newSpring(t), quietConn(), &wire{}
		updates := 0
		f := func(u *StateUpdate[puck]) {
			updates++
			for _, in := range u.Inputs {
				if in.Missing || len(in.Inputs) != 2 || in.Inputs[0].Data[0] != byte(in.Tick) {
					t.Errorf("inputs of tick %d are %+v", in.Tick, in)
				}
			}
		}
		cfg := StateConfig[puck]{}
		if handled {
			cfg.Handle = f
		}
		d, in := poolOf(t, conn, cfg)
		must(t, deliver(t, conn, link, s.offered()))
		now := time.Now()
		var messages [][]byte
		one := func() {
			now = now.Add(time.Second / 60)
			if err := conn.down.datagram(control.Down, messages[len(messages)-1], now); err != nil {
				t.Fatal(err)
			}
			messages = messages[:len(messages)-1]
			if !handled {
				in.poll(f)
			}
		}
		for range 200 {
			messages = append(messages, s.message())
			one()
			s.hear(link)
		}
		for range 50 { // the newest first: the sender need not know more
			messages = append([][]byte{s.message()}, messages...)
			a := statesync.Ack{Newest: uint16(s.tick - 1), Window: 1<<63 - 1}
			must(t, s.sender.Ack(a))
		}
		one()
		if n := testing.AllocsPerRun(40, one); n != 0 {
			t.Errorf("%s: %v allocations an update", name, n)
		}
		if st := d.counted(); st.Messages != uint64(updates) || updates < 240 || st.Updates < 20*200 {
			t.Errorf("%s: %d updates, counted %+v", name, updates, st)
		}
	}
}

// TestStateCounts: each thing that cannot be used is counted for what it is.
func TestStateCounts(t *testing.T) {
	s, conn, link := newSpring(t), quietConn(), &wire{}
	d, in := poolOf(t, conn, StateConfig[puck]{})
	must(t, deliver(t, conn, link, s.offered()))
	now := time.Now()
	send := func(b []byte) {
		kind, body, err := control.Split(b)
		must(t, err)
		must(t, conn.down.datagram(kind, body, now))
	}
	first := s.message()
	send(first)
	send(first)
	s.message() // is lost, and yet acked
	a := statesync.Ack{Newest: 1, Window: 1}
	must(t, s.sender.Ack(a))
	missing := s.message()
	send(missing)
	send(missing[:2])
	send([]byte{byte(control.Down) | 5})
	send([]byte{byte(control.Down) | 5, 0, 0, 0x80, 0, 0})
	if got := d.counted(); got.Messages != 1 || got.Late != 1 || got.BaselineMissing != 1 || got.Malformed != 3 {
		t.Errorf("%+v", got)
	}
	if err := conn.down.datagram(control.Down, []byte{byte(control.Down) | 4, 1}, now); !errors.Is(err, control.ErrMalformed) {
		t.Errorf("of a world that is not there: %v", err)
	}
	// What waits is bounded; what is dropped is not acked.
	now = now.Add(time.Second)
	conn.down.tick(now)
	s.hear(link) // it asks for a new start
	for range mostPolled + 9 {
		send(s.message())
	}
	if got := d.counted(); got.Unpolled != 10 || len(in.queue) != mostPolled {
		t.Errorf("%d wait, %+v", len(in.queue), got)
	}
	if n := in.poll(func(*StateUpdate[puck]) {}); n != mostPolled {
		t.Errorf("%d were polled", n)
	}
	now = now.Add(time.Second)
	conn.down.tick(now)
	s.hear(link)
	send(s.message())
	if n := in.poll(func(*StateUpdate[puck]) {}); n != 1 {
		t.Errorf("%d were polled after that", n)
	}
}

// TestStateOffers: what does not fit this end is refused with a reason.
func TestStateOffers(t *testing.T) {
	for want, change := range map[string]func(*control.DownOffer){
		`codec "snapshot"`: func(o *control.DownOffer) { o.Codec = worlds.Codec },
		`codec "state2"`:   func(o *control.DownOffer) { o.Codec = "state2" },
		"field 2 differs":  func(o *control.DownOffer) { o.Fields = append([]string(nil), o.Fields[:2]...) },
		"at the server {Resting ": func(o *control.DownOffer) {
			o.Fields = append([]string(nil), o.Fields...)
			o.Fields[2] = "Resting bool"
		},
		"initial state": func(o *control.DownOffer) { o.Initial = 10 },
	} {
		s, conn, link := newSpring(t), quietConn(), &wire{}
		change(&s.offer)
		d, _ := poolOf(t, conn, StateConfig[puck]{})
		must(t, deliver(t, conn, link, s.offered()))
		if d.phase != refusing || d.refused == nil || !strings.Contains(d.refused.Error(), want) {
			t.Errorf("want %s: phase %d, %v", want, d.phase, d.refused)
		}
		if _, a, err := control.ParseReply(link.last[1:]); err != nil || a != control.Refused {
			t.Errorf("%s: answered %x", want, link.last)
		}
	}
}

// FuzzStates throws what a server might send at a client that takes state, as FuzzDownstreams does. Nothing panics, what
// waits is bounded, and a new connection works.
func FuzzStates(f *testing.F) {
	s := newSpring(f)
	f.Add(entries.Of(s.offered(), true))
	first := s.message()
	f.Add(entries.Of(first, false))
	f.Add(append(entries.Of(s.message(), false), entries.Of(first, false)...))
	f.Add(entries.Of([]byte{byte(control.Stop), 5}, true))
	f.Add(entries.Of([]byte{byte(control.DownFragment) | 5, 0, 0, 1, 1, 5}, false))
	f.Fuzz(func(t *testing.T, in []byte) {
		s, conn, link := newSpring(t), quietConn(), &wire{}
		d, pool := poolOf(t, conn, StateConfig[puck]{})
		must(t, deliver(t, conn, link, s.offered()))
		must(t, conn.down.datagram(control.Down, s.message(), time.Now()))
		s.hear(link)
		must(t, conn.down.datagram(control.Down, s.message(), time.Now()))
		now := time.Now()
		for msg, reliable := range entries.All(in) {
			kind, body, err := control.Split(msg)
			switch {
			case err != nil:
			case reliable && (kind == control.Offer || kind == control.Piece || kind == control.Stop):
				_ = conn.down.message(link, kind, body)
			case !reliable && (kind == control.Down || kind == control.DownFragment):
				_ = conn.down.datagram(kind, body, now)
			}
			now = now.Add(time.Millisecond)
			conn.down.tick(now)
			if len(pool.queue) > mostPolled {
				t.Fatalf("%d updates wait", len(pool.queue))
			}
		}
		polled := pool.poll(func(u *StateUpdate[puck]) {
			for i := range u.Objects {
				if i > 0 && u.Objects[i].ID <= u.Objects[i-1].ID {
					t.Fatalf("object %d after %d", u.Objects[i].ID, u.Objects[i-1].ID)
				}
			}
		})
		if st := d.counted(); uint64(polled) > st.Messages {
			t.Fatalf("%d polled, counted %+v", polled, st)
		}
		again := &wire{}
		conn.down.reset(link)
		s = newSpring(t)
		must(t, deliver(t, conn, again, s.offered()))
		must(t, conn.down.datagram(control.Down, s.message(), now))
		first := 0
		if n := pool.poll(func(u *StateUpdate[puck]) {
			if u.First && len(u.Objects) == 20 {
				first++
			}
		}); n != 1 || first != 1 {
			t.Fatalf("an update of the new connection was not taken: %+v", d.counted())
		}
	})
}
