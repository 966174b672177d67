package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
)

// downDescs are the metrics of worlds that both sides have.
type downDescs struct {
	messages, updates, datagrams, bytes, initial, ackBytes *prometheus.Desc
}

func (f family) downstreams(verb string) downDescs {
	return downDescs{
		messages:  f.desc("world_messages_total", "Messages "+verb+" of a world: of snapshots each one.", "world"),
		updates:   f.desc("world_updates_total", "Objects in a world's messages "+verb+" of state: updated, or said to be gone.", "world"),
		datagrams: f.desc("world_datagrams_total", "Datagrams "+verb+" with a world's messages, or parts of them.", "world"),
		bytes:     f.desc("world_bytes_total", "Bytes of a world's messages "+verb+".", "world"),
		initial:   f.desc("world_initial_bytes_total", "Bytes "+verb+" of a world's initial state, over the reliable channel.", "world"),
		ackBytes:  f.desc("world_ack_bytes_total", "Bytes of the acks of a world's messages, without headers.", "world"),
	}
}

func (d *downDescs) describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{d.messages, d.updates, d.datagrams, d.bytes, d.initial, d.ackBytes} {
		ch <- d
	}
}

// serverDowns are those of a server alone.
type serverDowns struct {
	downDescs

	players, acked, starts, fragmented, wire, age *prometheus.Desc
}

func (f family) serverDowns() serverDowns {
	return serverDowns{
		downDescs:  f.downstreams("sent"),
		players:    f.desc("world_players", "Players whom a world is sent to now.", "world"),
		acked:      f.desc("world_acked_messages_total", "Messages of a world that are known to have come.", "world"),
		starts:     f.desc("world_resets_total", "How often a world's state began anew for a player: nothing was acked for too long, or the client had lost track.", "world"),
		fragmented: f.desc("world_fragmented_messages_total", "Messages of a world that took several datagrams.", "world"),
		wire:       f.desc("world_wire_bytes_total", "Bytes of a world's datagrams, seals and all headers down to IP included.", "world"),
		age:        f.desc("world_baseline_age_ticks", "How many ticks before the last message its baseline was: of all players the most.", "world"),
	}
}

func (d *serverDowns) describe(ch chan<- *prometheus.Desc) {
	d.downDescs.describe(ch)
	for _, d := range []*prometheus.Desc{d.players, d.acked, d.starts, d.fragmented, d.wire, d.age} {
		ch <- d
	}
}

func (e emitter) serverDown(d *serverDowns, st *ds.ReplicationStats, drops *prometheus.Desc) {
	e.counter(d.messages, st.Messages, st.Name)
	e.counter(d.updates, st.Updates, st.Name)
	e.counter(d.datagrams, st.Datagrams, st.Name)
	e.counter(d.bytes, st.Bytes, st.Name)
	e.counter(d.initial, st.InitialBytes, st.Name)
	e.counter(d.ackBytes, st.AckBytes, st.Name)
	e.gauge(d.players, float64(st.Ready), st.Name)
	e.counter(d.acked, st.Acked, st.Name)
	e.counter(d.starts, st.Resets, st.Name)
	e.counter(d.fragmented, st.Fragmented, st.Name)
	e.counter(d.wire, st.WireBytes(), st.Name)
	e.gauge(d.age, float64(st.BaselineAge), st.Name)
	var r reasons
	r.add("too_large", st.Unsent)
	e.drops(drops, &r, st.Name, "replication")
}

// clientDown emits what a client counted; what was not used is among the drops.
func (e emitter) clientDown(d *downDescs, st *client.ReplicationStats, drops *prometheus.Desc) {
	e.counter(d.messages, st.Messages, st.Name)
	e.counter(d.updates, st.Updates, st.Name)
	e.counter(d.datagrams, st.Datagrams, st.Name)
	e.counter(d.bytes, st.Bytes, st.Name)
	e.counter(d.initial, st.InitialBytes, st.Name)
	e.counter(d.ackBytes, st.AckBytes, st.Name)
	var r reasons
	r.add("late", st.Late)
	r.add("baseline_missing", st.BaselineMissing)
	r.add("desync", st.Desync)
	r.add("incomplete", st.Incomplete)
	r.add("unpolled", st.Unpolled)
	r.add("invalid_fragment", st.BadFragments)
	r.add("truncated", st.Truncated)
	r.add("invalid_count", st.BadCounts)
	r.add("invalid_id", st.BadIDs)
	r.add("invalid_value", st.BadValues)
	r.add("malformed", st.Malformed)
	e.drops(drops, &r, st.Name, "replication")
}
