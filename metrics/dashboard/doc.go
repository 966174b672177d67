// Package dashboard is a page that shows a dedicated server at work: what its players'
// calls take in full and as sent, where the bits go, what is lost and dropped and why, and
// which players are worst off. It is embedded in the binary and asks nobody else for anything.
//
//	d := dashboard.New(srv, dashboard.Config{})
//	go d.Run(ctx)
//	guard, err := dashboard.NewGuard(listener.Addr(), "")
//	http.Serve(listener, guard.Handler(d))
//
// Once a second it takes the server's counters, which costs nothing that can be measured. Only
// while somebody looks does it look at each player, and has the server measure what the bits of
// some of the frames are spent on.
package dashboard
