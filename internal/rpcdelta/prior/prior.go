// Package prior reads, writes and trains priors: the state from which streams of the adaptive codec
// start, see rpcdelta.EncoderConfig.
package prior

import (
	"fmt"

	"github.com/uplink-rpc/uplink/internal/rpcdelta/adaptive"
)

// MaxSize is the maximum size of an encoded prior, in bytes.
const MaxSize = adaptive.MaxPrior

// ErrInvalid is wrapped by the errors of [Parse].
var ErrInvalid = adaptive.ErrPrior

// Prior is the starting point of a stream of the adaptive codec. Both ends need the same one. It
// holds distributions of residuals, initial parameters for each kind of field, and initial
// parameters for the fields that it was trained on. It is immutable and safe for concurrent use.
type Prior adaptive.Prior

func (p *Prior) internal() *adaptive.Prior { return (*adaptive.Prior)(p) }

// Generic returns the built-in prior, the default.
func Generic() *Prior { return (*Prior)(adaptive.Generic()) }

// Parse parses an encoded prior, as [Prior.Append] and the command uplink train write it. An error
// wraps [ErrInvalid] and describes the problem. data must not exceed [MaxSize]. A prior takes about
// 70 KiB of memory plus four times the size of data; parsing never takes more than 60 MiB. data may
// be untrusted and is not retained.
func Parse(data []byte) (*Prior, error) {
	p, err := adaptive.ParsePrior(data)
	if err != nil {
		return nil, fmt.Errorf("prior: %w", err)
	}
	return (*Prior)(p), nil
}

// Append appends the encoded prior to dst.
func (p *Prior) Append(dst []byte) []byte { return p.internal().Append(dst) }

// Hash returns a hash that identifies the prior. Two priors have the same hash with probability
// 2^-64.
func (p *Prior) Hash() uint64 { return p.internal().Hash() }

// Fields returns the number of fields that the prior was trained on, 0 for the built-in one.
func (p *Prior) Fields() int { return p.internal().Fields() }

// String returns the hash as logs and commands show it, 16 hexadecimal digits.
func (p *Prior) String() string { return Name(p.Hash()) }

// Name returns the name of the prior with this hash.
func Name(hash uint64) string { return fmt.Sprintf("%016x", hash) }
