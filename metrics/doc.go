// Package metrics shows what clients and servers count to Prometheus.
//
//	registry.MustRegister(metrics.NewServer(srv))
//	registry.MustRegister(metrics.NewClient(conn))
//
// The collectors copy counters when they are scraped and cost nothing in
// between. Their labels are the RPC, its channel and the reason of a drop; never
// a player, since there are too many of those. For one player's figures use
// client.Conn.Stats, or ds.Player.
//
// uplink_ds_dropped_total has the reasons: limited is what players sent beyond
// their limits (ds.Config.RateSlack), queue_full what did not fit the queue of Poll, and
// refused what the game's own ds.Validate did not want.
//
// What datagrams are shared is in uplink_client_payloads_total (frames_total over it
// is the number of frames a payload), shared_payloads_total and the wire stage of
// frame_bytes_total, on both sides. A budget (client.Config.Bandwidth) shows as
// uplink_client_bandwidth_bytes_per_second beside
// uplink_client_bandwidth_limit_bytes_per_second, and as what it led to:
// uplink_client_redundancy_limit_payloads, uplink_client_min_frames_per_payload,
// and uplink_client_over_bandwidth_bytes_total for what was sent in spite of it.
package metrics
