package ds

import (
	"errors"

	"github.com/uplink-rpc/uplink/internal/control"
	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/rpcdelta/prior"
)

func checkPriors(priors []*prior.Prior) error {
	for _, p := range priors {
		if p == nil {
			return errors.New("ds: Config.Priors has a nil among its priors")
		}
	}
	return nil
}

// prior gives the prior that a client names, or the built-in one if the server
// does not have it; nil where the codec has no use for one.
func (s *Server) prior(codec rpcdelta.Codec, hash uint64) *prior.Prior {
	if codec != rpcdelta.Adaptive {
		return nil
	}
	for _, p := range s.cfg.Priors {
		if p.Hash() == hash {
			return p
		}
	}
	return prior.Generic()
}

// fellBack counts and logs it if a request is bound with another prior than it
// asks for.
func (s *Server) fellBack(p *Player, here *rpcShard, r *control.BindRequest, used *prior.Prior) {
	if used == nil || used.Hash() == r.Prior {
		return
	}
	here.counts(r.Reliable).fellBack()
	s.cfg.Logger.Warn("prior not known, using the built-in one",
		"rpc", r.Name, "prior", prior.Name(r.Prior), "used", used.String(), "player", p.ID())
}

// priorHash is how an answer names a prior.
func priorHash(p *prior.Prior) uint64 {
	if p == nil {
		return 0
	}
	return p.Hash()
}
