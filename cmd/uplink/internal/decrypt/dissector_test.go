package decrypt

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/uplink-rpc/uplink/cmd/uplink/internal/pcap"
	"github.com/uplink-rpc/uplink/cmd/uplink/internal/pcap/pcaptest"
	"github.com/uplink-rpc/uplink/internal/keylog"
	"github.com/uplink-rpc/uplink/internal/message"
	"github.com/uplink-rpc/uplink/internal/replication"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/transport"
)

var (
	clientAddr = netip.MustParseAddrPort("[2001:db8::1]:41000")
	serverAddr = netip.MustParseAddrPort("[2001:db8::2]:7777")
)

// shot is a datagram: up, or down.
type shot struct {
	down bool
	b    []byte
}

func capture(shots ...shot) []byte {
	var frames []pcaptest.Frame
	for _, s := range shots {
		from, to := clientAddr, serverAddr
		if s.down {
			from, to = to, from
		}
		frames = append(frames, pcaptest.Frame{Data: pcaptest.Packet(pcap.LinuxSLL2, binary.LittleEndian, from, to, s.b)})
	}
	return pcaptest.NG(binary.LittleEndian, pcap.LinuxSLL2, frames)
}

// opened makes the record of a data datagram of session 1.
func opened(down bool, number uint64, message ...byte) shot {
	b := []byte{0xbe, 'u', 'p', 'l', 1, 1, 0, 0, 0, 0, 0, 0, 0}
	if down {
		b[0]++
	}
	b = binary.LittleEndian.AppendUint64(b, number)
	b = append(b, 0xc0|byte(number>>8&0x3f), byte(number))
	return shot{down, append(b, message...)}
}

// long is a payload with a long header and no coded part, of RPC 2.
func long(seq uint16, distance byte) []byte {
	flags, last := byte(0x80), byte(0)
	if distance != 0 {
		flags, last = flags|0x20, distance
	}
	return []byte{flags, 2, byte(seq), byte(seq >> 8), last}
}

// short is one with a short header, for distances up to 16.
func short(seq, distance int) []byte {
	v := uint32(0b0_110)<<12 | uint32(distance-1)<<7 | uint32(seq)&127
	return []byte{byte(v >> 8), byte(v)}
}

// ackOf acks a payload of RPC 2 and so many before it, in the long form, which has 16 bits of the
// sequence.
func ackOf(seq uint16, window int) []byte {
	a := rpcdelta.Ack{RPC: 2, Seq: seq, Len: window, Window: 1<<window - 1, Whole: true}
	return a.Append([]byte{0xc1})
}

// TestWiresharkWraps checks sequences that wrap around, with late acks and older baselines.
func TestWiresharkWraps(t *testing.T) {
	packets := dissect(t, capture(
		opened(false, 0, long(60000, 0)...),
		opened(true, 0, ackOf(60000, 0)...),
		opened(false, 1, long(65530, 0)...),
		opened(true, 1, ackOf(65530, 1)...),
		opened(false, 2, long(4, 10)...),
		opened(true, 2, ackOf(4, 9)...),
		opened(false, 3, short(5+65536, 1)...),
		opened(false, 4, long(64000, 0)...),
		opened(false, 5, long(10, 0)...),
		opened(false, 6, long(64000, 0)...), // too far behind to be late
		opened(true, 3, ackOf(10, 0)...),
		opened(false, 7, long(65100, 0)...),
	))
	wellFormed(t, packets)
	want := []map[string]int{
		{"uplink.frame.seq": 60000, "uplink.frame.acked_in": 2},
		{"uplink.ack.seq": 60000},
		{"uplink.frame.seq": 65530, "uplink.frame.acked_in": 4},
		{"uplink.ack.seq": 65530},
		{"uplink.frame.seq": 65540, "uplink.frame.baseline": 65530, "uplink.frame.baseline_in": 3, "uplink.frame.baseline_acked_in": 4},
		{"uplink.ack.seq": 65540},
		{"uplink.frame.seq": 65541, "uplink.frame.baseline": 65540, "uplink.frame.baseline_in": 5, "uplink.frame.acked_in": -1},
		{"uplink.frame.seq": 65536 + 64000},
		{"uplink.frame.seq": 2*65536 + 10, "uplink.frame.acked_in": 11},
		{"uplink.frame.seq": 2*65536 + 64000},
		{"uplink.ack.seq": 2*65536 + 10},
		{"uplink.frame.seq": 2*65536 + 65100},
	}
	for i, w := range want {
		compare(t, i+1, &packets[i], w)
	}
}

