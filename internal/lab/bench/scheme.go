package bench

import (
	"fmt"
	"strings"

	"github.com/uplink-rpc/uplink/rpcdelta"
)

// scheme is a codec and how its headers are counted.
type scheme struct {
	name  string
	codec rpcdelta.Codec
	// header and ack are the sizes in bytes of a frame's header and of an ack, or 0 for those of the codec.
	header, ack int
}

// The paper's header is two sequence numbers. It does not give their size; its ack is one sequence number of 32 bits.
var schemes = []scheme{
	{name: "paper", codec: rpcdelta.RLE, header: 8, ack: 4},
	{name: "rle", codec: rpcdelta.RLE},
	{name: "adaptive", codec: rpcdelta.Adaptive},
}

// Schemes gives the names that Config.Schemes takes.
func Schemes() []string {
	names := make([]string, len(schemes))
	for i, s := range schemes {
		names[i] = s.name
	}
	return names
}

func schemeOf(name string) (scheme, error) {
	for _, s := range schemes {
		if s.name == name {
			return s, nil
		}
	}
	return scheme{}, fmt.Errorf("--codec %q: want some of %s", name, strings.Join(Schemes(), ", "))
}

// headerBits is the size of a frame's header.
func (s *scheme) headerBits(own int) int {
	if s.header != 0 {
		return 8 * s.header
	}
	return own
}

// ackBytes is the size of an ack.
func (s *scheme) ackBytes(own int) int {
	if s.ack != 0 {
		return s.ack
	}
	return own
}
