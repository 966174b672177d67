package rpcdelta

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	flags "flag" // a type of the tests has its name
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/uplink-rpc/uplink/rpcdelta/prior"
	"github.com/uplink-rpc/uplink/schema"
)

var updateSessions = flags.Bool("update", false, "write testdata/sessions")

const sessionDir = "../testdata/sessions"

// sessionHead is the first line of a session file, see testdata/sessions/README.md.
type sessionHead struct {
	Schema     json.RawMessage `json:"schema"`
	Codec      string          `json:"codec"`
	Redundancy int             `json:"redundancy"`
	Ring       int             `json:"ring"`
	PeerRing   int             `json:"peer_ring"`
	Late       bool            `json:"deliver_late"`
	Prior      string          `json:"prior"`
}

// sessionStep is one of the other lines.
type sessionStep struct {
	Send    []int32  `json:"send,omitempty"`
	Bytes   []string `json:"bytes,omitempty"`
	Payload *string  `json:"payload,omitempty"`
	Arrives *uint64  `json:"arrives,omitempty"`
	Frames  []uint64 `json:"frames,omitempty"`
	Dropped string   `json:"dropped,omitempty"`
	Ack     string   `json:"ack,omitempty"`
	Acked   *int     `json:"acked,omitempty"`
	Restart bool     `json:"restart,omitempty"`
}

// session is both ends of a stream.
type session struct {
	*pair
	t        *testing.T
	frames   []*schema.Frame
	payloads map[uint64][]byte
	acks     [][]byte
}

func newSession(t *testing.T, head sessionHead) *session {
	t.Helper()
	s, err := schema.Parse(head.Schema)
	must(t, err)
	codec, err := ParseCodec(head.Codec)
	must(t, err)
	p := newPair(t, s,
		EncoderConfig{Codec: codec, Redundancy: head.Redundancy, Ring: head.Ring, PeerRing: head.PeerRing},
		DecoderConfig{Ring: head.PeerRing, DeliverLate: head.Late})
	return &session{pair: p, t: t, payloads: map[uint64][]byte{}}
}

// play executes a step and returns it with its results.
func (x *session) play(s sessionStep) sessionStep {
	x.t.Helper()
	switch {
	case s.Send != nil:
		return x.send(s)
	case s.Arrives != nil:
		return x.arrive(s)
	case s.Ack != "":
		ack := x.dec.AppendAck(nil)
		x.acks = append(x.acks, ack)
		s.Ack = hex.EncodeToString(ack)
	case s.Acked != nil:
		a, _, err := ParseAck(x.acks[*s.Acked])
		must(x.t, err)
		must(x.t, x.enc.Ack(a))
	case s.Restart:
		x.restart(x.t)
	}
	return s
}

// send sends a frame, or holds it if the step has no payload.
func (x *session) send(s sessionStep) sessionStep {
	f := x.s.NewFrame()
	copy(f.Ints, s.Send)
	for i, b := range s.Bytes {
		v, err := hex.DecodeString(b)
		must(x.t, err)
		f.Bytes[i] = v
	}
	x.frames = append(x.frames, f)
	if s.Payload == nil {
		must(x.t, x.enc.Hold(f))
		return s
	}
	payload, info, err := x.enc.AppendFrame(nil, f)
	must(x.t, err)
	got := hex.EncodeToString(payload)
	if *s.Payload != "" { // deliver the payload in the file instead
		payload, err = hex.DecodeString(*s.Payload)
		must(x.t, err)
	}
	x.payloads[info.Seq] = payload
	s.Payload = &got
	return s
}

func (x *session) arrive(s sessionStep) sessionStep {
	s.Frames, s.Dropped = nil, ""
	out, err := x.dec.Decode(x.payloads[*s.Arrives])
	if err != nil {
		s.Dropped = err.Error()
	}
	for i := range out {
		s.Frames = append(s.Frames, out[i].Seq)
		if !out[i].Frame.Equal(x.frames[out[i].Seq]) {
			x.t.Errorf("frame %d is %v, want %v", out[i].Seq, out[i].Frame, x.frames[out[i].Seq])
		}
	}
	return s
}

// TestSessions plays the recorded sessions and verifies that both ends produce the recorded bytes.
func TestSessions(t *testing.T) {
	if *updateSessions {
		writeSessions(t)
	}
	paths, err := filepath.Glob(sessionDir + "/*.jsonl")
	if err != nil || len(paths) < 5 {
		t.Fatalf("%d sessions, %v", len(paths), err)
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) { playSession(t, path) })
	}
}

