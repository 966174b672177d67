// Package metrics exports the statistics of clients and servers to Prometheus.
//
//	registry.MustRegister(metrics.NewServer(srv))
//	registry.MustRegister(metrics.NewClient(conn))
//
// The collectors copy counters when they are scraped and have no other cost. docs/operations.md
// describes each metric, each reason of a drop, and useful alerts.
//
// No label names a player, so that the number of series does not depend on the number of players.
// For the statistics of one player use client.Conn.Stats or ds.Player.Stats, or the page of package
// metrics/dashboard, which does not need Prometheus.
//
// Register the collectors of [NewHandling] and [NewFileLosses] as well, if your server measures
// handler delays or writes files.
package metrics
