package inspect

import (
	"errors"
	"fmt"

	"github.com/uplink-rpc/uplink/capture"
	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/schema"
)

// A capture may be a stranger's: what it makes this program remember is bounded, whatever it says.
const (
	// maxSessionsRead is how many sessions a file may have.
	maxSessionsRead = 1 << 20
	// maxMemory is what all decoders at a time may take, in bytes, about.
	maxMemory = 1 << 30
	// maxRates is how many schemas there may be, one that is called at several rates counted as often.
	maxRates = 256
	// decoderSize is what a decoder takes besides its frames, about.
	decoderSize = 16 << 10
)

var errMemory = errors.New("too many streams at a time for the memory that this may take")

// limits count what the decoders take.
type limits struct {
	memory int
	rates  map[rateKey]*schema.Schema
}

type rateKey struct {
	schema uint64
	hz     float64
}

// atRate gives a schema at the rate of a binding.
func (l *limits) atRate(original *schema.Schema, b *capture.Bound) (*schema.Schema, error) {
	key := rateKey{b.Schema, b.RateHz}
	if s := l.rates[key]; s != nil {
		return s, nil
	}
	if len(l.rates) == maxRates {
		return nil, fmt.Errorf("more than %d schemas and rates", maxRates)
	}
	s, err := original.AtRate(b.RateHz)
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
func (l *limits) take(s *schema.Schema, b *capture.Bound) (int, error) {
	ring := max(b.Ring, rpcdelta.DefaultRing)
	frame := 4*s.Components() + 24
	for i := range s.Fields() {
		if f := &s.Fields()[i]; f.Max != nil && f.Kind == schema.KindBytes {
			frame += 24 + int(*f.Max)
		} else {
			frame += f.Size
		}
	}
	cost := decoderSize + 2*ring*frame
	if b.DeliverLate {
		cost *= 2 // it keeps states of the past
	}
	if l.memory+cost > maxMemory {
		return 0, errMemory
	}
	l.memory += cost
	return cost, nil
}
