package ds

import (
	"sync"

	"github.com/uplink-rpc/uplink/rpcdelta"
)

// counts is what a shard counts for one RPC on one channel. Its goroutine counts the
// deliveries of a batch without a lock, and publishes them at the end of it.
type counts struct {
	fresh RPCStats // not published yet; of the shard's goroutine
	noted bool     // is in the shard's list

	mu    sync.Mutex
	total RPCStats
}

// counts are those of a channel.
func (r *rpcShard) counts(reliable bool) *counts {
	if reliable {
		return &r.reliable
	}
	return &r.unreliable
}

// received counts a payload of size bytes, 0 if it was not used to its end, where the
// player's datagrams have seals of so many, and its frames that were delivered, with
// those before each that are known to be missed since.
func (c *counts) received(frames []rpcdelta.Delivery, size, seal int, a *arrival) {
	st := &c.fresh
	for i := range frames {
		st.count(&frames[i])
	}
	if size == 0 {
		return
	}
	st.Messages++
	st.Bytes += uint64(size)
	if a.shared {
		st.Coalesced++
		st.CoalescedBytes += uint64(a.extra)
		return
	}
	st.AEADBytes += uint64(seal)
}

// drop counts a payload that was dropped, and the frames that are known to be missed
// since. It may be called from any goroutine.
func (c *counts) drop(d Drop, missed uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.total.Drops[d]++
	c.total.Missed += missed
}

// fellBack counts a binding with another prior than the client's.
func (c *counts) fellBack() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.total.PriorFallbacks++
}

// publish has others see what was counted.
func (c *counts) publish() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.total.add(&c.fresh)
	c.fresh, c.noted = RPCStats{}, false
}

// addTo adds what was published.
func (c *counts) addTo(sum *RPCStats) {
	c.mu.Lock()
	defer c.mu.Unlock()
	sum.add(&c.total)
}

// count counts a frame that was delivered.
func (st *RPCStats) count(d *rpcdelta.Delivery) {
	st.Count(&d.Info)
	if d.Late {
		st.LateFrames++
		st.Missed--
		return
	}
	st.Missed += d.Missed
}

// add adds all that o counted.
func (st *RPCStats) add(o *RPCStats) {
	st.Add(&o.Stats)
	st.Messages += o.Messages
	st.Bytes += o.Bytes
	st.Coalesced += o.Coalesced
	st.CoalescedBytes += o.CoalescedBytes
	st.AEADBytes += o.AEADBytes
	st.Missed += o.Missed
	st.PriorFallbacks += o.PriorFallbacks
	st.LateFrames += o.LateFrames
	addDrops(&st.Drops, &o.Drops)
}