// TestWiresharkBegins checks a capture that starts mid-session: an ack reveals the full sequence.
func TestWiresharkBegins(t *testing.T) {
	packets := dissect(t, capture(
		opened(false, 1000, short(1000, 3)...),
		opened(false, 1001, short(1001, 4)...),
		opened(true, 500, ackOf(1000, 20)...),
		opened(false, 1002, short(1002, 2)...),
	))
	wellFormed(t, packets)
	compare(t, 1, &packets[0], map[string]int{"uplink.frame.seq": 1000, "uplink.frame.baseline": 997, "uplink.frame.acked_in": 3, "uplink.frame.baseline_in": -1})
	compare(t, 3, &packets[2], map[string]int{"uplink.ack.seq": 1000, "uplink.ack.releases": 1})
	compare(t, 4, &packets[3], map[string]int{
		"uplink.frame.seq": 1002, "uplink.frame.baseline": 1000, "uplink.frame.baseline_in": 1, "uplink.frame.baseline_acked_in": 3,
	})
}

// TestWiresharkNumbers completes the packet numbers of encrypted datagrams from 14 or 19 bits.
func TestWiresharkNumbers(t *testing.T) {
	heartbeat := func(number uint32) shot {
		return shot{false, append([]byte{byte(2<<3 | number>>16&7), byte(number), byte(number >> 8)}, make([]byte, 28)...)}
	}
	data := func(number uint32) shot {
		return shot{false, append([]byte{byte(0xc0 | number>>8&0x3f), byte(number)}, make([]byte, 20)...)}
	}
	numbers := []uint32{100_000, 100_001, 108_000, 99_999, 116_000, 500_000, 500_001, 524_288, 524_287}
	var shots []shot
	for i, n := range numbers {
		if i == 0 || n == 500_000 || n == 524_288 {
			shots = append(shots, heartbeat(n))
		} else {
			shots = append(shots, data(n))
		}
	}
	packets := dissect(t, capture(shots...))
	for i, n := range numbers {
		compare(t, i+1, &packets[i], map[string]int{"uplink.number": int(n)})
	}
}

// TestWiresharkParts dissects a body that arrives in parts, the second of which arrives first.
func TestWiresharkParts(t *testing.T) {
	body := short(30, 1)
	part := func(index int, data []byte) shot {
		record := opened(false, 0).b[:keylog.RecordHeader]
		b := append(bytes.Clone(record), 7<<3, byte(5+index), 0)
		// The second part begins with byte 1 of the body.
		return shot{false, append(binary.LittleEndian.AppendUint16(b, uint16(1<<13|index<<11|index)), data...)}
	}
	packets := dissect(t, capture(part(1, body[1:]), part(0, body[:1])))
	wellFormed(t, packets)
	for i, n := range []int{0, 1} {
		if got := len(packets[i].all("uplink.frame")); got != n {
			t.Errorf("packet %d: %d frames, want %d", i+1, got, n)
		}
		compare(t, i+1, &packets[i], map[string]int{"uplink.part.index": 1 - i, "uplink.part.last": 1})
	}
}

// TestWiresharkPreferences reads an unencrypted session from the middle, at a configured port.
func TestWiresharkPreferences(t *testing.T) {
	shots := []shot{
		{false, append([]byte{0xc0, 9}, short(30, 1)...)},
		{true, append([]byte{0xc0, 3}, ackOf(30, 2)...)},
	}
	for _, c := range []struct {
		options []string
		frames  int
		sealed  int
	}{
		{nil, 0, 2},
		{[]string{"-o", "uplink.encryption:not encrypted (suite none)"}, 1, 0},
		{[]string{"-o", "uplink.port:7778"}, 0, 0},
		{[]string{"-o", "uplink.port:7778", "-d", "udp.port==41000,uplink", "-o", "uplink.encryption:not encrypted (suite none)"}, 1, 0},
	} {
		frames, sealed := 0, 0
		packets := dissect(t, capture(shots...), c.options...)
		for i := range packets {
			frames += len(packets[i].all("uplink.frame"))
			sealed += len(packets[i].all("uplink.encrypted"))
		}
		if frames != c.frames || sealed != c.sealed {
			t.Errorf("%v: %d frames, %d sealed", c.options, frames, sealed)
		}
	}
}

