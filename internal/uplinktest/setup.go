package uplinktest

import (
	"context"
	"testing"

	"go.uber.org/goleak"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/transport"
)

// Main runs a package's tests and fails if a goroutine is left over.
func Main(m *testing.M) {
	goleak.VerifyTestMain(m,
		// The scheduler that kcp-go starts when it is imported.
		goleak.IgnoreAnyFunction("github.com/xtaci/kcp-go/v5.(*TimedSched).prepend"),
		goleak.IgnoreAnyFunction("github.com/xtaci/kcp-go/v5.(*TimedSched).sched"),
	)
}

// Must ends the test if there is an error.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Server is one that serves.
type Server struct {
	*ds.Server
	Served <-chan error // what Serve returned
}

// Serve starts a server at Addr after setup gave it its handlers. It ends with
// the test at the latest.
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

// Dial connects a client to Addr. It is closed with the test at the latest.
func Dial(t testing.TB, n transport.Network, cfg client.Config) *client.Conn {
	t.Helper()
	cfg.Network = n
	conn, err := client.Dial(t.Context(), Addr, cfg)
	Must(t, err)
	t.Cleanup(func() { Must(t, conn.Close()) })
	return conn
}

// Bind binds an RPC of Move, with at most one BindConfig.
func Bind(t testing.TB, conn *client.Conn, rpc string, cfg ...client.BindConfig) *client.Stream[Move] {
	t.Helper()
	s, err := client.Bind[Move](t.Context(), conn, rpc, append(cfg, client.BindConfig{})[0])
	Must(t, err)
	return s
}
