package client

import (
	"fmt"

	"github.com/uplink-rpc/uplink/internal/control"
	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/rpcdelta/prior"
)

// prior is what streams start from if the server has it; nil where the codec has
// no use for one.
func (c *Config) prior() *prior.Prior {
	switch {
	case c.Codec != rpcdelta.Adaptive:
		return nil
	case c.Prior == nil:
		return prior.Generic()
	}
	return c.Prior
}

// priorHash is how a request to bind names it.
func (c *Config) priorHash() uint64 {
	if p := c.prior(); p != nil {
		return p.Hash()
	}
	return 0
}

// agreed gives the prior that the server's answer names: the client's, or the
// built-in one instead.
func (s *stream) agreed(a *control.BindAnswer) (p *prior.Prior, fallback bool, err error) {
	p = s.conn.cfg.prior()
	if p == nil || a.Prior == p.Hash() {
		return p, false, nil
	}
	generic := prior.Generic()
	if a.Prior != generic.Hash() {
		return nil, false, fmt.Errorf("client: bind %s: the server's built-in prior is %s, this one's %v: both ends need the same version of uplink",
			s.schema.RPC(), prior.Name(a.Prior), generic)
	}
	return generic, true, nil
}

// logFallback says that the server does not have the client's prior.
func (s *stream) logFallback() {
	s.conn.cfg.Logger.Warn("prior not known to the server, using the built-in one",
		"rpc", s.schema.RPC(), "prior", s.conn.cfg.prior().String(), "used", prior.Generic().String())
}
