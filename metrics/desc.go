package metrics

import "github.com/prometheus/client_golang/prometheus"

// family makes the descriptions of one side's metrics, under one prefix.
type family struct{ prefix string }

func (f family) desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(f.prefix+name, help, labels, nil)
}

// rpcDescs are the metrics of RPCs that both sides have.
type rpcDescs struct {
	frames, older, payloads, shared, bytes, age, fallbacks *prometheus.Desc
}

func (f family) rpcs(verb string) rpcDescs {
	return rpcDescs{
		frames:   f.desc("frames_total", "Frames "+verb+", by kind: delta, keyframe (no baseline) or reset.", "rpc", "channel", "kind"),
		older:    f.desc("redundant_frames_total", "Older frames that rode along in the payloads "+verb+".", "rpc", "channel"),
		payloads: f.desc("payloads_total", "Payloads "+verb+": each holds a frame, or several.", "rpc", "channel"),
		shared:   f.desc("coalesced_payloads_total", "Payloads "+verb+" in a datagram after another one.", "rpc", "channel"),
		bytes: f.desc("frame_bytes_total", "Bytes of the frames "+verb+" at each stage: full as the engine would pack them, payload as coded, "+
			"aead what makes their datagrams secret and authentic, wire all of it with all headers down to IP "+
			"(for the reliable channel an estimate without retransmissions).", "rpc", "channel", "stage"),
		age:       f.desc("baseline_age_frames", "How many frames before a delta its baseline is.", "rpc", "channel"),
		fallbacks: f.desc("prior_fallbacks_total", "Bindings that use the built-in prior since the server does not have the client's.", "rpc", "channel"),
	}
}

// linkDescs are the metrics of datagrams that both sides have.
type linkDescs struct {
	datagrams, bytes, failed, drops, roundTrip *prometheus.Desc
}

func (f family) links() linkDescs {
	return linkDescs{
		datagrams: f.desc("datagrams_total", "UDP datagrams, by direction: sent or received.", "direction"),
		bytes:     f.desc("datagram_bytes_total", "Bytes of UDP payloads, by direction: sent or received.", "direction"),
		failed:    f.desc("send_failed_total", "Datagrams that the system refused to send."),
		drops: f.desc("dropped_total", "What came or was to be sent and was not used, by reason. RPC and channel are empty for what belongs to none.",
			"rpc", "channel", "reason"),
		roundTrip: f.desc("rtt_seconds", "Measured round trips of all connections, about one a second for each."),
	}
}

func (d *rpcDescs) describe(ch chan<- *prometheus.Desc) {
	ch <- d.frames
	ch <- d.older
	ch <- d.payloads
	ch <- d.shared
	ch <- d.bytes
	ch <- d.age
	ch <- d.fallbacks
}

func (d *linkDescs) describe(ch chan<- *prometheus.Desc) {
	ch <- d.datagrams
	ch <- d.bytes
	ch <- d.failed
	ch <- d.drops
	ch <- d.roundTrip
}