// TestWiresharkMalformed checks the errors reported for malformed datagrams.
func TestWiresharkMalformed(t *testing.T) {
	record := opened(false, 0).b[:keylog.RecordHeader]
	segment := append(append(bytes.Clone(record), 1<<3, 0, 0), make([]byte, 23)...)
	heartbeat := append(bytes.Clone(record), 2<<3, 0, 0, 1, 2)
	shots := []shot{
		{false, []byte{0xbe, 'u', 'p'}},
		{false, []byte{0xc0}},
		{false, append(bytes.Clone(record), 0, 0, 0, 0x60, 0x80)}, // a report that ends
		{false, append(bytes.Clone(record), 0xbe)},
		{false, []byte{0x40, 1, 2}},
		{false, []byte{0x85}},
		{false, []byte{0x80, 3, 0, 1}},
		{true, []byte{0x82, 1, 2, 3}},
		{false, segment},
		{false, heartbeat},
		opened(false, 0),
		opened(false, 0, 0x01),
		opened(false, 0, 0b0_100_111_1),          // RPC 11 is the mark of a hash
		opened(false, 0, 0b0_100_111_0, 0, 0),    // whose end is missing
		opened(false, 0, 0x80, 1, 2, 3),          // a long header that is short
		opened(false, 0, 0x81, 1, 2, 3, 4),       // with bits that are none
		opened(false, 0, 0x80, 1, 2, 3, 8),       // epoch 8
		opened(false, 0, 0xa0, 1, 2, 3, 0),       // a baseline of its own
		opened(false, 0, 0x90, 1, 2, 3, 0, 0, 0), // a hash of no baseline
		opened(false, 0, 0xe0, 5, 1, 2),          // a bundle that ends
		opened(false, 0, 0xe0, 0x80, 0x80, 0x80), // in a length
		opened(false, 0, 0xe0, 1, 0xc1, 1, 2),    // with acks
		opened(true, 0, 0xc1),                    // no ack
		opened(true, 0, 0xc1, 0, 0x80, 0, 0),     // a bit that is none
		opened(true, 0, 0xc1, 0, 0x13, 0, 0),     // a window that is missing
		opened(true, 0, 0xc1, 0, 3, 0, 0, 0xff),  // or too long
		opened(true, 0, 0xc1, 7, 0, 0, 0, 0),     // trouble 3
		opened(false, 0, 0xca, 3),                // an ack of a world that ends
		opened(false, 0, 0xca, 3, 0, 0, 0, 0xcf), // before no message
		opened(false, 0, 0xc2, 0x93, 1, 2),       // an array that ends
		opened(false, 0, 0xc2, 0x9a, 0x91, 0x91), // arrays in arrays
		opened(true, 0, 0xc3, 0xdc, 0xff, 0xff),  // a large one
		opened(true, 0, 0xcf),                    // no such message
		opened(true, 0, 0xc0, 3, 0x80),           // a tick that ends
		opened(true, 0, 0xc0, 3, 0, 1, 0, 0, 0),  // a hash that is missing
	}
	packets := dissect(t, capture(shots...))
	for i := range packets {
		if packets[i].all("uplink.malformed") == nil {
			t.Errorf("nothing is wrong with %x", shots[i].b)
		}
	}
}

// TestWiresharkRefusal shows the rate that a refused binding must have.
func TestWiresharkRefusal(t *testing.T) {
	answer := message.BindAnswer{RPC: 1, Reason: message.ReasonFixedRate, LimitHz: 60}
	b, err := answer.Append(nil)
	uplinktest.Must(t, err)
	p := &dissect(t, capture(opened(true, 0, b...)))[0]
	if reason, limit := p.text("uplink.bind.reason"), p.text("uplink.bind.limit"); p.all("uplink.malformed") != nil || reason != "7" || limit != "60" {
		t.Errorf("reason %q, limit %q", reason, limit)
	}
}

