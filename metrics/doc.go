// Package metrics shows what clients and servers count to Prometheus.
//
//	registry.MustRegister(metrics.NewServer(srv))
//	registry.MustRegister(metrics.NewClient(conn))
//
// The collectors copy counters when they are scraped and cost nothing in
// between. Their labels are the RPC, its channel and the reason of a drop; never
// a player, since there are too many of those. For one player's figures use
// client.Conn.Stats, or ds.Player; or the page of package metrics/dashboard, which shows
// the same and more without Prometheus.
//
// frame_bytes_total shows on both sides where the bytes go. Its stages are each a
// figure of its own, not parts of a sum: full, what the frames would take as an engine packs
// them; payload, what they take as coded; aead, what encrypting and authenticating
// their datagrams adds, 16 bytes each or 8 or none by the session's suite; and wire, all
// that goes over the network: payloads, seals and the headers of messages, datagrams, UDP
// and IP. Acks go the other way: uplink_ds_ack_wire_bytes_total, of which
// uplink_ds_ack_aead_bytes_total are seals.
//
// uplink_ds_dropped_total has the reasons. Of RPCs: late, duplicate, baseline_missing,
// desync; malformed and unknown_rpc, which no honest client sends; rate_limited, what players sent
// beyond their limits (ds.Config.RateSlack); queue_full, what did not fit the queue of Poll;
// rejected, what the game's own ds.Validate did not want; kicked, what waited when the session of
// its player was ended by ds.Player.Kick or by a panic in a handler (uplink_ds_panics_total). Of
// datagrams of sessions:
// unauthenticated, which are forged, damaged or of another session; duplicate, which are replays
// or the network's copies; late, stray, unexpected, malformed. Of strangers: cookie, hellos
// that come from an address other than they say or are old; limited, handshakes beyond a
// listener's limits; token, hellos whose token is expired, used, altered or for another
// server; suite, version and full; unknown_session, what belongs to no session, as after a
// restart. Of neither: overrun, what came to another shard than its session's and was too much to
// hand over; kernel, what the kernel dropped before the server could read it, where it tells
// (Linux). uplink_ds_path_migrations_total counts players who went on from another address.
//
// Frames that wait in jitter buffers (ds.Config.JitterBuffer) have uplink_ds_buffer_*, and clients what they are told of it:
// uplink_client_buffer_* and uplink_client_clock_pace_ratio. Those that come after their tick are drops by reason late_for_tick, those
// that are discarded since they arrive too early are drops by reason discarded.
//
// What goes down of a world has metrics of its own, uplink_ds_world_* and uplink_client_world_*, by the world's name; what a
// client cannot use of it is among uplink_client_dropped_total, with the channel replication: late, baseline_missing, desync;
// incomplete, messages of which some fragments never came; and what no server sends: invalid_fragment, truncated, invalid_count,
// invalid_id, invalid_value, malformed. invalid_ack of servers is an ack of what was never sent.
//
// How long frames wait for their handlers is measured by [Handling], for servers whose handlers
// call it.
//
// uplink_client_loss_ratio, uplink_client_loss_burst_payloads and
// uplink_client_redundancy_payloads say how links are now upward: what is lost, how much in
// a row, and how many older payloads ride along for it. Downward
// uplink_client_lost_datagrams_total counts, beside uplink_client_datagrams_total.
// uplink_client_link_bytes_per_second is what goes each way.
//
// What datagrams are shared is in uplink_client_payloads_total (frames_total over it
// is the number of frames a payload), coalesced_payloads_total and the wire stage of
// frame_bytes_total, on both sides. A budget (client.Config.Bandwidth) shows as
// uplink_client_bandwidth_bytes_per_second beside
// uplink_client_bandwidth_limit_bytes_per_second, and as what it led to:
// uplink_client_max_redundancy_payloads, uplink_client_min_frames_per_payload,
// and uplink_client_over_bandwidth_bytes_total for what was sent in spite of it.
package metrics
