package rpcdelta

import (
	"fmt"
	"hash/fnv"
	"sync"

	"github.com/uplink-rpc/uplink/rpcdelta/internal/adaptive"
	"github.com/uplink-rpc/uplink/schema"
)

// MaxPrior is the maximum size of an encoded prior, in bytes.
const MaxPrior = adaptive.MaxPrior

// ErrPrior is wrapped by the errors of [ParsePrior].
var ErrPrior = adaptive.ErrPrior

// Prior is the starting point of a stream of the adaptive codec. Both ends need the same one. It
// holds distributions of residuals, initial parameters for each kind of field, and initial
// parameters for the fields that it was trained on. It is immutable and safe for concurrent use.
type Prior struct{ p *adaptive.Prior }

// GenericPrior returns the built-in prior, the default.
func GenericPrior() *Prior { return generic() }

var generic = sync.OnceValue(func() *Prior { return &Prior{adaptive.Generic()} })

// ParsePrior parses an encoded prior, as [Prior.Append] and the command uplink train write it. An
// error wraps [ErrPrior] and describes the problem. A prior takes about 70 KiB and four times the
// size of data, which must not exceed [MaxPrior]; parsing never takes more than 60 MiB. data may be
// untrusted and is not retained.
func ParsePrior(data []byte) (*Prior, error) {
	p, err := adaptive.ParsePrior(data)
	if err != nil {
		return nil, fmt.Errorf("rpcdelta: prior: %w", err)
	}
	return &Prior{p}, nil
}

// Append appends the encoded prior to dst.
func (p *Prior) Append(dst []byte) []byte { return p.p.Append(dst) }

// Hash returns a hash that identifies the prior. Two priors have the same hash with probability
// 2^-64.
func (p *Prior) Hash() uint64 { return p.p.Hash() }

// Fields returns the number of fields that the prior was trained on, 0 for the built-in one.
func (p *Prior) Fields() int { return p.p.Fields() }

// String returns the hash as logs and commands show it, 16 hexadecimal digits.
func (p *Prior) String() string { return PriorName(p.Hash()) }

// PriorName returns the name of the prior with this hash.
func PriorName(hash uint64) string { return fmt.Sprintf("%016x", hash) }

// priorKey returns the key of a field in priors: a hash of the RPC and of all that determines the
// encoding of the field.
func (s *format) priorKey(f *schema.Field) uint64 {
	h := fnv.New64a()
	h.Write([]byte(s.RPC() + "\n" + f.String()))
	return max(1, h.Sum64())
}

// models caches the models of a schema, by prior.
type models struct {
	mu    sync.Mutex
	known map[*Prior]*adaptive.Model
}

// maxModels is the maximum number of cached models.
const maxModels = 8

// model returns the schema compiled for a prior, the generic one if p is nil.
func (s *format) model(p *Prior) *adaptive.Model {
	if p == nil {
		p = generic()
	}
	s.models.mu.Lock()
	defer s.models.mu.Unlock()
	m := s.models.known[p]
	if m == nil {
		m = p.p.Compile(s.modelFields(), s.RateHz())
		if s.models.known == nil || len(s.models.known) >= maxModels {
			s.models.known = map[*Prior]*adaptive.Model{}
		}
		s.models.known[p] = m
	}
	return m
}
