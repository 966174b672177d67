package peer

import (
	"fmt"

	"github.com/uplink-rpc/uplink/schema"
)

// Peer codes the frames of one schema. Its payloads have no header. Not safe for concurrent use.
type Peer interface {
	// Append appends the payload of the last of rows, the frames in a row that Span says, or fewer at the start of a
	// stream. base is a frame that both ends hold, or nil if there is none.
	Append(dst []byte, base *schema.Frame, rows []schema.Frame) ([]byte, error)
	// Decode fills rows, as many as were given to Append, from a payload.
	Decode(rows []schema.Frame, base *schema.Frame, payload []byte) error
}

// Sample is a frame and the one it would be coded against, to train a peer. Base is nil if there is none.
type Sample struct{ Base, Frame *schema.Frame }

// Class groups peers by who would pick them.
type Class string

// The classes of peers.
const (
	// Engine is what game engines do.
	Engine Class = "engine"
	// General is a compressor or serializer for data of any sort.
	General Class = "general"
)

// Kind is a peer that can be made for a schema.
type Kind struct {
	Name  string
	Class Class
	// Span is how many frames each payload has, 1 or more.
	Span int
	// Delta says that payloads are differences from a baseline.
	Delta bool
	// Forms are ways to lay out what the peer gets, of which the one with the fewest bits is shown; at least one.
	Forms []Form
	// New makes the peer. Not every peer learns from samples.
	New func(s *schema.Schema, form Form, samples []Sample) (Peer, error)
}

// Kinds lists all peers.
func Kinds() []Kind {
	whole := []Form{""}
	return []Kind{
		{Name: "full", Class: Engine, Span: 1, Forms: whole, New: newFull},
		{Name: "quake3", Class: Engine, Span: 1, Delta: true, Forms: whole, New: newQuake},
		{Name: "chain4", Class: Engine, Span: 4, Forms: whole, New: newChain},
		{Name: "varint", Class: General, Span: 1, Delta: true, Forms: []Form{Varint}, New: onDifferences(newUncompressed)},
		{Name: "zstd", Class: General, Span: 1, Delta: true, Forms: Forms(), New: onDifferences(newZstd)},
		{Name: "flate", Class: General, Span: 1, Delta: true, Forms: Forms(), New: onDifferences(newFlate)},
		{Name: "s2", Class: General, Span: 1, Delta: true, Forms: Forms(), New: onDifferences(newS2)},
		{Name: "lz4", Class: General, Span: 1, Delta: true, Forms: Forms(), New: onDifferences(newLZ4)},
		{Name: "msgpack", Class: General, Span: 1, Forms: whole, New: newMsgpack},
		{Name: "protobuf", Class: General, Span: 1, Forms: whole, New: newProtobuf},
	}
}

// malformed says that a payload is not what the peer writes.
func malformed(peer string) error { return fmt.Errorf("%s: malformed payload", peer) }
