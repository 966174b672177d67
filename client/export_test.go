package client

// Held returns the length of each list of a connection that a server can make longer, by name. Call
// it while nothing is received.
func Held(c *Conn) map[string]int {
	held := map[string]int{}
	c.down.mu.Lock()
	defer c.down.mu.Unlock()
	for n := range c.down.offers {
		if o := c.down.offers[n]; o != nil {
			held["offers"]++
			held["fields"] += len(o.offer.Fields)
		}
		if c.down.by[n] != nil {
			held["numbers"]++
		}
	}
	held["worlds"], held["past"] = len(c.down.taken), len(c.down.past)
	for _, d := range c.down.taken {
		held["initial bytes"] += cap(d.initial)
		if in, ok := d.inlet.(interface{ held(map[string]int) }); ok {
			in.held(held)
		}
	}
	for _, s := range c.all() {
		s.mu.Lock()
		held["streams"]++
		held["requests"] += s.pending
		s.mu.Unlock()
	}
	return held
}

func (in *snapshotInlet[T]) held(all map[string]int) {
	if in.dec != nil {
		all["snapshot bytes"] += in.dec.Memory()
	}
	all["objects"] += cap(in.scratch.Objects)
}

func (in *stateInlet[T]) held(all map[string]int) {
	all["updates"] += len(in.queue)
	all["spare updates"] += len(in.spare)
}
