package decrypt

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"math/bits"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/cmd/uplink/internal/pcap"
	"github.com/uplink-rpc/uplink/cmd/uplink/internal/pcap/pcaptest"
	"github.com/uplink-rpc/uplink/internal/endpoint"
	"github.com/uplink-rpc/uplink/internal/keylog"
	"github.com/uplink-rpc/uplink/internal/message"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/snapshot"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/internal/uplinktest/ignore"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// numbers are the RPC numbers of a pair: for headers and acks of each length.
var numbers = []uint8{0, 3, 9, 40}

// pair is encoders and decoders with only the transport in between, and all that they said.
type pair struct {
	ignore.Handler
	t      *testing.T
	schema *schema.Schema

	mu    sync.Mutex
	enc   map[uint8]*rpcdelta.Encoder
	dec   map[uint8]*rpcdelta.Decoder
	back  *endpoint.Conn // the server's end
	said  []said
	acked []rpcdelta.Ack
}

// said is a payload as its encoder described it.
type said struct {
	rpc uint8
	rpcdelta.Info
}

func newPair(t *testing.T, s *schema.Schema) *pair {
	p := &pair{t: t, schema: s, enc: map[uint8]*rpcdelta.Encoder{}, dec: map[uint8]*rpcdelta.Decoder{}}
	for i, rpc := range numbers {
		enc, err := rpcdelta.NewEncoder(s, rpcdelta.EncoderConfig{RPC: int(rpc), Codec: codecOf(i)})
		uplinktest.Must(t, err)
		p.enc[rpc] = enc
		p.restart(rpc)
	}
	return p
}

// codecOf returns the codec of RPC i; the RPCs use all codecs in turn.
func codecOf(i int) rpcdelta.Codec { return rpcdelta.Codecs()[i%len(rpcdelta.Codecs())] }

// restart resets a decoder, as if it had lost its state: it asks for a reset.
func (p *pair) restart(rpc uint8) {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, n := range numbers {
		if n == rpc {
			dec, err := rpcdelta.NewDecoder(p.schema, rpcdelta.DecoderConfig{RPC: int(rpc), Codec: codecOf(i)})
			uplinktest.Must(p.t, err)
			p.dec[rpc] = dec
		}
	}
}

// Datagram processes acks at the client and payloads at the server.
func (p *pair) Datagram(c *endpoint.Conn, b []byte, _ time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if b[0] != 0xc1 {
		p.back = c
		b = message.SkipDownAcks(b)
		n, err := rpcdelta.PeekRPC(b)
		if err != nil {
			p.t.Error(err)
			return
		}
		_, _ = p.dec[uint8(n)].Decode(b) // its acks tell what came of it
		return
	}
	for b = b[1:]; len(b) > 0; {
		a, rest, err := rpcdelta.ParseAck(b)
		if err != nil {
			p.t.Error(err)
			return
		}
		_ = p.enc[a.RPC].Ack(a) // an ack of a decoder that was reset may be refused
		b = rest
	}
}

// send sends the frame by each RPC, at times after acks of worlds.
func (p *pair) send(c *endpoint.Conn, f *schema.Frame) {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, rpc := range numbers {
		var b []byte
		for n := range uint8(len(p.said) % 3) {
			a := snapshot.Ack{Newest: uint16(len(p.said)), Window: 0b1011 << n}
			b = a.Append(append(b, byte(message.DownAck), n))
		}
		b, info, err := p.enc[rpc].AppendFrame(b, f)
		uplinktest.Must(p.t, err)
		p.said = append(p.said, said{rpc, info})
		uplinktest.Must(p.t, c.Send(b))
	}
}

func (p *pair) ack() {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.back == nil {
		return
	}
	b := []byte{0xc1}
	for _, rpc := range numbers {
		from := len(b)
		b = p.dec[rpc].AppendAck(b)
		a, _, err := rpcdelta.ParseAck(b[from:])
		uplinktest.Must(p.t, err)
		p.acked = append(p.acked, a)
	}
	uplinktest.Must(p.t, p.back.Send(b))
}

