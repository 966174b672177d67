package metrics

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/fleet"
	"github.com/uplink-rpc/uplink/internal/replication"
)

// server collects the statistics of a dedicated server.
type server struct {
	shared
	srv *ds.Server

	kernel atomic.Uint64 // number of drops by the kernel at the last scrape
}

// NewServer returns the collector of the statistics of a dedicated server, uplink_ds_*. Register it
// with a registry of your own.
func NewServer(srv *ds.Server) prometheus.Collector {
	s := &server{shared: newShared("uplink_ds_", "delivered", "sent"), srv: srv}
	s.define(serverRPCMetrics(&ds.RPCStats{}), "rpc", "channel")
	s.define(bufferMetrics(&ds.BufferStats{}), "rpc")
	s.define(serverWorldMetrics(&replication.Stats{}), "world")
	s.define(serverMetrics(&ds.Stats{}))
	s.define(eventMetrics(&ds.Event{}), "event")
	s.define(fleetMetrics(&fleet.Stats{}))
	return s
}

func serverRPCMetrics(s *ds.RPCStats) []metric {
	return []metric{
		row("missed_frames_total", "Frames that had not arrived when newer ones did. late_frames_total counts those that arrived later.",
			s.Missed+s.LateFrames),
		row("late_frames_total", "Frames delivered after newer ones.", s.LateFrames),
		row("recovered_frames_total", "Frames delivered by redundant copies, because an earlier datagram that contained them did not arrive.", s.Recovered),
		row("time_detections_total", "How often calls of a player were ahead of the server's clock, for RPCs with a time check.", s.TimeDetections),
	}
}

func bufferMetrics(s *ds.BufferStats) []metric {
	return []metric{
		labeled("buffer_ticks_total", "result", "released", "Ticks of jitter buffers by result: released (a frame), repeated (the last one again) or missing.",
			s.Released),
		labeled("buffer_ticks_total", "result", "repeated", "", s.Repeated),
		labeled("buffer_ticks_total", "result", "missing", "", s.Missing-s.Repeated),
		row("buffer_dry_ticks_total", "Repeated and missing ticks at which the jitter buffer was empty.", s.Dry),
		row("buffer_late_frames_total", "Frames that arrived at their jitter buffer after their tick.", s.Late),
		row("buffer_resyncs_total", "Resyncs of jitter buffers.", s.Resyncs),
		row("buffers", "Jitter buffers: players with a buffer for the RPC.", s.Buffers),
		row("buffer_frames", "Frames in all jitter buffers.", s.Held),
		row("buffer_slack_seconds", "Mean slack of frames in the jitter buffers: the time from arrival to release, negative if they are late.",
			s.Slack.Seconds()),
		row("buffer_target_seconds", "Mean target of the slack.", s.Target.Seconds()),
		row("buffer_tick_rate_ratio", "Measured rate of the calls of Poll, divided by TickHz: 1 is normal.", s.Rate),
	}
}

func serverWorldMetrics(s *replication.Stats) []metric {
	return []metric{
		row("world_players", "Players that are subscribed to a world.", s.Ready),
		row("world_ticks_total", "Ticks of a world.", s.Ticks),
		row("world_tick_rate_ratio", "Measured tick rate of a world, divided by TickHz: 1 is normal.", s.Rate),
		row("world_encodings_total", "Encodings of a world's snapshots, or of its groups of objects if it has areas. Players with the same baseline share one.",
			s.Encodings),
		row("world_acked_messages_total", "Acknowledged messages of a world.", s.Acked),
		row("world_resets_total", "Resets of the state synchronization of a player: acks were missing for too long, or the client requested one.",
			s.Resets),
		row("world_fragmented_messages_total", "Messages of a world sent in several datagrams.", s.Fragmented),
		row("world_wire_bytes_total", "Bytes of a world's datagrams, including AEAD overhead and all headers down to IP.",
			s.WireBytes()),
		row("world_baseline_age_ticks", "Age of the baseline of the last message, in ticks: the maximum of all players.",
			s.BaselineAge),
		row("world_ack_age_ticks", "Ticks since a client last acknowledged a message: the maximum of all players.", s.AckAge),
		row("world_keyframes_total", "Messages of a world without a baseline.", s.Keyframes),
		row("world_sharing_players_total", "Sum over all messages of the number of players who share their encoding. Divide it by the messages.",
			s.Sharing),
		row("world_held_messages_total", "Messages of a world that were not made, because the path of a player had no room for them.", s.Held),
		row("world_objects", "Objects that the players have according to their last messages: the sum of all players.", s.Objects),
		row("world_waiting_objects", "Objects that wait for bandwidth, to enter a view or to be updated: the sum of all players.", s.Waiting),
	}
}

func eventMetrics(e *ds.Event) []metric {
	return []metric{labeled("events_total", "cause", e.Cause, "Events of sessions, by event and cause: who joined, left, was refused and so on.", e.Count)}
}

