package replication

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"flag"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/area"
	"github.com/uplink-rpc/uplink/internal/message"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/snapshot"
)

var update = flag.Bool("update", false, "write testdata/sessions/downstreams")

// sessionLine is a line of a session of a world, see testdata/sessions/README.md.
type sessionLine struct {
	Reliable string    `json:"reliable,omitempty"`
	Answer   string    `json:"answer,omitempty"`
	Tick     uint64    `json:"tick,omitempty"`
	Objects  [][]int32 `json:"objects,omitempty"`
	See      []area.ID `json:"see,omitempty"`
	Put      []put     `json:"put,omitempty"`
	Shown    [][]int32 `json:"shown,omitempty"`
	Sent     []string  `json:"sent,omitempty"`
	Lost     []int     `json:"lost,omitempty"`
	Ack      string    `json:"ack,omitempty"`
	AckLost  bool      `json:"ack_lost,omitempty"`
}

// put is an object as the server puts it into areas.
type put struct {
	Object []int32   `json:"object"`
	In     []area.ID `json:"in"`
}

// script plays a world to a client and records each byte.
type script struct {
	*pair
	out bytes.Buffer
}

// TestSession compares each byte of a session with the file: the offer, an initial state in two
// pieces, then snapshots that are lost, in part or with their acks.
func TestSession(t *testing.T) {
	s := script{pair: newPair(t)}
	state := s.replica.mode.initial
	s.subscribed(append([]byte{byte(message.Piece), 3}, state[:60]...), append([]byte{byte(message.Piece), 3}, state[60:]...))
	for n := range 40 {
		s.snapshot(n)
	}
	if st := s.sub.Stats(); st.Fragments != 3 {
		t.Errorf("%+v", st)
	}
	s.compare("world.jsonl")
}

// subscribed sends the offer and further messages over the reliable channel.
func (s *script) subscribed(reliable ...[]byte) {
	offer, err := s.offer.Append(nil)
	must(s.t, err)
	for _, b := range append([][]byte{offer}, reliable...) {
		must(s.t, s.reliable(message.Type(b[0]), b[1:]...))
		s.write(&sessionLine{Reliable: hex.EncodeToString(b), Answer: s.answer()})
	}
	must(s.t, s.replicas.HandleReply([]byte{3, byte(Ready)}, &s.queue, s.now))
}

// compare compares the session with a file, which -update writes.
func (s *script) compare(name string) {
	if st := s.sub.Stats(); st.Messages < 25 || st.Late+st.BaselineMissing+st.Desync+st.Malformed > 0 {
		s.t.Errorf("%+v", st)
	}
	file := "../../testdata/sessions/downstreams/" + name
	if *update {
		must(s.t, os.WriteFile(file, s.out.Bytes(), 0o644))
		return
	}
	want, err := os.ReadFile(file)
	must(s.t, err)
	got := bytes.Split(s.out.Bytes(), []byte("\n"))
	for i, line := range bytes.Split(want, []byte("\n")) {
		if i >= len(got) || !bytes.Equal(got[i], line) {
			s.t.Fatalf("%s: line %d is not\n%s", name, i+1, line)
		}
	}
}

func (s *script) write(l *sessionLine) { must(s.t, json.NewEncoder(&s.out).Encode(l)) }

// answer returns what the client sent since the last call.
func (s *script) answer() string {
	b := hex.EncodeToString(s.toServer.Last)
	s.toServer.Last = nil
	return b
}

// snapshot sends snapshot n. Some have so many objects that they are sent in fragments.
func (s *script) snapshot(n int) {
	l := sessionLine{Tick: sessionTick(n)}
	count := 5
	if n == 9 || n == 21 {
		count = 260
	}
	datagrams := s.send(l.Tick, count, func(i int) (snapshot.Object, ball) {
		at := schema.Vec3{X: float64(n*i) / 25, Y: float64(i * i * 7919 % 1999 / 2), Z: float64(i * 31 % 17)}
		return snapshot.Object{ID: uint16(i * 3), Generation: uint8(n / 25)}, ball{at, n/10%2 > 0}
	})
	l.Objects = appendRows(nil, nil, s.world.newest)
	if s.transmit(n, &l, datagrams) && (s.probe.tick != l.Tick || !s.probe.set.Equal(s.world.newest)) {
		s.t.Fatalf("snapshot %d is decoded as another one, of tick %d", n, s.probe.tick)
	}
	s.write(&l)
}