// converse records a pair over a bad link, with an outage and a decoder that is reset.
func converse(t *testing.T) (p *pair, file []byte, keys []keylog.Session) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		typ, err := schema.Compile[uplinktest.Move]("Move", 60)
		uplinktest.Must(t, err)
		p = newPair(t, typ.Schema())
		network := uplinktest.NewNetwork(t, simnet.Config{}, simnet.Config{})
		tape := record(network)
		l, err := endpoint.Listen(uplinktest.Addr, endpoint.Config{Network: network})
		uplinktest.Must(t, err)
		served := make(chan error, 1)
		go func() { served <- l.Serve(context.Background(), p) }()
		var log bytes.Buffer
		conn, err := endpoint.Dial(t.Context(), uplinktest.Addr, endpoint.Config{Network: network, KeyLog: &log}, p)
		uplinktest.Must(t, err)
		uplinktest.Must(t, network.Set(links(9)))
		frame := typ.Schema().NewFrame()
		for i := range uint64(360) {
			switch i {
			case 150:
				uplinktest.Must(t, network.Set(simnet.Config{Loss: 1}, simnet.Config{Loss: 1}))
			case 230:
				uplinktest.Must(t, network.Set(links(10)))
			case 300:
				p.restart(numbers[2])
			}
			m := uplinktest.MoveAt(1, i)
			uplinktest.Must(t, typ.Quantize(frame, &m))
			p.send(conn, frame)
			if i%6 == 5 {
				p.ack()
			}
			time.Sleep(time.Second / 60)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		uplinktest.Must(t, conn.Close())
		uplinktest.Must(t, l.Close())
		uplinktest.Must(t, <-served)
		keys, err = keylog.Parse(&log)
		uplinktest.Must(t, err)
		file = tape.file()
	})
	return p, file, keys
}

type at struct {
	rpc uint8
	seq int
}

// TestWiresharkEncoder compares what Wireshark shows with what encoders and decoders said.
func TestWiresharkEncoder(t *testing.T) {
	p, file, keys := converse(t)
	file, c := run(t, file, keys, 0)
	if c.NoKey+c.Damaged+c.Cut+c.Other != 0 {
		t.Errorf("%+v", c)
	}
	packets := dissect(t, file)
	wellFormed(t, packets)
	carried, released, shown := map[at]int{}, map[at]int{}, map[at]*item{} // by the packet, from 1
	said, acked := p.said, p.acked
	kinds, troubles, holes := map[rpcdelta.FrameKind]int{}, 0, 0
	distances := map[int]int{} // payloads with a short header, by the length of the code of its distance
	for i := range packets {
		for _, f := range packets[i].all("uplink.frame") {
			w := said[0]
			said = said[1:]
			here, base := at{w.rpc, int(w.Seq)}, at{w.rpc, int(w.Seq) - w.BaselineAge}
			carried[here], shown[here] = i+1, f
			kinds[w.Kind]++
			want := map[string]int{
				"uplink.frame.rpc": int(w.rpc), "uplink.frame.seq": int(w.Seq), "uplink.frame.has_baseline": 0,
				"uplink.frame.size": (w.HeaderBits + w.PayloadBits) / 8, "uplink.frame.first_in": -1,
				"uplink.frame.baseline": -1, "uplink.frame.distance": -1, "uplink.frame.baseline_in": -1, "uplink.frame.baseline_acked_in": -1,
			}
			if w.Kind == rpcdelta.Delta {
				want["uplink.frame.has_baseline"] = 1
				want["uplink.frame.baseline"], want["uplink.frame.distance"] = base.seq, w.BaselineAge
				want["uplink.frame.baseline_in"] = carried[base]
				want["uplink.frame.baseline_acked_in"] = cmp.Or(released[base], -1)
				if f.number(t, "uplink.frame.header") == 0 {
					distances[bits.Len(uint(max(w.BaselineAge-1, 8)))]++
				}
			}
			compare(t, i+1, f, want)
		}
		for _, a := range packets[i].all("uplink.ack") {
			w := acked[0]
			acked = acked[1:]
			bits := ackBits(&w)
			want := map[string]int{
				"uplink.ack.rpc": int(w.RPC), "uplink.ack.epoch": int(w.Epoch), "uplink.ack.reset_reason": slices.Index([]error{nil, rpcdelta.ErrBaselineMissing, rpcdelta.ErrDesync}, w.ResetReason),
				"uplink.ack.none": digit(w.None), "uplink.ack.whole": digit(w.Whole), "uplink.ack.len": w.Len,
				"uplink.ack.seq": int(w.Seq),
			}
			if w.None {
				want["uplink.ack.seq"] = -1
			}
			compare(t, i+1, a, want)
			if got := a.text("uplink.ack.bits"); got != bits {
				t.Errorf("packet %d has bits %s, want %s", i+1, got, bits)
			}
			if w.ResetReason != nil {
				troubles++
			}
			if strings.Contains(bits, "0") {
				holes++
			}
			if w.None {
				continue
			}
			releases := map[string]bool{}
			for j, bit := range "1" + bits {
				if n := (at{w.RPC, int(w.Seq) - j}); bit == '1' && released[n] == 0 {
					released[n] = i + 1
					releases[strconv.Itoa(carried[n])] = true
				}
			}
			for _, r := range a.all("uplink.ack.releases") {
				if !releases[r.Show] {
					t.Errorf("packet %d releases the payload in %s", i+1, r.Show)
				}
				delete(releases, r.Show)
			}
			if len(releases) != 0 {
				t.Errorf("packet %d does not release those in %v", i+1, releases)
			}
		}
	}
	for n, f := range shown {
		compare(t, carried[n], f, map[string]int{"uplink.frame.acked_in": cmp.Or(released[n], -1)})
	}
	if len(said) != 0 || len(acked) != 0 {
		t.Errorf("%d payloads and %d acks are not shown", len(said), len(acked))
	}
	if len(distances) != 3 {
		t.Errorf("short headers with distances of %v bits", distances)
	}
	if kinds[rpcdelta.Delta] < 100 || kinds[rpcdelta.Keyframe] == 0 || kinds[rpcdelta.Reset] < len(numbers) || troubles == 0 || holes == 0 {
		t.Errorf("too little happened: %v, %d acks with troubles, %d with holes", kinds, troubles, holes)
	}
}

