//go:build linux && field

package field

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/transport"
)

type move struct {
	X, Y float32 `uplink:"resolution=0.01"`
}

// server is a game's server in the namespace of servers.
type server struct {
	*ds.Server
	frames atomic.Int64
}

// serve starts a server that runs until the test ends.
func serve(t *testing.T, addr string, shards int) *server {
	t.Helper()
	s := &server{}
	must(t, servers.do(func() (err error) {
		s.Server, err = ds.Listen(addr, ds.Config{Transport: ds.Transport{Insecure: true, Shards: shards}})
		return err
	}))
	must(t, ds.Handle(s.Server, "Move", func(*ds.Player, ds.Frame[move]) { s.frames.Add(1) }))
	go func() { _ = s.Serve(t.Context()) }()
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// play sends frames at 60 Hz, over two sockets, until the server has received some over each.
func (s *server) play(t *testing.T, conn *client.Conn) {
	t.Helper()
	m, err := client.Bind[move](t.Context(), conn, "Move", client.BindConfig{RateHz: 60})
	must(t, err)
	for socket := range 2 {
		if socket == 1 {
			must(t, conn.Rebind())
		}
		for before := s.frames.Load(); s.frames.Load() < before+30; time.Sleep(time.Second / 60) {
			_, err := m.Send(&move{X: 1})
			must(t, err)
		}
	}
}

// TestAddressesOfServer dials each address of a server that listens on all of them.
func TestAddressesOfServer(t *testing.T) {
	for _, listen := range []string{"0.0.0.0:7001", "[::]:7001"} {
		for _, shards := range []int{1, 2} {
			t.Run(fmt.Sprint(listen, " ", shards), func(t *testing.T) {
				s := serve(t, listen, shards)
				addrs := []string{server1, server2}
				if !strings.HasPrefix(listen, "0.0.0.0") {
					addrs = append(addrs, server1v6, server2v6, serverLinkLocal)
				}
				for _, addr := range addrs {
					conn, err := client.Dial(t.Context(), "["+addr+"]:7001", client.Config{Transport: client.Transport{Insecure: true}, NoReconnect: true})
					if err != nil {
						t.Errorf("%s: %v", addr, err)
						continue
					}
					s.play(t, conn)
					_ = conn.Close()
				}
			})
		}
	}
}

// TestIPv4Wildcard: 0.0.0.0 does not open IPv6. The kernel of another machine reports it.
func TestIPv4Wildcard(t *testing.T) {
	serve(t, "0.0.0.0:7002", 1)
	_, err := client.Dial(t.Context(), "["+server1v6+"]:7002", client.Config{Transport: client.Transport{Insecure: true, Timeout: time.Hour}})
	if !errors.Is(err, transport.ErrNoServer) {
		t.Errorf("got %v", err)
	}
}

// TestDualStackName dials a name with addresses of both families, of which the server has one, and
// moves the server to the other one.
func TestDualStackName(t *testing.T) {
	for _, listen := range [][2]string{{server2 + ":7003", "[" + server2v6 + "]:7003"}, {"[" + server2v6 + "]:7004", server2 + ":7004"}} {
		first := serve(t, listen[0], 1)
		port := listen[0][strings.LastIndex(listen[0], ":"):]
		conn, err := client.Dial(t.Context(), "dual.example"+port, client.Config{Transport: client.Transport{Insecure: true}})
		if err != nil {
			t.Fatalf("server on %s: %v", listen[0], err)
		}
		first.play(t, conn)
		must(t, first.Close())
		second := serve(t, listen[1], 1)
		uplinktest.Await(t, "a session at "+listen[1], func() bool { return second.Stats().Transport.Open > 0 }, nil)
		_ = conn.Close()
		must(t, second.Close())
	}
	_, err := client.Dial(t.Context(), "dual.example:7005", client.Config{Transport: client.Transport{Insecure: true, Timeout: time.Hour}})
	if !errors.Is(err, transport.ErrNoServer) || !strings.Contains(err.Error(), server2+":7005: ") || !strings.Contains(err.Error(), "["+server2v6+"]:7005: ") {
		t.Errorf("without a server: %v", err)
	}
}
