package keylog

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"testing"

	"github.com/uplink-rpc/uplink/internal/transport/seal"
	"github.com/uplink-rpc/uplink/internal/transport/wire"
)

var (
	server = netip.MustParseAddrPort("203.0.113.1:7777")
	home   = netip.MustParseAddrPort("192.0.2.1:4000")
	away   = netip.MustParseAddrPort("198.51.100.1:5000")
)

// testSession is a session whose ends seal datagrams.
type testSession struct {
	Session
	up, down *seal.Sealer
}

func newTestSession(id uint64, suite seal.Suite) *testSession {
	s := Session{ID: id, Suite: suite, ToServer: [32]byte{1, byte(id), byte(id >> 8)}, ToClient: [32]byte{2, byte(id), byte(id >> 8)}}
	return &testSession{Session: s, up: seal.NewSealer(suite, s.ToServer), down: seal.NewSealer(suite, s.ToClient)}
}

// sealed makes a data datagram, and the record that it is to become.
func (k *testSession) sealed(toServer, long bool, number uint64, body string) (datagram, record []byte) {
	return k.sealedOf(wire.DataKind, toServer, long, number, body)
}

// heartbeat makes a datagram with a short header.
func (k *testSession) heartbeat(toServer bool, number uint64, body string) (datagram, record []byte) {
	return k.sealedOf(wire.HeartbeatKind, toServer, false, number, body)
}

func (k *testSession) sealedOf(kind wire.Kind, toServer, long bool, number uint64, body string) (datagram, record []byte) {
	h := wire.Header{Kind: kind, Long: long, Number: uint32(number)}
	first, sealer := byte(0xbf), k.down
	if toServer {
		first, sealer = 0xbe, k.up
	}
	if long {
		h.ID = k.ID
	}
	header := wire.AppendHeader(nil, h)
	record = append([]byte{first}, "upl"...)
	record = binary.LittleEndian.AppendUint64(append(record, byte(k.Suite)), k.ID)
	record = binary.LittleEndian.AppendUint64(record, number)
	record = append(append(record, header...), body...)
	return sealer.Seal(bytes.Clone(header), header, []byte(body), number), record
}

// expect opens a datagram and compares the result. A nil record stands for none.
func expect(t *testing.T, o *Opener, from, to netip.AddrPort, datagram []byte, want Verdict, record []byte) {
	t.Helper()
	before := bytes.Clone(datagram)
	got, v := o.Open([]byte("dst"), from, to, datagram)
	if v != want || !bytes.Equal(got, append([]byte("dst"), record...)) {
		t.Fatalf("verdict %d, want %d: %x, want %x", v, want, got[3:], record)
	}
	if !bytes.Equal(before, datagram) {
		t.Fatal("the datagram was written to")
	}
}

// TestOpener follows a session from its beginning through a move.
func TestOpener(t *testing.T) {
	for _, suite := range []seal.Suite{seal.None, seal.AES128GCM, seal.AES128CTRHMAC8, seal.ChaCha20Poly1305, seal.ChaCha20SipHash8} {
		k := newTestSession(0x1122334455667788, suite)
		o := NewOpener([]Session{k.Session})
		up := func(from netip.AddrPort, long bool, number uint64) {
			t.Helper()
			b, record := k.sealed(true, long, number, fmt.Sprint("up ", number))
			expect(t, o, from, server, b, Opened, record)
		}
		down := func(to netip.AddrPort, number uint64) {
			t.Helper()
			b, record := k.sealed(false, false, number, fmt.Sprint("down ", number))
			expect(t, o, server, to, b, Opened, record)
			expect(t, o, server, to, b, Opened, record) // it may come twice
		}
		up(home, true, 0)
		down(home, 0)
		up(home, false, 1)
		down(home, 1)
		up(away, true, 2) // moves
		down(away, 3)
		down(home, 4)
		up(away, false, 3)
		up(home, false, 4)
		if o.Sessions() != 1 {
			t.Errorf("%d sessions, want 1", o.Sessions())
		}
	}
}

// TestEpochs opens datagrams with gaps in their numbers, which wrap around into the next epochs.
func TestEpochs(t *testing.T) {
	k := newTestSession(7, seal.AES128GCM)
	o := NewOpener([]Session{k.Session})
	var number uint64
	for i, step := range []uint64{
		0, 1, 1 << 18, 1<<18 - 1, 1 << 18, 1<<18 - 2, 1, 1 << 19, 1 << 20, 3 << 19, 1 << 18, 1, 1, 4<<20 - 1, 1,
	} {
		number += step
		b, record := k.sealedOf(wire.HeartbeatKind, true, i == 0, number, "body")
		expect(t, o, home, server, b, Opened, record)
	}
	if number>>seal.EpochBits < 8 {
		t.Errorf("number %d is of epoch %d", number, number>>seal.EpochBits)
	}
	b, _ := k.sealed(true, true, number+5<<20, "too far ahead")
	expect(t, o, home, server, b, Damaged, nil)
}

