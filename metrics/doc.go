// Package metrics shows what clients and servers count to Prometheus.
//
//	registry.MustRegister(metrics.NewServer(srv))
//	registry.MustRegister(metrics.NewClient(conn))
//
// The collectors copy counters when they are scraped and cost nothing in
// between. Their labels are the RPC, its channel and the reason of a drop; never
// a player, since there are too many of those. For one player's figures use
// client.Conn.Stats, or ds.Player.
package metrics
