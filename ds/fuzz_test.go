package ds

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/internal/message"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/uplinktest/corpus"
	"github.com/uplink-rpc/uplink/internal/uplinktest/entries"
	"github.com/uplink-rpc/uplink/transport"
)

// FuzzReceive passes messages to a player. Each is counted once, and another player is not
// affected. Calls are polled if the input has an odd size.
func FuzzReceive(f *testing.F) {
	var seeds [][]byte
	add := func(in []byte) { seeds = append(seeds, in, append(bytes.Clone(in), 1)) }
	b := newBench(f, Config{}, func(*Player, Frame[testCall]) {})
	s := b.join(3)
	payload := append([]byte(nil), s.payload()...)
	request, err := b.request(4).Append(nil)
	must(f, err)
	ack := rpcdelta.Ack{RPC: 3, Seq: 1}
	add(entries.Of(payload, false))
	add(append(entries.Of(payload, false), entries.Of(payload, false)...))
	add(append(append(entries.Of(request, false), entries.Of(request, false)...), entries.Of(payload, false)...))
	add(entries.Of(ack.Append([]byte{byte(message.Acks)}), false))
	add(entries.Of([]byte{byte(message.Bind), 0xdd, 0xff, 0xff, 0xff, 0xff}, false))
	add(entries.Of([]byte{0xb0, 3, 1, 0, 1, 0xde, 0xad}, false))
	add([]byte{0x82, 1, 3})
	bound, err := (&message.BindAnswer{Ring: 64}).Append(nil)
	must(f, err)
	for _, b := range [][]byte{
		{},
		bound, // to a server
		message.AppendMessage(nil, []byte("on the other channel")),
		{byte(message.Bind), 0xdf, 0xff, 0xff, 0xff, 0xff},                         // a map
		{byte(message.Bind), 0x98, 0x00, 0xdb, 0xff, 0xff, 0xff, 0xff},             // a string
		{byte(message.Bind), 0x98, 0x00, 0xa0, 0x00, 0xdd, 0x7f, 0xff, 0xff, 0xff}, // the fields
		append([]byte{byte(message.Bind)}, strings.Repeat("\x91", 100)...),         // deep
		request[:len(request)-1],
		{0x13},
		{byte(message.Bundle)},
		{byte(message.Bundle), 200, 2, 3},
		{byte(message.Bundle), 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1},
	} {
		add(entries.Of(b, false))
	}
	bundle := message.NewBundler(100)
	for range 3 {
		bundle.Add(payload[:min(len(payload), 30)])
	}
	bundled := bundle.Take()
	add(entries.Of(bundled, false))
	down := []byte{byte(message.DownAck), 1, 0, 1, 2, byte(message.DownAck), 2, 0x80, 0x4c, 0, 0x45} // two acks
	add(entries.Of(append(bytes.Clone(down), payload...), false))
	add(entries.Of(append(bytes.Clone(down), bundled...), false))
	add(append(entries.Of(down, false), entries.Of(down[:len(down)-1], false)...))
	must(f, s.enc.SetRedundancy(rpcdelta.MaxRedundancy))
	var chain []byte
	for range rpcdelta.MaxRedundancy {
		chain = s.payload()
	}
	add(entries.Of(chain, false)) // more frames than the queue holds
	x := corpus.Target{Parser: "message", Seeds: seeds, Inputs: 2_000, Check: func(t testing.TB, in []byte) {
		poll := len(in)%2 == 1
		delivered := 0
		b := newBench(t, Config{Poll: poll, Limits: Limits{QueueBytes: 1024}, Tuning: Tuning{DeliverLate: true, Ring: 4}}, func(*Player, Frame[testCall]) { delivered++ })
		hostile, honest := b.join(3), b.join(3)
		messages := uint64(0)
		var requests [][]byte // they come later: those that are answered are not counted
		for msg, reliable := range entries.All(in) {
			if kind, _, err := message.Split(msg); err == nil && kind == message.Request && reliable {
				requests = append(requests, bytes.Clone(msg))
				continue
			}
			hostile.player.receive(msg, time.Time{}, reliable)
			messages++
			for !reliable && len(msg) > 0 && msg[0] == byte(message.DownAck) { // each is of no stream
				if _, msg = message.CutDownAck(msg[1:]); len(msg) > 0 {
					messages++
				}
			}
			if kind, body, err := message.Split(msg); err == nil && kind == message.Bind {
				if _, err := message.ParseBindRequest(body); err == nil {
					messages-- // it is answered, not counted
				}
			}
			if kind, body, err := message.Split(msg); err == nil && kind == message.Bundle && !reliable {
				messages += inBundle(body) - 1
			}
		}
		acks := hostile.player.bindings.appendAcks(nil, transport.MaxPayload, time.Time{})[1:]
		for rest := acks; len(rest) > 0; {
			if _, rest, err = rpcdelta.ParseAck(rest); err != nil {
				t.Fatalf("acks %x: %v", acks, err)
			}
		}
		b.srv.Poll()
		st := b.stats()
		counted := sum(st.Drops)
		frames := uint64(0)
		for _, r := range st.RPCs {
			counted += sum(r.Drops) + r.Messages
			if !r.Reliable { // a payload is counted, and so is each of its frames that is withheld
				counted -= r.Drops[QueueFull] + r.Drops[RateLimited]
			}
			frames += r.Frames()
		}
		if counted != messages || uint64(delivered) != frames {
			t.Fatalf("%d messages, %d counted, %d of %d frames delivered: %+v", messages, counted, delivered, frames, st)
		}
		if bound := slices.DeleteFunc(slices.Clone(hostile.player.bindings.all), func(b *binding) bool { return b == nil }); len(bound) > 1 {
			t.Fatalf("%d bindings", len(bound))
		}
		for _, msg := range requests {
			hostile.player.receive(msg, time.Time{}, true)
		}
		honest.call()
		honest.call()
		b.srv.Poll()
		if delivered != int(frames)+2 {
			t.Fatalf("the honest player's frames did not come")
		}
	}}
	x.Run(f)
}

// inBundle returns the number of messages that a bundle counts for: its payloads, up to and
// including the first malformed one.
func inBundle(b []byte) (n uint64) {
	for f := message.ParseBundle(b); f.Left() > 0; n++ {
		if _, _, err := f.Next(); err != nil {
			return n + 1
		}
	}
	return n
}

func sum(counts [drops]uint64) (n uint64) {
	for _, c := range counts {
		n += c
	}
	return n
}
