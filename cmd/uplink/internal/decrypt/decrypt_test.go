package decrypt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/cmd/uplink/internal/pcap"
	"github.com/uplink-rpc/uplink/cmd/uplink/internal/pcap/pcaptest"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/keylog"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/transport"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

func packets(t *testing.T, file []byte) (all [][]byte) {
	t.Helper()
	if _, err := pcap.Rewrite(&bytes.Buffer{}, bytes.NewReader(file), func(p *pcap.Packet) []byte {
		all = append(all, bytes.Clone(p.Data))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return all
}

// run decrypts and checks that each packet was counted once.
func run(t *testing.T, file []byte, keys []keylog.Session, port uint16) ([]byte, Counts) {
	t.Helper()
	var out bytes.Buffer
	c, err := Run(&out, bytes.NewReader(file), keys, port)
	uplinktest.Must(t, err)
	if sum := c.Opened + c.Plain + c.NoKey + c.Damaged + c.Cut + c.Other; sum != c.Packets {
		t.Errorf("%d of %d packets are counted: %+v", sum, c.Packets, c)
	}
	return out.Bytes(), c
}

// TestGame opens all of a session that loses, repeats and moves.
func TestGame(t *testing.T) {
	for _, suite := range []transport.Suite{
		transport.AES128GCM, transport.AES128CTRHMAC8, transport.ChaCha20Poly1305, transport.ChaCha20SipHash8, transport.None,
	} {
		g := play(t, suite)
		out, c := run(t, g.file, g.keys, 0)
		if c.Sessions != 1 || c.Opened < calls || c.Plain < 4 || c.Opened+c.Plain != c.Packets {
			t.Errorf("%v: %+v", suite, c)
		}
		before, after := packets(t, g.file), packets(t, out)
		for i, packet := range before {
			was := pcap.Packet{Link: pcap.Ethernet, Data: packet}
			is := pcap.Packet{Link: pcap.Ethernet, Data: after[i]}
			a, _ := was.UDP()
			b, _ := is.UDP()
			if a.From != b.From || a.To != b.To {
				t.Fatalf("%v: packet %d: from %v to %v, was from %v to %v", suite, i+1, b.From, b.To, a.From, a.To)
			}
			if bytes.Equal(packet, after[i]) {
				continue // of the handshake
			}
			record := b.Payload
			header := uplinktest.HeaderSize(a.Payload)
			if len(record) != keylog.RecordHeader+len(a.Payload)-suite.Overhead() ||
				!bytes.Equal(record[keylog.RecordHeader:keylog.RecordHeader+header], a.Payload[:header]) ||
				binary.LittleEndian.Uint64(record[5:]) != g.keys[0].ID || transport.Suite(record[4]) != suite {
				t.Fatalf("%v: packet %d is %x, was %x", suite, i+1, record, a.Payload)
			}
			if suite == transport.None && !bytes.Equal(record[keylog.RecordHeader:], a.Payload) {
				t.Fatalf("packet %d is %x, was %x", i+1, record, a.Payload)
			}
		}
		// What was opened stays as it is.
		again, c := run(t, out, g.keys, 0)
		if !bytes.Equal(again, out) || c.Plain != c.Packets {
			t.Errorf("%v, once more: %+v", suite, c)
		}
	}
}

func TestNotOpened(t *testing.T) {
	g := play(t, transport.AES128GCM)
	_, all := run(t, g.file, g.keys, 0)
	others := []keylog.Session{{ID: 1, Suite: transport.AES128GCM}}
	out, c := run(t, g.file, others, 0)
	if c.NoKey != all.Opened || c.Opened != 0 || c.Sessions != 0 || !bytes.Equal(out, g.file) {
		t.Errorf("with other keys: %+v", c)
	}
	out, c = run(t, g.file, g.keys, 7778)
	if c.Other != all.Packets || !bytes.Equal(out, g.file) {
		t.Errorf("at another port: %+v", c)
	}
	if _, c = run(t, g.file, g.keys, 7777); c != all {
		t.Errorf("at its port: %+v, want %+v", c, all)
	}
	var cut, wrong, broken []pcaptest.Frame
	for i, p := range packets(t, g.file) {
		cut = append(cut, pcaptest.Frame{Data: p[:len(p)-1], Length: len(p)})
		b := bytes.Clone(p)
		b[len(b)-1] ^= 1
		if b[14+20+8]>>7 == 0 && i%2 == 0 { // sealed
			wrong = append(wrong, pcaptest.Frame{Data: b})
		}
		broken = append(broken, pcaptest.Frame{Data: p[:14]})
	}
	if _, c = run(t, pcaptest.NG(binary.BigEndian, pcap.Ethernet, cut), g.keys, 0); c.Cut != all.Packets {
		t.Errorf("cut off: %+v", c)
	}
	if _, c = run(t, pcaptest.NG(binary.BigEndian, pcap.Ethernet, broken), g.keys, 0); c.Other != all.Packets {
		t.Errorf("without IP: %+v", c)
	}
	// Undamaged ones first, so that the addresses are known.
	file := append(bytes.Clone(g.file), pcaptest.Classic(binary.LittleEndian, pcap.Ethernet, wrong)[24:]...)
	if _, c = run(t, file, g.keys, 0); c.Damaged != len(wrong) || c.Opened != all.Opened {
		t.Errorf("damaged: %+v, want %d", c, len(wrong))
	}
}

// TestDamagedFile counts the packets before the damage.
func TestDamagedFile(t *testing.T) {
	g := play(t, transport.AES128GCM)
	c, err := Run(io.Discard, bytes.NewReader(g.file[:len(g.file)-1]), g.keys, 0)
	var at *pcap.Error
	if n := len(packets(t, g.file)); !errors.As(err, &at) || at.Packet != n || c.Packets != n-1 {
		t.Fatalf("%+v, %v", c, err)
	}
}

func FuzzRun(f *testing.F) {
	keys := []keylog.Session{{ID: 5, Suite: transport.AES128GCM}, {ID: 6, Suite: transport.None}}
	a, b := netip.MustParseAddrPort("192.0.2.1:4000"), netip.MustParseAddrPort("192.0.2.2:7777")
	long := append([]byte{0x40, 6, 0, 0, 0, 0, 0, 0, 0, 0, 0}, "body"...)
	short := append([]byte{0x00, 1, 0}, "body"...)
	for _, link := range []pcap.LinkType{pcap.Ethernet, pcap.Null} {
		var frames []pcaptest.Frame
		for _, payload := range [][]byte{long, short} {
			frames = append(frames, pcaptest.Frame{Data: pcaptest.Packet(link, binary.LittleEndian, a, b, payload)})
		}
		f.Add(pcaptest.Classic(binary.LittleEndian, link, frames))
		f.Add(pcaptest.NG(binary.LittleEndian, link, frames))
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		var out bytes.Buffer
		c, err := Run(&out, bytes.NewReader(file), keys, 0)
		if sum := c.Opened + c.Plain + c.NoKey + c.Damaged + c.Cut + c.Other; sum != c.Packets {
			t.Fatalf("%d of %d packets are counted: %+v", sum, c.Packets, c)
		}
		if out.Len() > len(file)+(keylog.RecordHeader+4)*c.Opened {
			t.Fatalf("%d bytes of %d", out.Len(), len(file))
		}
		if err == nil && out.Len() < len(file) {
			t.Fatalf("%d bytes of %d, with %d opened", out.Len(), len(file), c.Opened)
		}
	})
}

func TestMain(m *testing.M) { uplinktest.Main(m) }

// tape records what is sent on a network, before any of it is lost.
type tape struct {
	mu     sync.Mutex
	frames []pcaptest.Frame
}

func record(n *uplinktest.Network) *tape {
	t := &tape{}
	n.Watch(func(from, to netip.AddrPort, b []byte) {
		t.mu.Lock()
		defer t.mu.Unlock()
		packet := pcaptest.Packet(pcap.Ethernet, binary.LittleEndian, from, to, b)
		t.frames = append(t.frames, pcaptest.Frame{At: time.Now(), Data: packet})
	})
	return t
}

// file is the recording so far.
func (t *tape) file() []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	return pcaptest.Classic(binary.LittleEndian, pcap.Ethernet, t.frames)
}