func sessionTick(n int) uint64 { return uint64(100 + 3*n + n/20) }

// appendRows appends each object of a set: first, its id, its generation and its components.
func appendRows(dst [][]int32, first []int32, set *snapshot.Set) [][]int32 {
	for i := range set.Len() {
		o := set.Object(i)
		dst = append(dst, slices.Concat(first, []int32{int32(o.ID), int32(o.Generation)}, set.Row(i)))
	}
	return dst
}

// transmit delivers the datagrams of snapshot n or loses the first one, and then the client's ack
// or loses it. It reports whether all datagrams are received.
func (s *script) transmit(n int, l *sessionLine, datagrams [][]byte) (received bool) {
	received = n%7 != 4 && n != 21
	for i, b := range datagrams {
		l.Sent = append(l.Sent, hex.EncodeToString(b))
		if !received && i == 0 {
			l.Lost = append(l.Lost, i)
			continue
		}
		s.deliver(b)
	}
	if l.AckLost = n%5 == 3; !l.AckLost {
		s.ack()
	}
	l.Ack = s.answer()
	s.now = s.now.Add(50 * time.Millisecond)
	return received
}

// TestAreaSession compares each byte of a session of a world with areas and two types of objects:
// objects that walk from area to area, appear and leave, and a client that sees one area or two.
func TestAreaSession(t *testing.T) {
	s := script{pair: newAreaPair(t)}
	s.subscribed()
	for n := range 60 {
		s.areas(n)
	}
	s.compare("areas.jsonl")
}

// areas sends snapshot n of a world with areas. In one of them, many objects appear.
func (s *script) areas(n int) {
	l := sessionLine{Tick: sessionTick(n), See: [][]area.ID{{1, 7}, {1, 2}, {2}, {2, 3, 7}}[n/15]}
	s.replica.See(l.See)
	must(s.t, s.world.Begin(l.Tick))
	put := func(typ int, o snapshot.Object, row []int32, in ...area.ID) {
		must(s.t, s.world.Put(typ, o, row, in...))
		l.Put = append(l.Put, put{slices.Concat([]int32{int32(typ), int32(o.ID), int32(o.Generation)}, row), in})
	}
	row := make([]int32, s.typ.Schema().Components())
	count := 8
	if n == 40 {
		count = 100
	}
	for i := range count {
		at := schema.Vec3{X: float64(i*20+n*(i%4)*5) / 10, Y: float64(i*i*7919%1999) / 2, Z: float64(i * 31 % 17)}
		must(s.t, s.typ.Quantize(row, &ball{at, n/20%2 > 0}))
		put(0, snapshot.Object{ID: uint16(i * 3), Generation: uint8(n / 25)}, row, area.ID(1+int(at.X/5)%3))
	}
	row = make([]int32, s.lamps.Schema().Components())
	for i := range 3 {
		must(s.t, s.lamps.Quantize(row, &lamp{"lamp " + string(rune('a'+i+n/30)), schema.Vec3{X: float64(n%10) / 10}}))
		put(1, snapshot.Object{ID: uint16(i)}, row, [][]area.ID{{}, {1, 3}, {7}}[i]...)
	}
	s.world.Commit()
	s.toClient.Sent = nil
	must(s.t, s.replica.Send(s.now))
	if s.transmit(n, &l, s.toClient.Sent) {
		l.Shown = appendRows(appendRows(nil, []int32{0}, s.probe.set), []int32{1}, s.probe.Further(0))
		s.check(&l)
	}
	s.write(&l)
}

// check checks that the client is shown nothing but what the server put into areas that it sees.
func (s *script) check(l *sessionLine) {
	for _, o := range l.Shown {
		if !slices.ContainsFunc(l.Put, func(p put) bool {
			seen := len(p.In) == 0 || slices.ContainsFunc(p.In, func(a area.ID) bool { return slices.Contains(l.See, a) })
			return seen && slices.Equal(p.Object, o)
		}) {
			s.t.Fatalf("tick %d: object %v is shown", l.Tick, o)
		}
	}
}
