package pcap_test

import (
	"bytes"
	"testing"

	"github.com/uplink-rpc/uplink/cmd/uplink/internal/pcap"
	"github.com/uplink-rpc/uplink/cmd/uplink/internal/pcap/pcaptest"
)

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
