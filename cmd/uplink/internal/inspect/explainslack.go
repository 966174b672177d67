package inspect

import "github.com/uplink-rpc/uplink/internal/control"

// slack explains how jitter buffers stand, and the acks after that.
func (e *Explained) slack(p *player, b []byte) {
	all, acks, err := control.ParseSlack(nil, b)
	if err != nil {
		e.note("%v", err)
		return
	}
	e.add(8, 8, 0, "jitter buffers", "%d", len(all))
	size := (len(b) - len(acks) - 1) / len(all)
	at := 16
	for i := range all {
		s := &all[i]
		e.add(at, float64(8*size), 0, "jitter buffer", "RPC %d: slack %v of %v, %d ticks without a frame, %d frames late", s.RPC, s.Slack, s.Target, s.Missing, s.Late)
		at += 8 * size
	}
	e.acks(p, acks, at)
}
