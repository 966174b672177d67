package rpcdelta

import "github.com/uplink-rpc/uplink/internal/rpcdelta/prior"

// Prior is the state from which streams of the adaptive codec start. Both ends need the same one.
// It is immutable and safe for concurrent use.
type Prior = prior.Prior

// ParsePrior parses a prior, as the command uplink train writes it. data may be untrusted and is
// not retained. A prior takes about 70 KiB of memory plus four times the size of data; parsing
// never takes more than 60 MiB.
func ParsePrior(data []byte) (*Prior, error) { return prior.Parse(data) }