func playSession(t *testing.T, path string) {
	data, err := os.ReadFile(path)
	must(t, err)
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, 1<<20)
	lines.Scan()
	var head sessionHead
	must(t, json.Unmarshal(lines.Bytes(), &head))
	if want := prior.Name(prior.Generic().Hash()); head.Prior != want {
		t.Fatalf("it was recorded with prior %s, the built-in one is %s: record it again with -update", head.Prior, want)
	}
	x := newSession(t, head)
	delivered := 0
	for n := 2; lines.Scan(); n++ {
		var s sessionStep
		if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
			t.Fatalf("line %d: %v", n, err)
		}
		got := x.play(s)
		again, err := json.Marshal(got)
		must(t, err)
		if !bytes.Equal(again, lines.Bytes()) {
			t.Fatalf("line %d is\n%s\nwant\n%s", n, again, lines.Bytes())
		}
		delivered += len(got.Frames)
	}
	if delivered < 150 {
		t.Errorf("%d frames were delivered", delivered)
	}
}

// sessionPlan describes how a session is recorded.
type sessionPlan struct {
	name       string
	codec      Codec
	redundancy int
	rings      [2]int
	loss       float64
	again      float64 // chance that a loss is followed by another one
	jitter     int     // frames
	late       bool
	every      int // frames a payload
	restartAt  int
}

func writeSessions(t *testing.T) {
	for i, p := range []sessionPlan{
		{name: "rle", codec: RLE, rings: [2]int{64, 64}, loss: 0.1, again: 0.1},
		{name: "adaptive", codec: Adaptive, redundancy: RedundancyOff, rings: [2]int{64, 64}, loss: 0.1, again: 0.3},
		{name: "adaptive_auto", codec: Adaptive, redundancy: RedundancyAuto, rings: [2]int{64, 32}, loss: 0.2, again: 0.5},
		{name: "adaptive_late", codec: Adaptive, redundancy: 2, rings: [2]int{64, 64}, loss: 0.05, again: 0.05, jitter: 12, late: true},
		{name: "adaptive_pairs", codec: Adaptive, redundancy: 1, rings: [2]int{256, 256}, loss: 0.1, again: 0.1, every: 2},
		{name: "adaptive_restart", codec: Adaptive, redundancy: RedundancyOff, rings: [2]int{16, 64}, loss: 0.05, again: 0.5, restartAt: 120},
	} {
		p.write(t, uint64(i))
	}
}

func (p *sessionPlan) write(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 77))
	c := mustCompile[ServerMove](t)
	file, err := c.Schema().AppendJSON(nil)
	must(t, err)
	head := sessionHead{
		Schema: file, Codec: p.codec.String(),
		Redundancy: p.redundancy, Ring: p.rings[0], PeerRing: p.rings[1], Late: p.late, Prior: prior.Name(prior.Generic().Hash()),
	}
	var out bytes.Buffer
	line := func(v any) {
		b, err := json.Marshal(v)
		must(t, err)
		out.Write(append(b, '\n'))
	}
	line(head)
	x := newSession(t, head)
	step := func(s sessionStep) { line(x.play(s)) }
	type event struct{ at, payload, ack int }
	var way []event // in flight
	lost := func(last *bool) bool {
		chance := p.loss
		if *last {
			chance = p.again
		}
		*last = rng.Float64() < chance
		return *last
	}
	var lostUp, lostDown bool
	var m ServerMove
	f := c.Schema().NewFrame()
	for i := range 240 {
		m.walk(rng)
		if rng.IntN(80) == 0 {
			m.Location.X += 5000
		}
		must(t, c.Quantize(f, &m))
		s := sessionStep{Send: slices.Clone(f.Ints), Bytes: []string{hex.EncodeToString(f.Bytes[0])}}
		if p.every < 2 || i%p.every == p.every-1 {
			s.Payload = new(string)
			if !lost(&lostUp) {
				way = append(way, event{at: i + 3 + rng.IntN(p.jitter+1), payload: i, ack: -1})
			}
		}
		step(s)
		if i == p.restartAt && i > 0 {
			step(sessionStep{Restart: true})
		}
		var rest []event
		for _, e := range way {
			switch n := uint64(e.payload); {
			case e.at > i:
				rest = append(rest, e)
			case e.ack >= 0:
				step(sessionStep{Acked: &e.ack})
			default:
				step(sessionStep{Arrives: &n})
			}
		}
		way = rest
		if i%6 == 5 && x.dec.AckDue() {
			step(sessionStep{Ack: "?"})
			if !lost(&lostDown) {
				way = append(way, event{at: i + 3, ack: len(x.acks) - 1})
			}
		}
	}
	must(t, os.MkdirAll(sessionDir, 0o755))
	must(t, os.WriteFile(filepath.Join(sessionDir, fmt.Sprintf("%s.jsonl", p.name)), out.Bytes(), 0o644))
}
