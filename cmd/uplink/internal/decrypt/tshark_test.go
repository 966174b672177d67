package decrypt

import (
	"errors"
	"fmt"
	"testing"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/transport"
)

// sums are a capture's counts of one RPC.
type sums struct{ payloads, bytes, deltas, ages, full uint64 }

// TestWiresharkGame compares Wireshark's counts with those of client and server.
func TestWiresharkGame(t *testing.T) {
	for _, suite := range []transport.Suite{transport.AES128GCM, transport.None} {
		g := play(t, suite)
		file := g.file
		if suite != transport.None { // which can be read as it is
			file, _ = run(t, file, g.keys, 0)
		}
		packets := dissect(t, file)
		wellFormed(t, packets)
		got, acks, ackBytes, names, copies := map[string]*sums{}, uint64(0), uint64(0), map[string]string{}, 0
		for i := range packets {
			p := &packets[i]
			if p.text("uplink.message.type") == "0xc2" {
				names[p.text("uplink.bind.name")] = p.text("uplink.bind.codec") + " " + p.text("uplink.bind.rpc")
			}
			if p.text("uplink.message.type") == "0xc1" {
				acks++
				ackBytes++ // the message type
				for _, a := range p.all("uplink.ack") {
					ackBytes += uint64(4 + (a.number(t, "uplink.ack.len")+7)/8*flag(t, a, "uplink.ack.raw") + flag(t, a, "uplink.ack.long"))
				}
			}
			for _, f := range p.all("uplink.frame") {
				name := f.text("uplink.frame.name")
				s := got[name]
				if s == nil {
					s = &sums{}
					got[name] = s
				}
				if f.text("uplink.frame.first_in") != "" {
					copies++ // KCP sends a segment again
					if name != "Use" {
						t.Errorf("packet %d has a payload of %s again", i+1, name)
					}
					continue
				}
				s.payloads++
				s.bytes += uint64(f.number(t, "uplink.frame.size"))
				if flag(t, f, "uplink.frame.has_baseline") == 1 {
					s.deltas++
					s.ages += uint64(f.number(t, "uplink.frame.distance"))
				} else {
					s.full++
				}
			}
		}
		if copies == 0 {
			t.Errorf("%v: no segment was sent again", suite)
		}
		for i := range g.client.RPCs {
			rpc := &g.client.RPCs[i]
			s := got[rpc.RPC]
			if s == nil || *s != want(rpc) {
				t.Errorf("%v, %s: Wireshark shows %+v, the client counted %+v", suite, rpc.RPC, s, want(rpc))
			}
			if names[rpc.RPC] != fmt.Sprint("adaptive ", i) {
				t.Errorf("%v, %s is bound as %q", suite, rpc.RPC, names[rpc.RPC])
			}
		}
		if sent := g.server.Acks; acks != sent.Messages || ackBytes != sent.Bytes {
			t.Errorf("%v: Wireshark shows %d acks of %d bytes, the server counted %d of %d", suite, acks, ackBytes, sent.Messages, sent.Bytes)
		}
	}
}

func want(s *client.RPCStats) sums {
	return sums{s.Messages, s.Bytes, s.Delta, s.AgeSum, s.Keyframe + s.Reset}
}

// flag is a field that is true or false.
func flag(t *testing.T, n *item, name string) int {
	t.Helper()
	switch text := n.text(name); text {
	case "1", "True":
		return 1
	case "0", "False":
		return 0
	default:
		t.Fatal(errors.New(name + " is " + text))
		return 0
	}
}

// TestWiresharkSealed shows the headers of what is sealed, and what to do.
func TestWiresharkSealed(t *testing.T) {
	g := play(t, transport.AES128GCM)
	packets := dissect(t, g.file)
	wellFormed(t, packets)
	_, c := run(t, g.file, g.keys, 0)
	sealed, next := 0, map[string]int{}
	for i := range packets {
		p := &packets[i]
		if p.text("uplink.encrypted") == "" {
			continue
		}
		sealed++
		if p.all("uplink.is_encrypted") == nil || p.all("uplink.frame") != nil {
			t.Errorf("packet %d does not say that it is sealed", i+1)
		}
		// Nothing is out of order where it is recorded, so each direction counts up.
		way := p.text("uplink.direction")
		if n := p.number(t, "uplink.number"); n != next[way] {
			t.Errorf("packet %d has number %d, want %d", i+1, n, next[way])
		}
		next[way]++
		if got, want := p.text("uplink.conn"), fmt.Sprintf("0x%016x", g.keys[0].ID); got != want {
			t.Errorf("packet %d is of session %s, want %s", i+1, got, want)
		}
	}
	if sealed != c.Opened || len(next) != 2 {
		t.Errorf("%d are sealed, want %d", sealed, c.Opened)
	}
}
