package decrypt

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/cmd/uplink/internal/pcap"
	"github.com/uplink-rpc/uplink/cmd/uplink/internal/pcap/pcaptest"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/transport"
	"github.com/uplink-rpc/uplink/transport/keylog"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

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
		srv := uplinktest.Serve(t, network, ds.Config{Suites: suites, Insecure: true}, func(s *ds.Server) error {
			for _, rpc := range []string{"Move", "Look", "Use"} {
				if err := ds.Handle(s, rpc, func(*ds.Player, ds.Frame[uplinktest.Move]) {}); err != nil {
					return err
				}
			}
			return nil
		})
		var keys bytes.Buffer
		conn := uplinktest.Dial(t, network, client.Config{Suites: suites, Insecure: true, KeyLog: &keys, Tick: 33 * time.Millisecond})
		move, look := uplinktest.Bind(t, conn, "Move"), uplinktest.Bind(t, conn, "Look")
		use := uplinktest.Bind(t, conn, "Use", client.BindConfig{Reliable: true})
		uplinktest.Must(t, network.Set(links(7)))
		for i := range uint64(calls) {
			for salt, s := range []*client.Stream[uplinktest.Move]{move, look, use} {
				m := uplinktest.MoveAt(uint64(salt), i)
				uplinktest.Must(t, s.Send(&m))
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
