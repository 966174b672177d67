package pcap_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/cmd/uplink/internal/pcap"
	"github.com/uplink-rpc/uplink/cmd/uplink/internal/pcap/pcaptest"
)

// order is both halves of a byte order.
type order interface {
	binary.ByteOrder
	binary.AppendByteOrder
}

var (
	orders  = []order{binary.LittleEndian, binary.BigEndian}
	formats = map[string]func(binary.AppendByteOrder, pcap.LinkType, []pcaptest.Frame) []byte{
		"pcap": pcaptest.Classic, "pcapng": pcaptest.NG,
	}
	links = []pcap.LinkType{
		pcap.Null, pcap.Ethernet, pcap.Raw, pcap.Loop, pcap.LinuxSLL, pcap.IPv4, pcap.IPv6, pcap.LinuxSLL2,
	}
	addrs = [][2]netip.AddrPort{
		{netip.MustParseAddrPort("192.0.2.1:4000"), netip.MustParseAddrPort("203.0.113.9:7777")},
		{netip.MustParseAddrPort("[2001:db8::1]:4000"), netip.MustParseAddrPort("[2001:db8:1::2]:7777")},
	}
)

// each runs f for each format, byte order, link type and version of IP.
func each(f func(name string, o order, link pcap.LinkType, a [2]netip.AddrPort)) {
	for name := range formats {
		for _, o := range orders {
			for _, link := range links {
				for i, a := range addrs {
					if link == pcap.IPv4 && i == 1 || link == pcap.IPv6 && i == 0 {
						continue
					}
					f(name, o, link, a)
				}
			}
		}
	}
}

// frames are packets of datagrams of growing length.
func frames(link pcap.LinkType, o order, a [2]netip.AddrPort, n int) (out []pcaptest.Frame) {
	at := time.Unix(1_700_000_000, 0)
	for i := range n {
		payload := bytes.Repeat([]byte{byte(i + 1)}, 1+7*i)
		out = append(out, pcaptest.Frame{At: at.Add(time.Duration(i) * time.Millisecond), Data: pcaptest.Packet(link, o, a[i%2], a[1-i%2], payload)})
	}
	return out
}

// TestReplace changes every payload, and expects the file that would have been recorded.
func TestReplace(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	each(func(name string, o order, link pcap.LinkType, a [2]netip.AddrPort) {
		was := frames(link, o, a, 9)
		want := slices.Clone(was)
		payloads := map[int][]byte{}
		for i := range was {
			if i%3 == 0 {
				continue // stays
			}
			payload := make([]byte, rng.IntN(7*i+1+20))
			for j := range payload {
				payload[j] = byte(rng.Uint32())
			}
			payloads[i] = payload
			want[i].Data = pcaptest.Packet(link, o, a[i%2], a[1-i%2], payload)
		}
		var out bytes.Buffer
		_, err := pcap.Rewrite(&out, bytes.NewReader(formats[name](o, link, was)), func(p *pcap.Packet) []byte {
			i := p.Number - 1
			d, ok := p.UDP()
			if !ok || d.From != a[i%2] || d.To != a[1-i%2] || d.Cut || !bytes.Equal(d.Payload, bytes.Repeat([]byte{byte(i + 1)}, 1+7*i)) {
				t.Fatalf("%s, %v, link %d: packet %d: %+v", name, o, link, p.Number, d)
			}
			payload, ok := payloads[i]
			if !ok {
				return nil
			}
			b, ok := d.Replace(nil, payload)
			if !ok {
				t.Fatal("not replaced")
			}
			return b
		})
		if err != nil || !bytes.Equal(out.Bytes(), formats[name](o, link, want)) {
			t.Errorf("%s, %v, link %d, %v: not what would have been recorded (%v)", name, o, link, a[0], err)
		}
	})
}

