package dashboard_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"

	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/metrics/dashboard"
)

// A game server serves its dashboard on a loopback address.
func Example() {
	srv, err := ds.Listen("127.0.0.1:0", ds.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer srv.Close()

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	guard, err := dashboard.NewGuard(listener.Addr(), "")
	if err != nil {
		fmt.Println(err)
		return
	}
	d := dashboard.New(srv, dashboard.Config{Title: "arena 7"})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { d.Run(ctx) })
	web := http.Server{Handler: guard.Handler(d)}
	running.Go(func() { _ = web.Serve(listener) })

	if page, err := http.Get("http://" + listener.Addr().String()); err == nil {
		fmt.Println(page.Status, page.Header.Get("Content-Type"))
		page.Body.Close()
	}

	cancel()
	web.Close()
	running.Wait()
	http.DefaultClient.CloseIdleConnections()
	// Output: 200 OK text/html; charset=utf-8
}
