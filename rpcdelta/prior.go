package rpcdelta

import (
	"fmt"
	"hash/fnv"
	"sync"

	"github.com/uplink-rpc/uplink/rpcdelta/internal/adaptive"
	"github.com/uplink-rpc/uplink/schema"
)

// MaxPrior is the most bytes of a prior's file.
const MaxPrior = adaptive.MaxPrior

// ErrPrior is wrapped by the errors of [ParsePrior].
var ErrPrior = adaptive.ErrPrior

// Prior is what a stream of the adaptive codec starts from; both ends need the
// same. It holds how wide residuals are, where fields of each kind start, and
// where single fields start that it was trained on. It is immutable: any number of
// encoders and decoders may share it.
type Prior struct{ p *adaptive.Prior }

// GenericPrior is the built-in prior, which a config without one means.
func GenericPrior() *Prior { return generic() }

var generic = sync.OnceValue(func() *Prior { return &Prior{adaptive.Generic()} })

// ParsePrior reads a prior's file, as [Prior.Append] writes it and the command
// uplink train. Any bytes are safe: an error wraps [ErrPrior] and says what is
// wrong. A prior takes about 70 KiB and four times the size of its file, which is
// at most [MaxPrior]; no file takes more than 60 MiB to parse. data is not kept.
func ParsePrior(data []byte) (*Prior, error) {
	p, err := adaptive.ParsePrior(data)
	if err != nil {
		return nil, fmt.Errorf("rpcdelta: prior: %w", err)
	}
	return &Prior{p}, nil
}

// Append appends the prior as a file.
func (p *Prior) Append(dst []byte) []byte { return p.p.Append(dst) }

// Hash names the prior: different for different ones, but for one chance in
// 2^64.
func (p *Prior) Hash() uint64 { return p.p.Hash() }

// Fields is how many single fields the prior was trained on; 0 for the built-in
// one.
func (p *Prior) Fields() int { return p.p.Fields() }

// String is the hash as logs and commands show it, 16 hexadecimal digits.
func (p *Prior) String() string { return PriorName(p.Hash()) }

// PriorName is the name of the prior of a hash.
func PriorName(hash uint64) string { return fmt.Sprintf("%016x", hash) }

// priorKey is what a prior knows a field by: the RPC and all that decides the
// field's bits on the wire.
func (s *format) priorKey(f *schema.Field) uint64 {
	h := fnv.New64a()
	h.Write([]byte(s.RPC() + "\n" + f.String()))
	return max(1, h.Sum64())
}

// models are a schema compiled for each prior that is in use.
type models struct {
	mu    sync.Mutex
	known map[*Prior]*adaptive.Model
}

// maxModels is how many stay compiled.
const maxModels = 8

// model gives the schema compiled for a prior, the generic one if nil.
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
