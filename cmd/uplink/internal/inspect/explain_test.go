package inspect

import (
	"bytes"
	"flag"
	"math"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/internal/capture"
	"github.com/uplink-rpc/uplink/internal/message"
	"github.com/uplink-rpc/uplink/internal/record"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/snapshot"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestExplainAll explains each record of some captures: of each payload all bits are accounted for,
// and of what has a place each bit once, from the first to the last.
func TestExplainAll(t *testing.T) {
	for name, c := range map[string]scenario{
		"adaptive": {frames: 60, clients: 1, link: simnet.Config{Loss: 0.2, Jitter: 20 * ms, Duplicate: 0.1}},
		"rle":      {frames: 60, clients: 1, link: simnet.Config{Loss: 0.2, Jitter: 20 * ms}, client: client.Config{Tuning: client.Tuning{Codec: rpcdelta.RLE}}},
		"bundles":  {frames: 60, clients: 1, client: client.Config{Tick: 50 * ms}, bind: client.BindConfig{Delay: uplinktest.Wait(2, 60)}},
		"reliable": {frames: 30, clients: 1, reliable: true},

		"acks in front": {frames: 60, clients: 1, client: client.Config{Tick: 30 * ms}},
	} {
		t.Run(name, func(t *testing.T) {
			data := c.data(t)
			if name == "acks in front" {
				data = ackInFront(t, data)
			}
			all, _, err := Run(bytes.NewReader(data), Options{})
			uplinktest.Must(t, err)
			if all.Check.Same == 0 || all.Check.Differ+all.Check.Broken > 0 {
				t.Errorf("%+v", all.Check)
			}
			payloads := 0
			for n := 1; n <= all.Records; n += thin(7) {
				_, e, err := Run(bytes.NewReader(data), Options{Explain: n})
				uplinktest.Must(t, err)
				if e == nil || e.Record != n || e.Title == "" {
					t.Fatalf("record %d: %+v", n, e)
				}
				payloads += checkExplained(t, e)
			}
			if payloads < 30/thin(7) {
				t.Errorf("%d payloads are explained", payloads)
			}
			if _, _, err := Run(bytes.NewReader(data), Options{Explain: all.Records + 1}); err == nil || !strings.Contains(err.Error(), "there is no record") {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestExplainOther explains the records without bits of the wire, each field by its name.
func TestExplainOther(t *testing.T) {
	for want, body := range map[string]record.Body{
		"start of file 2 of the series: started at 1970-01-01T00:00:00Z, series 00000000000000ff": &record.Start{Wall: time.Unix(0, 0).UTC(), Index: 2, Run: 255},
		"player 3 connected: in an earlier file true, session id 0000000000000004, client id 5, address 192.0.2.1:7, cipher suite gcm, 16 bytes per datagram": &record.Opened{
			Player: 3, Again: true, Session: 4, Client: 5, Addr: netip.MustParseAddrPort("192.0.2.1:7"), Suite: "gcm", AEADOverhead: 16,
		},
		"player 3 disconnected: cause closed by the server": &record.Closed{Player: 3},
		"player 3 bound RPC 1: in an earlier file false, schema 0, rate 60 Hz, codec adaptive, reliable true, client's ring 64, server's ring 32, " +
			"frames in a datagram 2, late frames delivered false, lost frames repeated for 9 frames, later frames that a frame waits for 2, prior 0000000000000000, factors of velocities [7]": &record.Bound{
			Player: 3, RPC: 1, RateHz: 60, Codec: rpcdelta.Adaptive, Reliable: true, PeerRing: 64, Ring: 32, Frames: 2, Deadline: 9, Batch: 2, PerTick: []int64{7},
		},
		"payload of player 3, RPC 1, decoded: newest frame 9, frames 2, kind delta, hash 0000000a": &record.Decoded{Player: 3, RPC: 1, Seq: 9, Frames: 2, Kind: rpcdelta.Delta, Hash: 10},
		"payload or datagram of player 3 dropped: RPC 1, reason late, by the decoder true":         &record.Dropped{Player: 3, RPC: 1, Reason: "late", Decoder: true},
		"payload or datagram of player 3 dropped: reason malformed, by the decoder false":          &record.Dropped{Player: 3, RPC: record.NoRPC, Reason: "malformed"},
		"frame 9 of player 3, RPC 1, not delivered: reason rejected":                               &record.Withheld{Player: 3, RPC: 1, Seq: 9, Reason: "rejected"},
		"8 records not written: the writer was too slow":                                           &record.Lost{Records: 8},
		"datagrams dropped so far: malformed 2, kernel 3":                                          &record.Counts{Drops: []record.Count{{Reason: "malformed", N: 2}, {Reason: "kernel", N: 3}}},
		"end of the series":                          &record.End{},
		"end of the file; the series has a next one": &record.End{More: true},
	} {
		e := new(Explained)
		e.other(body)
		got, before := e.Title, ": "
		for _, l := range e.Lines {
			got += before + l.What + " " + l.Value
			before = ", "
		}
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// ackInFront returns a copy of a capture with acks of worlds in front of payloads and bundles.
func ackInFront(t *testing.T, data []byte) []byte {
	return rewrite(t, data, func(b record.Body) record.Body {
		if d, ok := b.(*record.Datagram); ok && !d.Sent && d.Body[0] != byte(message.Bind) {
			a := snapshot.Ack{Newest: uint16(d.Number), Window: d.Number}
			d.Body = append(a.Append([]byte{byte(message.DownAck), 1}), d.Body...)
			if d.Number%3 == 0 {
				d.Body = append(a.Append([]byte{byte(message.DownAck), 2}), d.Body...)
			}
		}
		return b
	})
}

// checkExplained adds the parts of what is explained up, and says how many decoded payloads there
// are.
func checkExplained(t *testing.T, e *Explained) (decoded int) {
	t.Helper()
	var size, header, coded, fields, parts float64
	end := 0 // of what has a place, at depth 0
	check := func() {
		if coded == 0 {
			return
		}
		decoded++
		if bits := header + coded; math.Ceil(bits/8)*8 != size || size-bits > 7 || math.Abs(fields-coded) > 1e-6 || math.Abs(parts-fields) > 1e-6 {
			t.Fatalf("%v bits of header and %v of %v, fields %v, parts %v: %+v", header, coded, size, fields, parts, e)
		}
	}
	for _, l := range e.Lines {
		switch {
		case strings.HasPrefix(l.What, "payload"):
			check()
			size, header, coded, fields, parts = l.Bits, 0, 0, 0, 0
			fallthrough
		case l.Depth == 0 && l.What != "header" && l.What != "coded part":
			if l.Bit != end {
				t.Fatalf("%+v begins at bit %d, the one before ended at %d", l, l.Bit, end)
			}
			end += int(l.Bits)
		case l.What == "header":
			header = l.Bits
		case l.What == "coded part":
			coded = l.Bits
		case l.What == "number of frames", l.What == "rounding":
			fields, parts = fields+l.Bits, parts+l.Bits
		case l.Depth == 2:
			fields += l.Bits
		case l.Depth == 3:
			parts += l.Bits
		}
	}
	check()
	if len(e.body) != 0 && end != 8*len(e.body) && len(e.Lines) > 2 {
		t.Fatalf("%d bits of %d bytes are explained: %+v", end, len(e.body), e)
	}
	return decoded
}

// TestExplainText holds texts against golden files: -update writes them.
func TestExplainText(t *testing.T) {
	for name, c := range map[string]scenario{
		"adaptive": {frames: 40, clients: 1, link: simnet.Config{Loss: 0.1}},
		"rle":      {frames: 40, clients: 1, client: client.Config{Tuning: client.Tuning{Codec: rpcdelta.RLE}}},
	} {
		data := c.data(t)
		var text strings.Builder
		for _, n := range interesting(t, data) {
			_, e, err := Run(bytes.NewReader(data), Options{Explain: n})
			uplinktest.Must(t, err)
			e.Record, e.Seconds = 1, 0
			uplinktest.Must(t, e.Write(&text))
			text.WriteString("\n")
		}
		golden := filepath.Join("testdata", name+".golden")
		if *update {
			uplinktest.Must(t, os.WriteFile(golden, []byte(text.String()), 0o600))
		}
		want, err := os.ReadFile(golden)
		uplinktest.Must(t, err)
		if text.String() != string(want) {
			t.Errorf("%s: got\n%s\nwant\n%s", name, &text, want)
		}
	}
}

// interesting returns the indices of a bind request, a reset, a keyframe or a delta with a hash, a
// delta, and an ack.
func interesting(t *testing.T, data []byte) (records []int) {
	t.Helper()
	r, err := capture.NewReader(bytes.NewReader(data))
	uplinktest.Must(t, err)
	last, bind, ack := 0, 0, 0
	kinds := map[rpcdelta.FrameKind]int{}
	for {
		rec, err := r.Next()
		if err != nil {
			break
		}
		switch b := rec.Body.(type) {
		case *record.Datagram:
			if b.Body[0] == 0xc2 && bind == 0 {
				bind = rec.Number
			}
			if b.Body[0] == 0xc1 {
				ack = rec.Number
			}
			if !b.Sent {
				last = rec.Number
			}
		case *record.Decoded:
			if kinds[b.Kind] == 0 && (b.Kind != rpcdelta.Delta || b.Seq > 12) {
				kinds[b.Kind] = last
			}
		}
	}
	for _, n := range []int{bind, kinds[rpcdelta.Reset], kinds[rpcdelta.Keyframe], kinds[rpcdelta.Delta], ack} {
		if n != 0 {
			records = append(records, n)
		}
	}
	return records
}
