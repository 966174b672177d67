package replication

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"flag"
	"os"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/internal/control"
	"github.com/uplink-rpc/uplink/schema"
	"github.com/uplink-rpc/uplink/snapshot"
)

var update = flag.Bool("update", false, "write testdata/sessions/downstreams/world.jsonl")

// sessionLine is a line of a session of a world, see testdata/sessions/README.md.
type sessionLine struct {
	Reliable string    `json:"reliable,omitempty"`
	Answer   string    `json:"answer,omitempty"`
	Tick     uint64    `json:"tick,omitempty"`
	Objects  [][]int32 `json:"objects,omitempty"`
	Sent     []string  `json:"sent,omitempty"`
	Lost     []int     `json:"lost,omitempty"`
	Ack      string    `json:"ack,omitempty"`
	AckLost  bool      `json:"ack_lost,omitempty"`
}

// session plays a world to a client and records each byte.
type session struct {
	*pair
	out bytes.Buffer
}

// TestSession compares each byte of a session with the file: the offer, an initial state in two
// pieces, then snapshots that are lost, in part or with their acks.
func TestSession(t *testing.T) {
	const file = "../../testdata/sessions/downstreams/world.jsonl"
	s := session{pair: newPair(t)}
	offer, err := s.offer.Append(nil)
	must(t, err)
	state := s.stream.mode.initial
	for _, b := range [][]byte{offer, append([]byte{byte(control.Piece), 3}, state[:60]...), append([]byte{byte(control.Piece), 3}, state[60:]...)} {
		must(t, s.reliable(control.Type(b[0]), b[1:]...))
		s.write(&sessionLine{Reliable: hex.EncodeToString(b), Answer: s.answer()})
	}
	must(t, s.streams.HandleReply([]byte{3, byte(Ready)}, &s.queue, s.now))
	for n := range 40 {
		s.snapshot(n)
	}
	if st := s.sub.Stats(); st.Fragments != 3 || st.Messages < 25 || st.Late+st.BaselineMissing+st.Desync+st.Malformed > 0 {
		t.Errorf("%+v", st)
	}
	if *update {
		must(t, os.WriteFile(file, s.out.Bytes(), 0o644))
		return
	}
	want, err := os.ReadFile(file)
	must(t, err)
	got := bytes.Split(s.out.Bytes(), []byte("\n"))
	for i, line := range bytes.Split(want, []byte("\n")) {
		if i >= len(got) || !bytes.Equal(got[i], line) {
			t.Fatalf("line %d is not\n%s", i+1, line)
		}
	}
}

func (s *session) write(l *sessionLine) { must(s.t, json.NewEncoder(&s.out).Encode(l)) }

// answer returns what the client sent since the last call.
func (s *session) answer() string {
	b := hex.EncodeToString(s.toServer.Last)
	s.toServer.Last = nil
	return b
}

// snapshot sends snapshot n. Some have so many objects that they are sent in fragments.
func (s *session) snapshot(n int) {
	l := sessionLine{Tick: uint64(100 + 3*n + n/20), AckLost: n%5 == 3}
	count := 5
	if n == 9 || n == 21 {
		count = 260
	}
	datagrams := s.send(l.Tick, count, func(i int) (snapshot.Object, ball) {
		at := schema.Vec3{X: float64(n*i) / 25, Y: float64(i * i * 7919 % 1999 / 2), Z: float64(i * 31 % 17)}
		return snapshot.Object{ID: uint16(i * 3), Generation: uint8(n / 25)}, ball{at, n/10%2 > 0}
	})
	set := s.world.newest
	for i := range set.Len() {
		o := set.Object(i)
		l.Objects = append(l.Objects, append([]int32{int32(o.ID), int32(o.Generation)}, set.Row(i)...))
	}
	received := n%7 != 4 && n != 21
	for i, b := range datagrams {
		l.Sent = append(l.Sent, hex.EncodeToString(b))
		if !received && i == 0 {
			l.Lost = append(l.Lost, i)
			continue
		}
		s.deliver(b)
	}
	if received && (s.probe.tick != l.Tick || !s.probe.set.Equal(set)) {
		s.t.Fatalf("snapshot %d is decoded as another one, of tick %d", n, s.probe.tick)
	}
	if !l.AckLost {
		s.ack()
	}
	l.Ack = s.answer()
	s.write(&l)
	s.now = s.now.Add(50 * time.Millisecond)
}