func fleetMetrics(s *fleet.Stats) []metric {
	const joins = "Joins with a valid token by what the fleet's store said: admitted, used (elsewhere), refused (it failed) or unchecked (it failed and the join was allowed)."
	number := map[bool]int{true: 1}
	return []metric{
		labeled("fleet_joins_total", "result", "admitted", joins, s.Admitted),
		labeled("fleet_joins_total", "result", "used", "", s.Used),
		labeled("fleet_joins_total", "result", "refused", "", s.Refused),
		labeled("fleet_joins_total", "result", "unchecked", "", s.Unchecked),
		row("fleet_replaced_total", "Sessions that ended because their client joined another server of the fleet.", s.Replaced),
		row("fleet_store_errors_total", "Failed calls of the fleet's store.", s.Errors),
		row("fleet_store_up", "Whether the last call of the fleet's store succeeded: 1 or 0.", number[s.Up]),
		row("fleet_listed", "Whether the directory accepted the server's last announcement: 1 or 0.", number[s.Listed]),
		row("fleet_unrecorded", "Sessions and used tokens that the fleet's store does not know yet.", s.Unrecorded),
	}
}

func serverMetrics(s *ds.Stats) []metric {
	return []metric{
		row("acks_total", "Datagrams of acks alone.", s.Acks.Messages),
		row("acks_piggybacked_total", "Messages of worlds with acks in front of them.", s.Acks.Piggybacked),
		row("ack_bytes_total", "Bytes of the acks sent, without headers.", s.Acks.Bytes),
		row("ack_aead_bytes_total", "AEAD overhead of the datagrams of acks, in bytes.", s.Acks.AEADBytes),
		row("ack_wire_bytes_total", "Bytes of the datagrams of acks alone, including AEAD overhead and all headers down to IP, and of piggybacked acks.",
			s.Acks.WireBytes()),
		row("players", "Connected players.", s.Transport.Open),
		row("max_players", "Maximum number of players.", s.Transport.MaxConns),
		row("lost_datagrams_total", "Datagrams of the clients that did not arrive.", s.Transport.Lost),
		row("path_migrations_total", "Changes of players' addresses, after path validation.",
			s.Transport.PathMigrations),
		row("small_paths_total", "How often a path was found not to carry datagrams of 1,200 bytes, which are sent in parts there.", s.Transport.SmallPaths),
		row("forwarded_datagrams_total", "Datagrams that arrived at another shard than their session's and were forwarded.",
			s.Transport.Forwarded),
		row("panics_total", "Recovered panics of the game's callbacks and of decoders. Each closes the session of one player.",
			s.Panics),
		row("requests_total", "Requests of clients that reached the game.", s.Requests),
		row("calls_total", "Calls between server and client: of the client's RPCs by the server.", s.Calls),
		row("call_bytes_total", "Bytes of the payloads of these calls.", s.CallBytes),
		labeled("stream_bytes_total", "direction", "sent", "Bytes of byte streams, by direction: sent or received.", s.StreamBytesSent),
		labeled("stream_bytes_total", "direction", "received", "", s.StreamBytesReceived),
		labeled("failed_sessions_total", "cause", "protocol", "Sessions closed because of an error on the reliable channel, by cause: protocol or unacknowledged.",
			s.Transport.ProtocolErrors),
		labeled("failed_sessions_total", "cause", "unacknowledged", "", s.Transport.Unacknowledged),
	}
}

// Collect implements [prometheus.Collector].
func (s *server) Collect(ch chan<- prometheus.Metric) {
	st := s.srv.Stats()
	for i := range st.RPCs {
		r := &st.RPCs[i]
		s.collectRPC(ch, r.RPC, &rpcStats{Stats: r.Stats, Payloads: r.Payloads, fullWireBytes: r.FullWireBytes()}, serverDrops(r.Drops[:]))
		s.collect(ch, serverRPCMetrics(r), r.RPC, channel(r.Reliable))
		if b := &r.Buffer; b.Buffers != 0 || b.Released+b.Missing != 0 {
			s.collect(ch, bufferMetrics(b), r.RPC)
		}
	}
	for i := range st.Replication {
		r := &st.Replication[i]
		s.collectWorld(ch, r.Name, worldStats{r.Messages, r.Updates, r.Datagrams, r.Bytes, r.InitialBytes, r.AckBytes},
			drops{"too_large": r.Unsent})
		s.collect(ch, serverWorldMetrics(r), r.Name)
	}
	s.collect(ch, serverMetrics(&st))
	if st.Fleet != nil {
		s.collect(ch, fleetMetrics(st.Fleet))
	}
	for i := range st.Events {
		s.collect(ch, eventMetrics(&st.Events[i]), st.Events[i].Kind)
	}
	d := serverDrops(st.Drops[:])
	if n, ok := s.kernelDrops(); ok {
		d["kernel"] = n
	}
	t := &st.Transport
	s.collectLink(ch, linkStats{t.DatagramsSent, t.BytesSent, t.DatagramsReceived, t.BytesReceived, t.SendFailed, t.RTTs},
		d, t.Dropped.All())
}

func serverDrops(counts []uint64) drops {
	d := drops{}
	for i, n := range counts {
		d[ds.Drop(i).String()] += n
	}
	return d
}

// kernelDrops returns the datagrams that the kernel dropped, on systems that report them. The count
// never decreases, although the kernel discards the counts of closed sockets.
func (s *server) kernelDrops() (n uint64, ok bool) {
	now, ok := s.srv.KernelDrops()
	for n = s.kernel.Load(); now > n; n = s.kernel.Load() {
		if s.kernel.CompareAndSwap(n, now) {
			return now, ok
		}
	}
	return n, ok
}
