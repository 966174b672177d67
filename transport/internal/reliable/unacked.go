package reliable

// Unacked returns how many segments wait to be sent or acknowledged.
func (c *Channel) Unacked() int {
	if c.kcp == nil {
		return 0
	}
	return c.kcp.WaitSnd()
}
