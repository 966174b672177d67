package ds

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/uplink-rpc/uplink/internal/message"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/versions"
)

// version is an RPC with the fields and the rate that a client declared. Clients with the same
// declaration share it.
type version struct {
	fields     []string             // descriptions of the fields; nil for the server's fields
	schema     *schema.Schema       // schema of the frames that clients send, with their rate and factors of velocities
	conversion *versions.Conversion // conversion to the server's fields; nil if they are the same
}

const (
	// maxVersions is the number of versions of an RPC that are kept in a shard.
	maxVersions = 16
	// A client may have twice the fields, components and bytes of the server, or these numbers more
	// than the server, whichever is larger. The cost to the server is thus proportional to the size
	// of the game's own RPC.
	spareFields     = 8
	spareComponents = 8
	spareBytes      = 32
	// spareMemory is the minimum limit of the memory of a player's bindings, in bytes. The limit is
	// otherwise twice the memory of bindings with the server's fields.
	spareMemory = 32000
)

// atMost returns the limit of a client's number of fields, components or bytes, given the server's
// number n.
func atMost(n, spare int) int { return n + max(n, spare) }

// fieldsOf returns the descriptions of a client's fields, or nil if they are the server's. If they
// are invalid or incomplete, it sets the reason of the answer.
func fieldsOf(a *message.BindAnswer, own *schema.Schema, r *message.BindRequest) (fields []string) {
	most := atMost(len(own.Fields()), spareFields)
	switch {
	case len(r.Fields) > most || len(r.Described) > len(r.Fields):
		a.Reason = message.ReasonInvalid
		a.Theirs = fmt.Sprintf("%d fields and %d descriptions, want at most %d: the server has %d; update the server first",
			len(r.Fields), len(r.Described), most, len(own.Fields()))
		return nil
	case r.Fingerprint == own.Fingerprint():
		return nil
	case len(r.Fields) == 0:
		a.Reason, a.Theirs = message.ReasonInvalid, "no fields"
		return nil
	}
	fields, a.Ask = r.Descriptions(own)
	switch {
	case len(a.Ask) > 0:
		a.Reason = message.ReasonDescribe
	case versions.Fingerprint(own.RPC(), fields) == r.Fingerprint:
	case len(r.Described) < len(fields): // different descriptions have the same hash
		a.Reason = message.ReasonDescribe
		for i := range fields {
			a.Ask = append(a.Ask, i)
		}
	default:
		a.Reason = message.ReasonInvalid
	}
	return fields
}

var errNoField = errors.New("no field in common")

// differences returns the fields that only the client or only the server has.
func (v *version) differences() (d message.Differences) {
	if v.conversion == nil {
		return d
	}
	return message.Differences{Asking: v.conversion.Skipped(), Answering: v.conversion.Missing()}
}

// converted returns the fields that have other resolutions or ranges at both ends, for the log: at
// most message.MaxDifferences. The descriptions of the client may be hostile.
func (v *version) converted() string {
	if v.conversion == nil {
		return ""
	}
	var texts []string
	fields := v.conversion.Converted()
	for _, f := range fields[:min(len(fields), message.MaxDifferences)] {
		texts = append(texts, fmt.Sprintf("client {%s}, server {%s}", message.Printable(f[0], 128), f[1]))
	}
	return strings.Join(texts, "; ")
}

// frameSize returns the maximum number of bytes of a frame in a ring, and of its slot.
func frameSize(s *schema.Schema) int { return 8 + 4*s.Components() + s.BinaryBytes() }

// memoryOf returns the approximate size of a binding in bytes with the server's schema, and with a
// different schema that only one player may use.
func memoryOf(s *schema.Schema, own bool, ring int) int {
	frames := ring * s.BinaryBytes()
	if own {
		return 4000 + 1450*s.Components() + frames
	}
	return 6500 + 1750*s.Components() + 1000*len(s.Fields()) + frames
}

// refuse sets the reason of an answer to a client whose fields are not those of the server.
func refuse(a *message.BindAnswer, own *schema.Schema, fields []string, err error) {
	a.Reason, a.Theirs = message.ReasonInvalid, err.Error()
	var field *versions.FieldError
	switch {
	case errors.As(err, &field):
		a.Reason, a.Theirs = message.ReasonSchema, field.To
		a.Field = slices.IndexFunc(fields, func(d string) bool { return strings.HasPrefix(d, field.Name+" ") })
	case errors.Is(err, errNoField):
		a.Reason, a.Theirs = message.ReasonSchema, ""
		for i := range own.Fields() {
			a.Answering = append(a.Answering, own.Fields()[i].Name)
		}
		a.Report(a.Differences())
	}
}

// converter is the sink of an RPC whose client has other fields than the server.
type converter struct {
	sink sink
	*version
}

func (c *converter) deliver(p *Player, b *binding, d *rpcdelta.Delivery, at time.Time) error {
	theirs, ours := d.Frame, b.here.converted
	c.conversion.Convert(ours, theirs)
	d.Frame = ours
	err := c.sink.deliver(p, b, d, at)
	d.Frame = theirs
	return err
}
