// Package dashboard is a web page about a running dedicated server: full frames and payloads, bits
// per field, losses and drops with their reasons, and the players with the worst connections. The
// page is embedded in the binary and loads nothing from elsewhere.
//
//	d := dashboard.New(srv, dashboard.Config{})
//	go d.Run(ctx)
//	guard, err := dashboard.NewGuard(listener.Addr(), "")
//	http.Serve(listener, guard.Handler(d))
//
// The dashboard reads the server's counters once a second, at no measurable cost. Only while a page
// is open does it read the statistics of each player, and measure the bits of some frames.
package dashboard
