package inspect

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/uplink-rpc/uplink/capture/record"
	"github.com/uplink-rpc/uplink/cmd/uplink/internal/budget"
	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/schema"
)

// A capture may be a stranger's: what it makes this program remember is bounded, whatever it says.
const (
	// maxSessionsRead is how many sessions a file may have.
	maxSessionsRead = 1 << 20
	// maxRates is how many schemas there may be, one that is called at several rates, or with several priors, counted as
	// often.
	maxRates = 256

	// Sizes in bytes, measured. A decoder that delivers late frames keeps up to lateStates earlier states.
	decoderSize       = 5 << 10
	statePerComponent = 430
	lateStates        = 7

	playerSize  = 512
	sessionSize = 256
	streamSize  = 768
	carriedSize = 256
	payloadSize = 64
	rpcSize     = 2 << 10
	reasonSize  = 128
)

// limits bound what is kept of a file.
type limits struct {
	*budget.Budget
	full  error // the first of keep
	rates map[rateKey]*schema.Schema
}

// keep takes memory for what has to be kept. If there is none left, the inspection ends with the error.
func (l *limits) keep(bytes int) {
	if err := l.Take(bytes); err != nil && l.full == nil {
		l.full = err
	}
}

// spent reports whether an error says that no memory is left, which ends the inspection.
func (l *limits) spent(err error) bool {
	var e *budget.Error
	if !errors.As(err, &e) {
		return false
	}
	l.full = cmp.Or(l.full, err)
	return true
}

// count counts a reason, of which each is kept once.
func (l *limits) count(counts map[string]uint64, reason string, n uint64) {
	if _, ok := counts[reason]; !ok {
		l.keep(reasonSize + len(reason))
	}
	counts[reason] = n
}

type rateKey struct {
	schema, prior uint64
	hz            float64
}

// atRate gives a schema at the rate of a binding.
func (l *limits) atRate(declared *schema.Schema, b *record.Bound) (*schema.Schema, error) {
	key := rateKey{b.Schema, b.Prior, b.RateHz}
	if s := l.rates[key]; s != nil {
		return s, nil
	}
	if len(l.rates) == maxRates {
		return nil, fmt.Errorf("more than %d schemas and rates", maxRates)
	}
	if err := l.TakeMost(budget.Model(declared)); err != nil {
		return nil, err
	}
	s, err := schema.New(declared.RPC(), b.RateHz, declared.Fields())
	if err != nil {
		return nil, err
	}
	if l.rates == nil {
		l.rates = map[rateKey]*schema.Schema{}
	}
	l.rates[key] = s
	return s, nil
}

// take counts what a decoder takes.
func (l *limits) take(s *schema.Schema, b *record.Bound) (int, error) {
	ring := max(b.Ring, rpcdelta.DefaultRing)
	frame := 4*s.Components() + 24
	for i := range s.Fields() {
		if f := &s.Fields()[i]; f.Max != nil && f.Kind == schema.KindBytes {
			frame += 24 + int(*f.Max)
		} else {
			frame += f.Size
		}
	}
	state := statePerComponent * s.Components()
	cost := decoderSize + ring*frame*5/4 + state
	if b.DeliverLate {
		cost += lateStates * (state + 1<<10)
	}
	if err := l.TakeMost(cost); err != nil {
		return 0, err
	}
	return cost, nil
}
