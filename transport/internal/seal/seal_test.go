package seal

import (
	"bytes"
	"net/netip"
	"testing"
	"time"
)

func TestSmoke(t *testing.T) {
	key := NewStaticKey([32]byte{1, 2, 3})
	i := NewInitiator(nil, key.Public(), []byte("uplink"))
	hello, err := i.Hello(nil, []byte("hello"))
	if err != nil {
		t.Fatal(err)
	}
	r := NewResponder(nil, key, []byte("uplink"))
	if p, err := r.Hello(hello); err != nil || string(p) != "hello" {
		t.Fatal(p, err)
	}
	welcome, server, err := r.Welcome(nil, []byte("welcome"))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := i.Welcome(make([]byte, 60)); err != ErrHandshake {
		t.Fatal(err)
	}
	p, client, err := i.Welcome(welcome)
	if err != nil || string(p) != "welcome" || client != server {
		t.Fatal(p, err)
	}
	for _, s := range []Suite{None, AES128GCM, AES128CTRHMAC8} {
		a, b := NewSealer(s, client.ToServer), NewOpener(s, server.ToServer)
		for n := uint64(1 << 19); n < 4<<20; n += 1 << 19 {
			x := a.Seal([]byte("hdr"), []byte("hdr"), []byte("plain"), n)
			if y, ok := b.Open(x[3:3], x[:3], x[3:], n); !ok || !bytes.Equal(y, []byte("plain")) || len(x) != 8+s.Overhead() {
				t.Fatal(s, n, y, ok)
			}
		}
	}
	now := time.Now()
	c := NewCookies(nil, now)
	addr := netip.MustParseAddrPort("1.2.3.4:5")
	k := c.Make(addr, 7, now)
	if !c.Check(k, addr, 7, now.Add(10*time.Second)) || c.Check(k, addr, 8, now) || c.Check(k, addr, 7, now.Add(11*time.Second)) {
		t.Fatal("cookie")
	}
}