// TestCutFile cuts a file at every byte: the error says where the last whole record ends.
func TestCutFile(t *testing.T) {
	for name, format := range formats {
		all := frames(pcap.Ethernet, binary.LittleEndian, addrs[0], 4)
		file := format(binary.LittleEndian, pcap.Ethernet, all)
		ends := []int{0} // of what can be copied
		last := map[string]int{"pcap": 24, "pcapng": len(format(binary.LittleEndian, pcap.Ethernet, nil))}[name]
		for i := range all {
			ends = append(ends, len(format(binary.LittleEndian, pcap.Ethernet, all[:i])))
		}
		for size := range len(file) {
			var out bytes.Buffer
			n, err := pcap.Rewrite(&out, bytes.NewReader(file[:size]), func(*pcap.Packet) []byte { return nil })
			var at *pcap.Error
			if size < 4 { // without the mark of a format
				if !errors.Is(err, pcap.ErrFormat) || out.Len() != 0 {
					t.Fatalf("%s cut to %d bytes: %d bytes, %v", name, size, out.Len(), err)
				}
				continue
			}
			if err != nil && (!errors.As(err, &at) || at.Packet != n+1 || at.Offset != int64(out.Len()) || int(at.Offset) > size) {
				t.Fatalf("%s cut to %d bytes: %d packets, %d bytes, %v", name, size, n, out.Len(), err)
			}
			if err == nil && size != out.Len() {
				t.Fatalf("%s cut to %d bytes: copied %d", name, size, out.Len())
			}
			if out.Len() > 0 && !bytes.Equal(out.Bytes(), file[:out.Len()]) {
				t.Fatalf("%s cut to %d bytes: what was copied is not the same", name, size)
			}
			whole := 0
			for i, end := range ends[1:] {
				if size >= end && i > 0 {
					whole = i
				}
			}
			if size >= last && n < whole {
				t.Fatalf("%s cut to %d bytes: %d packets, want %d", name, size, n, whole)
			}
		}
	}
}

// TestForeign checks the errors for damaged files and files that are no captures.
func TestForeign(t *testing.T) {
	file := pcaptest.Classic(binary.LittleEndian, pcap.Ethernet, frames(pcap.Ethernet, binary.LittleEndian, addrs[0], 2))
	long := bytes.Clone(file)
	binary.LittleEndian.PutUint32(long[24+8:], 1<<18+1)
	ng := pcaptest.NG(binary.BigEndian, pcap.Ethernet, nil)
	section := bytes.Clone(ng)
	section[8] = 1
	odd := bytes.Clone(ng)
	odd[7]++
	end := bytes.Clone(ng)
	end[27]++
	packet := pcaptest.Block(binary.BigEndian, bytes.Clone(ng), 6, make([]byte, 20))
	packet[len(ng)+11] = 3
	size := pcaptest.Block(binary.BigEndian, bytes.Clone(ng), 6, make([]byte, 20))
	size[len(ng)+23] = 9
	for _, c := range []struct {
		what string
		file []byte
		want string
	}{
		{"empty", nil, "neither pcap nor pcapng: it has 0 bytes"},
		{"text", []byte("some text"), "neither pcap nor pcapng: it begins with 73 6f 6d 65"},
		{"gzip", []byte{0x1f, 0x8b, 8, 0}, "neither pcap nor pcapng: it is compressed: gunzip it first"},
		{"a long packet", long, "packet 1, at byte 24: it says that it has 262145 bytes, the limit is 262144"},
		{"no byte order", section, "packet 1, at byte 0: a section whose byte order is 01 2b 3c 4d"},
		{"an odd block", odd, "packet 1, at byte 0: a block of 29 bytes, want 12 to 1048576, in fours"},
		{"another size at the end", end, "packet 1, at byte 0: a block of 28 bytes says 29 at its end"},
		{"an unknown interface", packet, "packet 1, at byte 60: it is of interface 3, of 1"},
		{"a packet longer than its block", size, "packet 1, at byte 60: it says that it has 9 bytes, its block has 32"},
	} {
		_, err := pcap.Rewrite(&bytes.Buffer{}, bytes.NewReader(c.file), func(*pcap.Packet) []byte { return nil })
		if err == nil || err.Error() != c.want {
			t.Errorf("%s: %v, want %s", c.what, err, c.want)
		}
	}
}

// endless repeats a part after a head until a number of bytes was read.
type endless struct {
	rest, part []byte
	left       int
	most       uint64 // of the heap
}

func (e *endless) Read(b []byte) (int, error) {
	if e.left <= 0 {
		return 0, io.EOF
	}
	if len(e.rest) == 0 {
		e.rest = e.part
	}
	n := copy(b, e.rest)
	if e.rest, e.left = e.rest[n:], e.left-n; e.left/(1<<20) != (e.left+n)/(1<<20) {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		e.most = max(e.most, m.HeapAlloc)
	}
	return n, nil
}

