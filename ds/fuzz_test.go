package ds

import (
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/internal/control"
	"github.com/uplink-rpc/uplink/rpcdelta"
)

// FuzzReceive throws messages at a player: each is counted once, for what it
// was, and another player is unharmed. A message is a byte of length, whose
// highest bit says that it comes over the reliable channel, and that many bytes.
func FuzzReceive(f *testing.F) {
	b := newBench(f, Config{}, func(*Player, Frame[testCall]) {})
	s := b.join(3)
	payload := append([]byte(nil), s.payload()...)
	request, err := b.request(4).Append(nil)
	must(f, err)
	ack := rpcdelta.Ack{RPC: 3, Seq: 1}
	f.Add(entry(payload), false)
	f.Add(append(entry(payload), entry(payload)...), true)
	f.Add(append(append(entry(request), entry(request)...), entry(payload)...), true)
	f.Add(entry(ack.Append([]byte{byte(control.Acks)})), false)
	f.Add(entry([]byte{byte(control.Bind), 0xdd, 0xff, 0xff, 0xff, 0xff}), true)
	f.Add(entry([]byte{0xb0, 3, 1, 0, 1, 0xde, 0xad}), false)
	f.Add([]byte{0x82, 1, 3}, true)
	bundle := control.NewBundler(100)
	for range 3 {
		bundle.Add(payload[:min(len(payload), 30)])
	}
	f.Add(entry(bundle.Take()), false)
	must(f, s.enc.SetRedundancy(rpcdelta.MaxRedundancy))
	var chain []byte
	for range rpcdelta.MaxRedundancy {
		chain = s.payload()
	}
	f.Add(entry(chain), false)
	f.Add(entry(chain), true) // more frames than the queue holds
	f.Fuzz(func(t *testing.T, in []byte, poll bool) {
		delivered := 0
		b := newBench(t, Config{Poll: poll, QueueBytes: 1024, DeliverLate: true, Ring: 4}, func(*Player, Frame[testCall]) { delivered++ })
		hostile, honest := b.join(3), b.join(3)
		messages := uint64(0)
		for len(in) > 0 {
			n := min(int(in[0]&0x7f), len(in)-1)
			msg, reliable := in[1:1+n], in[0]&0x80 != 0
			in = in[1+n:]
			if kind, body, err := control.Split(msg); err == nil && kind == control.Bind {
				if _, err := control.ParseBindRequest(body); err == nil {
					messages-- // it is answered, not counted
				}
			}
			hostile.player.receive(msg, time.Time{}, reliable)
			messages++
			if kind, body, err := control.Split(msg); err == nil && kind == control.Bundle && !reliable {
				messages += inBundle(body) - 1
			}
		}
		acks := hostile.player.appendAcks(nil)
		for rest := acks; len(rest) > 0; {
			if _, rest, err = rpcdelta.ParseAck(rest); err != nil {
				t.Fatalf("acks %x: %v", acks, err)
			}
		}
		b.srv.Poll()
		st := b.srv.Stats()
		counted := sum(st.Drops)
		frames := uint64(0)
		for _, r := range st.RPCs {
			counted += sum(r.Drops) + r.Messages
			if !r.Reliable { // a payload is counted, and so is each of its frames that is withheld
				counted -= r.Drops[QueueFull] + r.Drops[Limited]
			}
			frames += r.Frames()
		}
		if counted != messages || uint64(delivered) != frames {
			t.Fatalf("%d messages, %d counted, %d of %d frames delivered: %+v", messages, counted, delivered, frames, st)
		}
		if n := hostile.player.bound(); n > leastBindings {
			t.Fatalf("%d bindings", n)
		}
		honest.call()
		honest.call()
		b.srv.Poll()
		if delivered != int(frames)+2 {
			t.Fatalf("the honest player's frames did not come")
		}
	})
}

// inBundle is how many messages a bundle counts for: its frames, up to and with the
// first that cannot be read.
func inBundle(b []byte) (n uint64) {
	for f := control.ParseBundle(b); f.Left() > 0; n++ {
		if _, _, err := f.Next(); err != nil {
			return n + 1
		}
	}
	return n
}

func entry(b []byte) []byte { return append([]byte{byte(len(b))}, b...) }

func sum(counts [drops]uint64) (n uint64) {
	for _, c := range counts {
		n += c
	}
	return n
}
