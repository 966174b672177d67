package client

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"flag"
	"os"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/internal/control"
	"github.com/uplink-rpc/uplink/internal/replication/fragment"
	"github.com/uplink-rpc/uplink/schema"
	"github.com/uplink-rpc/uplink/snapshot"
	"github.com/uplink-rpc/uplink/transport"
)

var updateSessions = flag.Bool("update", false, "write testdata/sessions/downstreams/world.jsonl anew")

// downLine is a line of a downstream's session, see testdata/sessions/README.md.
type downLine struct {
	Reliable string    `json:"reliable,omitempty"`
	Answer   string    `json:"answer,omitempty"`
	Tick     uint64    `json:"tick,omitempty"`
	Objects  [][]int32 `json:"objects,omitempty"`
	Sent     []string  `json:"sent,omitempty"`
	Lost     []int     `json:"lost,omitempty"`
	Ack      string    `json:"ack,omitempty"`
	AckLost  bool      `json:"ack_lost,omitempty"`
}

// downSession plays a world to a client.
type downSession struct {
	t        *testing.T
	origin   *origin
	conn     *Conn
	link     *wire
	down     *downstream
	splitter fragment.Splitter
	now      time.Time
	out      bytes.Buffer
}

// TestDownstreamSession has each byte of a downstream be what the file says: the offer, an initial state in two pieces,
// then snapshots that are lost, in part or with their acks.
func TestDownstreamSession(t *testing.T) {
	const file = "../testdata/sessions/downstreams/world.jsonl"
	s := downSession{t: t, origin: newOrigin(t), conn: quietConn(), link: &wire{}, now: time.Unix(0, 0)}
	s.down = viewOf(t, s.conn, SnapshotConfig[ball]{})
	s.reliable(append([]byte{byte(control.Offer)}, s.origin.offered()...))
	for _, part := range [][]byte{s.origin.start[:60], s.origin.start[60:]} {
		s.reliable(append([]byte{byte(control.Piece), s.origin.offer.Number}, part...))
	}
	for n := range 40 {
		s.snapshot(n)
	}
	if st := s.down.counted(); st.Fragments != 3 || st.Messages < 25 || st.Late+st.BaselineMissing+st.Desync+st.Malformed > 0 {
		t.Errorf("%+v", st)
	}
	if *updateSessions {
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

func (s *downSession) write(l *downLine) { must(s.t, json.NewEncoder(&s.out).Encode(l)) }

// up gives what the client sent since the last call.
func (s *downSession) up() string {
	b := hex.EncodeToString(s.link.last)
	s.link.last = nil
	return b
}

func (s *downSession) reliable(b []byte) {
	must(s.t, deliver(s.t, s.conn, s.link, b))
	s.write(&downLine{Reliable: hex.EncodeToString(b), Answer: s.up()})
}

// snapshot sends number n. Some have so many objects that they go in fragments.
func (s *downSession) snapshot(n int) {
	o, l := s.origin, downLine{Tick: uint64(100 + 3*n + n/20), AckLost: n%5 == 3}
	set := o.world.Begin()
	objects := 5
	if n == 9 || n == 21 {
		objects = 260
	}
	for i := range objects {
		at := schema.Vec3{X: float64(n*i) / 25, Y: float64(i * i * 7919 % 1999 / 2), Z: float64(i * 31 % 17)}
		must(s.t, o.typ.Add(set, snapshot.Object{ID: uint16(i * 3), Generation: uint8(n / 25)}, &ball{at, n/10%2 > 0}))
		l.Objects = append(l.Objects, append([]int32{int32(i * 3), int32(n / 25)}, set.Row(i)...))
	}
	o.ticks.Set(uint16(n), l.Tick)
	payload, info, err := o.enc.Append(nil, control.MaxDownMessage)
	must(s.t, err)
	message := append(o.ticks.Append(nil, uint16(n), info.Baseline), payload...)
	taken := n%7 != 4 && n != 21
	for i, b := range s.datagrams(message) {
		l.Sent = append(l.Sent, hex.EncodeToString(b))
		if !taken && i == 0 {
			l.Lost = append(l.Lost, i)
			continue
		}
		kind, body, err := control.Split(b)
		must(s.t, err)
		must(s.t, s.conn.down.datagram(kind, body, s.now))
	}
	if in := s.down.inlet.(*snapshotInlet[ball]); taken && (in.tick != l.Tick || !in.set.Equal(set)) {
		s.t.Fatalf("snapshot %d came as another one, of tick %d", n, in.tick)
	}
	if l.Ack = s.up(); l.Ack != "" && !l.AckLost {
		b, err := hex.DecodeString(l.Ack)
		must(s.t, err)
		a, _, err := snapshot.ParseAck(b[2:])
		must(s.t, err)
		must(s.t, o.enc.Ack(a))
	}
	s.write(&l)
	s.now = s.now.Add(50 * time.Millisecond)
}

// datagrams are those of a message.
func (s *downSession) datagrams(message []byte) (all [][]byte) {
	number := s.origin.offer.Number
	if len(message) < transport.MaxPayload {
		return [][]byte{append([]byte{byte(control.Down) | number}, message...)}
	}
	f, err := s.splitter.Split(message, control.MaxPart)
	must(s.t, err)
	for {
		b, more := f.Next([]byte{byte(control.DownFragment) | number})
		if !more {
			return all
		}
		all = append(all, b)
	}
}