// TestBombs: large records, or many, take little memory, or the error names the limit.
func TestBombs(t *testing.T) {
	size := 64 << 20
	if testing.Short() {
		size = 8 << 20
	}
	little := binary.LittleEndian
	classic := pcaptest.Classic(little, pcap.Ethernet, nil)
	ng := pcaptest.NG(little, pcap.Ethernet, nil)
	packet := func(n int) []byte {
		b := make([]byte, 16+n)
		little.PutUint32(b[8:], uint32(n))
		little.PutUint32(b[12:], uint32(n))
		return b
	}
	huge := packet(0)
	little.PutUint32(huge[8:], 1<<32-1)
	hugeBlock := make([]byte, 12)
	little.PutUint32(hugeBlock[4:], 1<<32-4)
	for _, c := range []struct {
		name       string
		head, part []byte
		want       string // in the error
	}{
		{"pcap of the largest packets", classic, packet(1 << 18), ""},
		{"pcap of empty packets", classic, packet(0), ""},
		{"pcap of one packet", append(bytes.Clone(classic), huge...), make([]byte, 4096), "it says that it has 4294967295 bytes, the limit is 262144"},
		{"pcapng of the largest blocks", ng, pcaptest.Block(little, nil, 99, make([]byte, 1<<20-12)), ""},
		{"pcapng of sections", nil, ng, ""},
		{"pcapng of interfaces", ng, pcaptest.Block(little, nil, 1, make([]byte, 8)), "more than 65536 interfaces"},
		{"pcapng of one block", append(bytes.Clone(ng), hugeBlock...), make([]byte, 4096), "a block of 4294967292 bytes, want 12 to 1048576"},
	} {
		in := &endless{rest: c.head, part: c.part, left: size}
		var before runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		_, err := pcap.Rewrite(io.Discard, in, func(*pcap.Packet) []byte { return nil })
		if c.want == "" && err != nil && !strings.Contains(err.Error(), "the file ends in it") || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
		if most := int64(in.most) - int64(before.HeapAlloc); most > 20<<20 {
			t.Errorf("%s: %d bytes", c.name, most)
		}
	}
}

func FuzzRewrite(f *testing.F) {
	for _, format := range formats {
		for _, link := range []pcap.LinkType{pcap.Ethernet, pcap.LinuxSLL2, pcap.Null} {
			f.Add(format(binary.LittleEndian, link, frames(link, binary.LittleEndian, addrs[0], 3)))
			f.Add(format(binary.BigEndian, link, frames(link, binary.BigEndian, addrs[1], 3)))
		}
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		var payloads [][]byte
		flip := func(p *pcap.Packet) []byte {
			d, ok := p.UDP()
			if !ok {
				return nil
			}
			changed := append([]byte("changed: "), d.Payload...)
			b, ok := d.Replace(nil, changed)
			if ok == d.Cut && len(changed) < 60_000 {
				t.Fatalf("packet %d, cut: %v, was replaced: %v", p.Number, d.Cut, ok)
			}
			if !ok {
				return nil
			}
			payloads = append(payloads, changed)
			return b
		}
		var first, second bytes.Buffer
		n, err := pcap.Rewrite(&first, bytes.NewReader(file), flip)
		if first.Len() > 2*len(file)+100*n {
			t.Fatalf("%d bytes of %d", first.Len(), len(file))
		}
		// What was written can be read, and has what was put there.
		i := 0
		again, err2 := pcap.Rewrite(&second, bytes.NewReader(first.Bytes()), func(p *pcap.Packet) []byte {
			d, ok := p.UDP()
			if ok && !d.Cut && i < len(payloads) && bytes.HasPrefix(d.Payload, []byte("changed: ")) {
				if !bytes.Equal(d.Payload, payloads[i]) {
					t.Fatalf("packet %d has %q, want %q", p.Number, d.Payload, payloads[i])
				}
				i++
			}
			return nil
		})
		if first.Len() > 0 && (again != n || err2 != nil || i < len(payloads)) {
			t.Fatalf("%d packets, %d changed (%v); the copy has %d, %d changed (%v)", n, len(payloads), err, again, i, err2)
		}
	})
}

