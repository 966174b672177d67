package rpcdelta

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/uplink-rpc/uplink/internal/rpcdelta/prior"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/schematest"
	"github.com/uplink-rpc/uplink/internal/uplinktest/vectors"
)

const sessionDir = "../../testdata/sessions"

// sessionHead is the first line of a session file, see testdata/sessions/README.md.
type sessionHead struct {
	Schema     json.RawMessage `json:"schema"`
	Codec      string          `json:"codec"`
	RPC        int             `json:"rpc,omitempty"`
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
	Ask     bool     `json:"ask,omitempty"`
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
		EncoderConfig{Codec: codec, RPC: head.RPC, Redundancy: head.Redundancy, Ring: head.Ring, PeerRing: head.PeerRing},
		DecoderConfig{RPC: head.RPC, Ring: head.PeerRing, DeliverLate: head.Late})
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
	case s.Ask:
		x.dec.AskReset()
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
	if vectors.Update() {
		writeSessions(t)
	}
	paths, _ := filepath.Glob(sessionDir + "/*.jsonl")
	if len(paths) < 5 {
		t.Fatalf("%d sessions", len(paths))
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
	if want := prior.Generic().String(); head.Prior != want {
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
	name string
	head sessionHead
	link linkConfig
	// every is the number of frames a payload. If restartAt is not 0, the decoder restarts then.
	every, restartAt int
	askAt            int  // frame at which the decoder asks for a reset, or 0
	kinds            bool // random frames of kindsSchema instead of ServerMove
}

// kindsSchema has every kind of field.
const kindsSchema = `{"rpc":"Kinds","rate_hz":60,"fields":[` +
	`{"name":"Aim","kind":"quat","velocity":"Spin"},{"name":"Spin","kind":"vec3","resolution":0.01},` + kindsFields + `]}`

func writeSessions(t *testing.T) {
	must(t, os.MkdirAll(sessionDir, 0o755))
	for i, p := range []sessionPlan{
		{"rle", sessionHead{Codec: "rle", Ring: 64, PeerRing: 64}, linkConfig{Loss: 0.1}, 1, 0, 0, false},
		{
			"adaptive",
			sessionHead{Codec: "adaptive", Redundancy: RedundancyOff, Ring: 64, PeerRing: 64},
			linkConfig{Loss: 0.1, Burst: 1.5},
			1, 0, 0, false,
		},
		{"adaptive_auto", sessionHead{Codec: "adaptive", Ring: 64, PeerRing: 32}, linkConfig{Loss: 0.2, Burst: 2}, 1, 0, 0, false},
		{
			"adaptive_late",
			sessionHead{Codec: "adaptive", Redundancy: 2, Ring: 64, PeerRing: 64, Late: true},
			linkConfig{Loss: 0.05, Jitter: 12},
			1, 0, 0, false,
		},
		{
			"adaptive_pairs",
			sessionHead{Codec: "adaptive", Redundancy: 1, Ring: 256, PeerRing: 256},
			linkConfig{Loss: 0.1},
			2, 0, 0, false,
		},
		{
			"adaptive_restart",
			sessionHead{Codec: "adaptive", Redundancy: RedundancyOff, Ring: 16, PeerRing: 64},
			linkConfig{Loss: 0.05, Burst: 2},
			1, 120, 0, false,
		},
		{"rle_kinds", sessionHead{Codec: "rle", RPC: 2, Ring: 64, PeerRing: 64}, linkConfig{Loss: 0.1}, 1, 0, 100, true},
		{
			"adaptive_kinds",
			sessionHead{Codec: "adaptive", RPC: 7, Redundancy: 1, Ring: 64, PeerRing: 64},
			linkConfig{Loss: 0.1, Burst: 2},
			1, 0, 90, true,
		},
		{
			"adaptive_far",
			sessionHead{Codec: "adaptive", RPC: 200, Redundancy: RedundancyOff, Ring: 256, PeerRing: 128},
			linkConfig{Loss: 0.3, Burst: 12},
			1, 0, 150, true,
		},
	} {
		must(t, os.WriteFile(filepath.Join(sessionDir, p.name+".jsonl"), p.record(t, uint64(i)), 0o644))
	}
}

// record plays a session and returns its file.
func (p *sessionPlan) record(t *testing.T, seed uint64) []byte {
	rng := rand.New(rand.NewPCG(seed, 77))
	c := mustCompile[ServerMove](t)
	var err error
	p.head.Schema = json.RawMessage(kindsSchema)
	if !p.kinds {
		p.head.Schema, err = c.Schema().AppendJSON(nil)
		must(t, err)
	}
	p.head.Prior = prior.Generic().String()
	var out bytes.Buffer
	lines := json.NewEncoder(&out)
	must(t, lines.Encode(p.head))
	x := newSession(t, p.head)
	step := func(s sessionStep) { must(t, lines.Encode(x.play(s))) }
	p.link.Delay = 3
	up, down := newLink(p.link, seed, 2), newLink(linkConfig{Delay: 3, Loss: p.link.Loss, Burst: p.link.Burst}, seed, 3)
	var names []uint64 // of the payloads
	var m ServerMove
	for i := range 240 {
		switch pick := schematest.FromRand(rng); {
		case p.kinds && i%8 == 0:
			pick.Frame(x.s, x.frame, x.frame)
		case p.kinds:
			pick.Walk(x.s, x.frame)
		default:
			m.walk(rng)
			if rng.IntN(80) == 0 {
				m.Location.X += 5000
			}
			must(t, c.Quantize(x.frame, &m))
		}
		s := sessionStep{Send: slices.Clone(x.frame.Ints), Bytes: texts(x.frame.Bytes)}
		if i%p.every == p.every-1 {
			s.Payload = new(string)
			names = append(names, uint64(i))
			up.send(i, nil)
		}
		step(s)
		if i == p.restartAt && i > 0 {
			step(sessionStep{Restart: true})
		}
		if i == p.askAt && i > 0 {
			step(sessionStep{Ask: true})
		}
		for _, arrived := range up.receive(i) {
			step(sessionStep{Arrives: &names[arrived.number]})
		}
		for _, arrived := range down.receive(i) {
			step(sessionStep{Acked: new(int(arrived.number))})
		}
		if i%6 == 5 && x.dec.AckDue() {
			step(sessionStep{Ack: "?"})
			down.send(i, nil)
		}
	}
	return out.Bytes()
}
