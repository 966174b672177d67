package ds

import (
	"slices"

	"github.com/uplink-rpc/uplink/schema"
)

// maxRates is how many of the rates that clients declare are kept compiled.
const maxRates = 16

// rates are the schemas of one RPC at the rates that clients declared last, the
// last one first. A hostile client that declares many others pushes them out, and
// they are compiled again when an honest one declares them; it cannot keep them out.
type rates struct{ schemas []*schema.Schema }

// at gives the schema of s at that rate.
func (r *rates) at(s *schema.Schema, hz float64) (*schema.Schema, error) {
	if hz == s.RateHz() {
		return s, nil
	}
	i := slices.IndexFunc(r.schemas, func(s *schema.Schema) bool { return s.RateHz() == hz })
	if i < 0 {
		made, err := s.AtRate(hz)
		if err != nil {
			return nil, err
		}
		if len(r.schemas) < maxRates {
			r.schemas = append(r.schemas, nil)
		}
		i = len(r.schemas) - 1
		r.schemas[i] = made
	}
	found := r.schemas[i]
	copy(r.schemas[1:i+1], r.schemas[:i])
	r.schemas[0] = found
	return found, nil
}
