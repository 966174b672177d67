package client

import (
	"fmt"

	"github.com/uplink-rpc/uplink/rpcdelta"
)

// SetRedundancy changes [Config.Redundancy] while the connection runs, from the next
// call of each RPC on: those that are bound, and those that will be. The server need
// not know. An error says what n may be; nothing is changed then.
func (c *Conn) SetRedundancy(n int) error {
	if err := (rpcdelta.EncoderConfig{Redundancy: n}).Check(); err != nil {
		return fmt.Errorf("client: SetRedundancy: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.redundancy = n
	for _, s := range c.streams {
		s.setOlder(n)
	}
	return nil
}

// setOlder is SetRedundancy for one RPC.
func (s *stream) setOlder(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.older = n
	if s.enc != nil {
		_ = s.enc.SetRedundancy(n) // checked
	}
}