// TestWiresharkLosses drops, duplicates and reorders packets: sequences are still found.
func TestWiresharkLosses(t *testing.T) {
	_, file, keys := converse(t)
	file, _ = run(t, file, keys, 0)
	whole, data := dissect(t, file), packets(t, file)
	rng := rand.New(rand.NewPCG(13, 14))
	var from []int
	for i := range data {
		copies := 1
		switch rng.IntN(20) {
		case 0:
			copies = 2
		case 1, 2:
			copies = 0
		}
		for range copies {
			from = append(from, i)
		}
	}
	for i := range from {
		j := min(i+rng.IntN(4), len(from)-1)
		from[i], from[j] = from[j], from[i]
	}
	var frames []pcaptest.Frame
	for _, i := range from {
		frames = append(frames, pcaptest.Frame{Data: data[i]})
	}
	shown := dissect(t, pcaptest.NG(binary.LittleEndian, pcap.Ethernet, frames))
	wellFormed(t, shown)
	again := 0
	for k, i := range from {
		for _, name := range []string{"uplink.frame.seq", "uplink.frame.baseline", "uplink.ack.seq", "uplink.number"} {
			got, want := shown[k].all(name), whole[i].all(name)
			if !reflect.DeepEqual(got, want) {
				t.Errorf("packet %d, was %d: %s is %s, want %s", k+1, i+1, name, shown[k].text(name), whole[i].text(name))
			}
		}
		again += len(shown[k].all("uplink.frame.first_in"))
	}
	if lost := len(data) - len(from); lost < 50 || again < 10 {
		t.Errorf("%d packets are lost, %d payloads there again", lost, again)
	}
}

// ackBits returns the bits of an ack's window, the newest first.
func ackBits(a *rpcdelta.Ack) string {
	bits := make([]byte, a.Len)
	for i := range bits {
		bits[i] = '0' + byte(a.Window>>i&1)
	}
	return string(bits)
}

func digit(b bool) int {
	if b {
		return 1
	}
	return 0
}