func TestNoUDP(t *testing.T) {
	ip4 := pcaptest.IP(addrs[0][0], addrs[0][1], []byte("payload"))
	ip6 := pcaptest.IP(addrs[1][0], addrs[1][1], []byte("payload"))
	change := func(b []byte, at int, v byte) []byte {
		b = bytes.Clone(b)
		b[at] = v
		return b
	}
	for _, c := range []struct {
		what string
		link pcap.LinkType
		data []byte
	}{
		{"nothing", pcap.Raw, nil},
		{"a header that is cut off", pcap.Raw, ip4[:27]},
		{"one of IPv6", pcap.Raw, ip6[:39]},
		{"TCP", pcap.Raw, change(ip4, 9, 6)},
		{"TCP over IPv6", pcap.Raw, change(ip6, 6, 6)},
		{"the first fragment", pcap.Raw, change(ip4, 6, 0x20)},
		{"another one", pcap.Raw, change(ip4, 7, 1)},
		{"a fragment of IPv6", pcap.Raw, change(ip6, 6, 44)},
		{"IPv7", pcap.Raw, change(ip4, 0, 0x75)},
		{"a short header", pcap.Raw, change(ip4, 0, 0x44)},
		{"UDP beyond IP", pcap.Raw, change(ip4, 25, 16)},
		{"UDP of no length", pcap.Raw, change(ip4, 25, 7)},
		{"ARP", pcap.Ethernet, append(append(make([]byte, 12), 8, 6), ip4...)},
		{"five VLANs", pcap.Ethernet, append(append(make([]byte, 12), bytes.Repeat([]byte{0x81, 0, 0, 1}, 5)...), append([]byte{8, 0}, ip4...)...)},
		{"another link", 105, ip4},
		{"a short link", pcap.LinuxSLL2, ip4[:19]},
	} {
		p := pcap.Packet{Link: c.link, Data: c.data}
		if d, ok := p.UDP(); ok {
			t.Errorf("%s: %+v", c.what, d)
		}
	}
}

func TestOddPackets(t *testing.T) {
	payload := []byte("payload")
	ip4 := pcaptest.IP(addrs[0][0], addrs[0][1], payload)
	ip6 := pcaptest.IP(addrs[1][0], addrs[1][1], payload)
	ethernet := append(make([]byte, 12), 0x88, 0xa8, 0, 1, 0x81, 0, 0, 2, 8, 0)
	trailer := append(append(bytes.Clone(ethernet), ip4...), "trailer"...)
	options := append(bytes.Clone(ip4[:20]), 1, 1, 1, 0) // IP options
	options = append(options, ip4[20:]...)
	options[0], options[3] = 0x46, options[3]+4
	extension := append(bytes.Clone(ip6[:40]), 17, 0, 1, 4, 0, 0, 0, 0)
	extension = append(extension, ip6[40:]...)
	extension[5], extension[6] = extension[5]+8, 60
	noChecksum := bytes.Clone(ip4)
	noChecksum[26], noChecksum[27] = 0, 0
	for _, c := range []struct {
		what string
		link pcap.LinkType
		data []byte
		tail int
	}{
		{"VLANs and a trailer", pcap.Ethernet, trailer, 7},
		{"options", pcap.Raw, options, 0},
		{"an extension", pcap.Raw, extension, 0},
		{"no checksum", pcap.Raw, noChecksum, 0},
	} {
		p := pcap.Packet{Link: c.link, Data: c.data}
		d, ok := p.UDP()
		if !ok || string(d.Payload) != string(payload) || d.Cut {
			t.Fatalf("%s: %+v, %v", c.what, d, ok)
		}
		b, ok := d.Replace([]byte("before"), []byte("another payload"))
		if !ok || !bytes.HasPrefix(b, []byte("before")) || len(b) != 6+len(c.data)+8 {
			t.Fatalf("%s: %d bytes, %v", c.what, len(b), ok)
		}
		p.Data = b[6:]
		again, ok := p.UDP()
		if !ok || string(again.Payload) != "another payload" || again.From != d.From || again.To != d.To {
			t.Errorf("%s: %+v, %v", c.what, again, ok)
		}
		if !bytes.Equal(b[len(b)-c.tail:], c.data[len(c.data)-c.tail:]) {
			t.Errorf("%s: what follows was changed", c.what)
		}
		if back, ok := again.Replace(nil, payload); !ok || c.what != "options" && !bytes.Equal(back, c.data) {
			t.Errorf("%s: %x, want %x", c.what, back, c.data)
		}
	}
}

func TestCut(t *testing.T) {
	ip := pcaptest.IP(addrs[0][0], addrs[0][1], []byte("payload"))
	p := pcap.Packet{Link: pcap.Raw, Data: ip[:len(ip)-2]}
	d, ok := p.UDP()
	if !ok || !d.Cut || string(d.Payload) != "paylo" {
		t.Fatalf("%+v, %v", d, ok)
	}
	if b, ok := d.Replace([]byte("x"), nil); ok || string(b) != "x" {
		t.Errorf("%x, %v", b, ok)
	}
}