// links are a link that loses, delays and copies, both ways.
func links(seed uint64) (up, down simnet.Config) {
	up = simnet.Config{Delay: 40 * time.Millisecond, Jitter: 5 * time.Millisecond, Loss: 0.1, Burst: 2, Duplicate: 0.05, Seed: seed}
	down = up
	down.Seed = ^seed
	return up, down
}

type game struct {
	file   []byte
	keys   []keylog.Session
	client client.Stats
	server ds.Stats
}

// calls is how many calls of each RPC a game has.
const calls = 240

// play runs a client that calls three RPCs, one of them reliable, and changes its address.
func play(t *testing.T, suite transport.Suite) (g game) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		network := uplinktest.NewNetwork(t, simnet.Config{}, simnet.Config{})
		tape := record(network)
		suites := []transport.Suite{suite}
		srv := uplinktest.Serve(t, network, ds.Config{Transport: ds.Transport{Suites: suites, Insecure: true}}, func(s *ds.Server) error {
			for _, rpc := range []string{"Move", "Look", "Use"} {
				if err := ds.Handle(s, rpc, func(*ds.Player, ds.Frame[uplinktest.Move]) {}); err != nil {
					return err
				}
			}
			return nil
		})
		var keys bytes.Buffer
		conn := uplinktest.Dial(t, network, client.Config{Transport: client.Transport{Suites: suites, Insecure: true, KeyLog: &keys}, Tick: 33 * time.Millisecond})
		move, look := uplinktest.Bind(t, conn, "Move"), uplinktest.Bind(t, conn, "Look")
		use := uplinktest.Bind(t, conn, "Use", client.BindConfig{Reliable: true})
		uplinktest.Must(t, network.Set(links(7)))
		for i := range uint64(calls) {
			for salt, s := range []*client.Stream[uplinktest.Move]{move, look, use} {
				m := uplinktest.MoveAt(uint64(salt), i)
				uplinktest.Must(t, uplinktest.Sent(s.Send(&m)))
			}
			if i == calls/2 {
				uplinktest.Must(t, conn.Rebind())
			}
			time.Sleep(time.Second / 60)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		g.client, g.server = conn.Stats(), srv.Stats()
		uplinktest.Must(t, conn.Close())
		synctest.Wait()
		var err error
		g.keys, err = keylog.Parse(&keys)
		uplinktest.Must(t, err)
		g.file = tape.file()
	})
	return g
}
