package uplinktest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/transport"
)

// Main runs the tests of a package and fails if a goroutine is left.
func Main(m *testing.M) {
	goleak.VerifyTestMain(m,
		// kcp-go starts its scheduler at import.
		goleak.IgnoreAnyFunction("github.com/xtaci/kcp-go/v5.(*TimedSched).prepend"),
		goleak.IgnoreAnyFunction("github.com/xtaci/kcp-go/v5.(*TimedSched).sched"),
	)
}

// Must ends the test if err is not nil.
func Must(t testing.TB, err error) {
	if err != nil {
		t.Helper() // only on failure, because looking up the caller is slow
		t.Fatal(err)
	}
}

// Await waits until ready returns true, for tests of processes, sockets and browsers, whose
// duration depends on the load of the machine. After two minutes it fails the test. The failure
// contains what and the result of state, which may be nil.
func Await(t testing.TB, what string, ready func() bool, state func() any) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); !ready(); time.Sleep(10 * time.Millisecond) {
		if time.Now().Before(end) {
			continue
		}
		if state != nil {
			what = fmt.Sprintf("%s: %v", what, state())
		}
		t.Fatalf("not within two minutes: %s", what)
	}
}

// Server is a running server.
type Server struct {
	*ds.Server
	Served <-chan error // receives the result of Serve
}

// Sent returns the error of Send, for tests that do not need the sequence number.
func Sent(_ uint64, err error) error { return err }

// Serve starts a server at Addr after setup has registered its handlers, and closes it at the end
// of the test.
func Serve(t testing.TB, n transport.Network, cfg ds.Config, setup func(*ds.Server) error) *Server {
	t.Helper()
	cfg.Network = n
	srv, err := ds.Listen(Addr, cfg)
	Must(t, err)
	Must(t, setup(srv))
	served := make(chan error, 1)
	go func() { served <- srv.Serve(context.Background()) }()
	t.Cleanup(func() { _ = srv.Close() }) // after a crash it is closed already
	return &Server{Server: srv, Served: served}
}

// Dial connects a client to Addr, and closes it at the end of the test.
func Dial(t testing.TB, n transport.Network, cfg client.Config) *client.Conn {
	t.Helper()
	cfg.Network = n
	conn, err := client.Dial(t.Context(), Addr, cfg)
	Must(t, err)
	t.Cleanup(func() { Must(t, conn.Close()) })
	return conn
}

// Wait returns a policy with which a frame may wait for the given number of later frames at the
// rate.
func Wait(frames int, rateHz float64) client.DelayPolicy {
	return client.DelayPolicy{MaxBatchDelay: time.Duration(float64(frames) / rateHz * float64(time.Second))}
}

// Bind binds an RPC of Move, with at most one BindConfig.
func Bind(t testing.TB, conn *client.Conn, rpc string, cfg ...client.BindConfig) *client.Stream[Move] {
	t.Helper()
	s, err := client.Bind[Move](t.Context(), conn, rpc, append(cfg, client.BindConfig{})[0])
	Must(t, err)
	return s
}