// TestGap opens a recording in which more datagrams are missing than a data header can number: it
// continues with a heartbeat.
func TestGap(t *testing.T) {
	k := newTestSession(7, seal.AES128GCM)
	o := NewOpener([]Session{k.Session})
	b, record := k.sealed(true, true, 0, "body")
	expect(t, o, home, server, b, Opened, record)
	const half = 1 << (wire.DataNumberBits - 1)
	b, record = k.sealed(true, false, half, "body")
	expect(t, o, home, server, b, Opened, record)
	far, farRecord := k.sealed(true, false, 2*half+1, "body")
	expect(t, o, home, server, far, Damaged, nil)
	b, record = k.heartbeat(true, 2*half+2, "body")
	expect(t, o, home, server, b, Opened, record)
	expect(t, o, home, server, far, Opened, farRecord)
}

// TestReordered opens datagrams out of order across the end of an epoch.
func TestReordered(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	k := newTestSession(7, seal.AES128CTRHMAC8)
	o := NewOpener([]Session{k.Session})
	type datagram struct{ sealed, record []byte }
	var all []datagram
	const first = 1<<20 - 500
	for n := uint64(first); n < 1<<20+500; n++ {
		b, record := k.sealed(true, (n-first)%100 == 0, n, fmt.Sprint(n))
		all = append(all, datagram{b, record})
	}
	expect(t, o, home, server, all[0].sealed, Opened, all[0].record)
	for i := range all { // by up to 50
		j := min(i+rng.IntN(50), len(all)-1)
		all[i], all[j] = all[j], all[i]
	}
	for _, d := range all {
		expect(t, o, home, server, d.sealed, Opened, d.record)
	}
}

// TestLate opens a recording that begins after the last long header: all sessions are tried.
func TestLate(t *testing.T) {
	var talks []*testSession
	var sessions []Session
	for id := range uint64(20) {
		talks = append(talks, newTestSession(id+1, seal.AES128GCM))
		sessions = append(sessions, talks[id].Session)
	}
	o := NewOpener(sessions)
	for i, k := range talks {
		client := netip.AddrPortFrom(home.Addr(), uint16(5000+i))
		first := uint64(i) << 17 // up to the third epoch
		for n := range uint64(2 * maxTries) {
			b, _ := k.sealed(false, false, first+n, "down")
			expect(t, o, server, client, b, NoSession, nil)
		}
		b, record := k.heartbeat(false, first+100, "down")
		expect(t, o, server, client, b, Opened, record)
		b, record = k.sealed(false, false, first+101, "down")
		expect(t, o, server, client, b, Opened, record)
		b, record = k.heartbeat(true, first+9, "up")
		expect(t, o, client, server, b, Opened, record)
	}
	if o.Sessions() != len(talks) {
		t.Errorf("%d sessions, want %d", o.Sessions(), len(talks))
	}
}

// TestAddressesAgain reuses the address of an earlier client whose last datagrams arrive late.
func TestAddressesAgain(t *testing.T) {
	old, next := newTestSession(1, seal.AES128GCM), newTestSession(2, seal.AES128GCM)
	o := NewOpener([]Session{old.Session, next.Session})
	for i, k := range []*testSession{old, next, old, next} {
		b, record := k.sealed(true, i < 2, uint64(i), "up")
		expect(t, o, home, server, b, Opened, record)
		b, record = k.sealed(false, false, uint64(i), "down")
		expect(t, o, server, home, b, Opened, record)
	}
}

// TestNotOpened lists datagrams that an opener must leave unchanged.
func TestNotOpened(t *testing.T) {
	k, stranger := newTestSession(1, seal.AES128GCM), newTestSession(2, seal.AES128GCM)
	o := NewOpener([]Session{k.Session})
	b, record := k.sealed(true, true, 0, "body")
	expect(t, o, home, server, b, Opened, record)
	expect(t, o, home, server, record, Plain, nil)
	expect(t, o, home, server, wire.AppendHello(nil, wire.Hello{Version: wire.Version}), Plain, nil)
	expect(t, o, home, server, nil, Foreign, nil)
	expect(t, o, home, server, []byte{0xbe, 'u', 'p'}, Foreign, nil)
	expect(t, o, home, server, make([]byte, wire.MaxDatagram+1), Foreign, nil)
	b, _ = stranger.sealed(true, true, 0, "body")
	expect(t, o, away, server, b, NoSession, nil)
	for n := range uint64(10) {
		b, _ = stranger.heartbeat(true, 1+n, "body")
		expect(t, o, away, server, b, NoSession, nil)
	}
	b, _ = k.sealed(true, false, 1, "body")
	for i := range b { // each byte counts: of the header, the body and the tag
		bad := bytes.Clone(b)
		bad[i] ^= 0x10
		if _, v := o.Open(nil, home, server, bad); v == Opened {
			t.Fatalf("byte %d may be another one", i)
		}
	}
	expect(t, o, home, server, b[:5], Damaged, nil)
	// A session that seals nothing is known by its id alone: else it would open anything.
	plain := newTestSession(3, seal.None)
	o = NewOpener([]Session{plain.Session})
	expect(t, o, home, server, []byte("\x10\x01\x02another protocol"), NoSession, nil)
}