// TestWiresharkExplained shows why a client refuses a world, and in what the ends differ.
func TestWiresharkExplained(t *testing.T) {
	refused := message.BindAnswer{Reason: message.ReasonSchema, Theirs: "the field Position"}
	differ := message.BindAnswer{Asking: []string{"Height", "goals/"}, Answering: []string{"Depth"}}
	var shots []shot
	for _, why := range []*message.BindAnswer{&refused, &differ} {
		b, err := replication.AppendExplained(nil, 2, replication.Ready, why)
		uplinktest.Must(t, err)
		shots = append(shots, opened(true, 0, b...))
	}
	packets := dissect(t, capture(append(shots, opened(true, 0, replication.AppendReply(nil, 2, replication.Ready)...))...))
	for i := range packets {
		if packets[i].all("uplink.malformed") != nil {
			t.Errorf("packet %d is malformed", i)
		}
	}
	if reason, text := packets[0].text("uplink.bind.reason"), packets[0].text("uplink.bind.theirs"); reason != "2" || text != refused.Theirs {
		t.Errorf("reason %q, %q", reason, text)
	}
	var got []string
	for _, n := range append(packets[1].all("uplink.bind.asking"), packets[1].all("uplink.bind.answering")...) {
		got = append(got, n.Show)
	}
	if !slices.Equal(got, []string{"Height", "goals/", "Depth"}) {
		t.Errorf("differences are %q", got)
	}
}

// TestWiresharkHandover shows from which tick a handover counts, and the size of its data.
func TestWiresharkHandover(t *testing.T) {
	h := message.HandoverNotice{Stream: 3, Tick: 1 << 40, Size: 70, Hash: [32]byte{7}}
	p := &dissect(t, capture(opened(true, 0, message.AppendHandover(nil, &h)...)))[0]
	got := []string{p.text("uplink.handover.stream"), p.text("uplink.handover.tick"), p.text("uplink.handover.size"), p.text("uplink.handover.servers")}
	if want := []string{"3", "1099511627776", "70", "0"}; p.all("uplink.malformed") != nil || !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestWiresharkRelease shows the messages that end a handover.
func TestWiresharkRelease(t *testing.T) {
	p := &dissect(t, capture(opened(true, 0, message.AppendRelease(nil, message.Secret{7})...)))[0]
	if secret := p.text("uplink.handover.secret"); p.all("uplink.malformed") != nil || !strings.HasPrefix(secret, "07:00") {
		t.Errorf("secret %q", secret)
	}
	p = &dissect(t, capture(opened(true, 0, message.AppendSwitch(nil)...)))[0]
	if p.all("uplink.malformed") != nil || p.all("uplink.handover.secret") != nil {
		t.Error("the switch is malformed")
	}
}

// TestWiresharkHostile dissects damaged datagrams: dissect fails on an error in the script.
func TestWiresharkHostile(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	g := play(t, transport.AES128CTRHMAC8)
	file, _ := run(t, g.file, g.keys, 0)
	var shots []shot
	for i, p := range packets(t, file) {
		u := pcap.Packet{Link: pcap.Ethernet, Data: p}
		d, _ := u.UDP()
		b := bytes.Clone(d.Payload)
		switch i % 4 {
		case 0:
			b = b[:1+rng.IntN(len(b))]
		case 1:
			b[rng.IntN(len(b))] ^= 1 << rng.IntN(8)
		case 2: // behind the header
			for at := 24; at < len(b); at += 1 + rng.IntN(4) {
				b[at] = byte(rng.Uint32())
			}
		default:
			for at := range b {
				b[at] = byte(rng.Uint32())
			}
		}
		shots = append(shots, shot{d.From.Port() == 7777, b})
	}
	if packets := dissect(t, capture(shots...)); len(packets) != len(shots) {
		t.Errorf("%d packets, want %d", len(packets), len(shots))
	}
}
