package client

// Held returns the length of each list of a connection that a server can make longer, by name, and
// those of its views. Names of sizes in bytes say so. It is for calls while nothing is received.
func Held(c *Conn, views ...interface{ addHeld(held map[string]int) }) map[string]int {
	held := map[string]int{"offers": len(c.worlds.Offered()), "worlds": len(c.worlds.Stats())}
	for _, v := range views {
		v.addHeld(held)
	}
	for _, s := range c.all() {
		s.mu.Lock()
		held["streams"]++
		held["requests"] += s.pending
		s.mu.Unlock()
	}
	return held
}

func (v *SnapshotView[T]) addHeld(held map[string]int) {
	held["initial bytes"], _ = v.conn.worlds.Received(v.sub)
	held["snapshot bytes"] = v.receiver.Memory()
	held["objects"] = cap(v.scratch.Objects)
}

func (v *StateView[T]) addHeld(held map[string]int) {
	held["updates"] = len(v.receiver.queue)
	held["spare updates"] = len(v.receiver.spare)
}