// TestBounded shows that strangers cannot have the opener work without end.
func TestBounded(t *testing.T) {
	var sessions []Session
	for id := range uint64(300) {
		sessions = append(sessions, newTestSession(id+1, seal.AES128GCM).Session)
	}
	o := NewOpener(sessions)
	o.budget = 50_000
	stranger := newTestSession(1000, seal.AES128GCM)
	for i := range 2000 {
		b, _ := stranger.heartbeat(true, uint64(i), "body")
		expect(t, o, netip.AddrPortFrom(away.Addr(), uint16(i)), server, b, NoSession, nil)
	}
	if o.budget > 0 || len(o.flows) != 0 {
		t.Errorf("%d trials are left, %d flows known", o.budget, len(o.flows))
	}
}

// TestManyAddresses opens one datagram from more addresses than an opener keeps, as in a forged
// recording. The address of a session with regular traffic in between stays known.
func TestManyAddresses(t *testing.T) {
	k, other := newTestSession(1, seal.AES128GCM), newTestSession(2, seal.AES128GCM)
	o := NewOpener([]Session{k.Session, other.Session})
	b, record := other.sealed(true, true, 0, "body")
	expect(t, o, home, server, b, Opened, record)
	copied, opened := k.sealed(true, true, 0, "body")
	address := netip.MustParseAddr("10.0.0.0")
	for i := range 3 * maxFlows {
		address = address.Next()
		out, v := o.Open(nil, netip.AddrPortFrom(address, 1), server, copied)
		if v != Opened || !bytes.Equal(out, opened) {
			t.Fatalf("verdict %d: %x", v, out)
		}
		if i%10_000 == 0 {
			b, record := other.heartbeat(true, uint64(i)+1, "body")
			expect(t, o, home, server, b, Opened, record)
		}
	}
	if n := len(o.flows) + len(o.older); n > maxFlows || len(o.tried) != 0 {
		t.Errorf("%d flows are kept, want at most %d; %d were tried", n, maxFlows, len(o.tried))
	}
}

// TestKeysAreForgotten: datagrams that no session opens leave no keys behind in those that were
// tried.
func TestKeysAreForgotten(t *testing.T) {
	k := newTestSession(1, seal.AES128GCM)
	o := NewOpener([]Session{k.Session})
	stranger := newTestSession(1000, seal.AES128GCM)
	b, _ := stranger.heartbeat(true, 0, "body")
	expect(t, o, away, server, b, NoSession, nil)
	for _, s := range o.all {
		if fresh := newSession(&k.Session); !reflect.DeepEqual(s.toServer.archive, fresh.toServer.archive) || !reflect.DeepEqual(s.toClient.archive, fresh.toClient.archive) {
			t.Error("keys are kept")
		}
	}
	b, record := k.heartbeat(true, 5, "body")
	expect(t, o, home, server, b, Opened, record)
}

func FuzzOpener(f *testing.F) {
	k := newTestSession(1, seal.AES128GCM)
	long, _ := k.sealed(true, true, 0, "body")
	data, _ := k.sealed(true, false, 1, "body")
	f.Add(long, data)
	heartbeat, _ := k.heartbeat(true, 2, "body")
	f.Add(heartbeat, data)
	f.Add([]byte{0}, []byte{0x40})
	f.Fuzz(func(t *testing.T, first, second []byte) {
		o := NewOpener([]Session{k.Session, {ID: 2}})
		for _, b := range [][]byte{first, second, first} {
			before := bytes.Clone(b)
			out, v := o.Open([]byte("dst"), home, server, b)
			if !bytes.HasPrefix(out, []byte("dst")) || v != Opened && len(out) != 3 || len(out) > 3+RecordHeader+len(b) || !bytes.Equal(b, before) {
				t.Fatalf("verdict %d: %d bytes of %d", v, len(out), len(b))
			}
		}
	})
}
