package ds

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/uplink-rpc/uplink/internal/control"
	"github.com/uplink-rpc/uplink/internal/evolve"
	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/schema"
)

const (
	// maxVersions is the number of versions of an RPC that are kept in a shard.
	maxVersions = 16
	// A client may have twice the fields, components and bytes of the server, or so many more, if
	// that is more: what it costs the server is in proportion to what the game decided.
	spareFields     = 8
	spareComponents = 8
	spareBytes      = 32
	// spareMemory is the number of bytes that the bindings of a player may take, if that is more
	// than twice those with the server's fields.
	spareMemory = 32000
)

// atMost returns the limit of a number of a client of which the server has n.
func atMost(n, spare int) int { return n + max(n, spare) }

// fieldsOf returns the descriptions of a client's fields, nil if they are the server's, or sets the
// reason of the answer.
func fieldsOf(a *control.BindAnswer, own *schema.Schema, r *control.BindRequest) (fields []string) {
	most := atMost(len(own.Fields()), spareFields)
	switch {
	case len(r.Fields) > most || len(r.Described) > len(r.Fields):
		a.Reason = control.ReasonInvalid
		a.Theirs = fmt.Sprintf("%d fields and %d descriptions, want at most %d: the server has %d; update the server first",
			len(r.Fields), len(r.Described), most, len(own.Fields()))
		return nil
	case r.Fingerprint == own.Fingerprint():
		return nil
	case len(r.Fields) == 0:
		a.Reason, a.Theirs = control.ReasonInvalid, "no fields"
		return nil
	}
	fields, a.Ask = r.Descriptions(own)
	switch {
	case len(a.Ask) > 0:
		a.Reason = control.ReasonDescribe
	case evolve.Fingerprint(own.RPC(), fields) == r.Fingerprint:
	case len(r.Described) < len(fields): // different descriptions have the same hash
		a.Reason = control.ReasonDescribe
		for i := range fields {
			a.Ask = append(a.Ask, i)
		}
	default:
		a.Reason = control.ReasonInvalid
	}
	return fields
}

// versionOf returns an RPC with the fields of a client, or the server's if there are none, at a
// rate and with factors of the velocities. It keeps the maxVersions last used ones: a hostile
// client that declares many evicts those of others, which are then compiled again.
func (r *rpcShard) versionOf(own *schema.Schema, fields []string, hz float64, perTick []int64) (*version, error) {
	i := slices.IndexFunc(r.versions, func(v *version) bool {
		return slices.Equal(v.fields, fields) && v.schema.RateHz() == hz && slices.Equal(v.schema.PerTick(), perTick)
	})
	var v *version
	if i >= 0 {
		v = r.versions[i]
		r.versions = slices.Delete(r.versions, i, i+1)
	} else {
		var err error
		if v, err = r.newVersion(own, fields, hz, perTick); err != nil {
			return nil, err
		}
	}
	r.versions = slices.Insert(r.versions[:min(len(r.versions), maxVersions-1)], 0, v)
	return v, nil
}

var errNoField = errors.New("no field in common")

func (r *rpcShard) newVersion(own *schema.Schema, fields []string, hz float64, perTick []int64) (*version, error) {
	v := &version{fields: fields, schema: own}
	if fields != nil {
		theirs, err := evolve.Parse(own.RPC(), fields)
		if err != nil {
			return nil, err
		}
		components, bytes := atMost(own.Components(), spareComponents), atMost(own.BinaryBytes(), spareBytes)
		if theirs.Components() > components || theirs.BinaryBytes() > bytes {
			return nil, fmt.Errorf("%d components and %d bytes of integers and byte strings, want at most %d and %d: the server has %d and %d; update the server first",
				theirs.Components(), theirs.BinaryBytes(), components, bytes, own.Components(), own.BinaryBytes())
		}
		v.schema = theirs
	}
	if v.schema.RateHz() != hz || !slices.Equal(v.schema.PerTick(), perTick) {
		var err error
		if v.schema, err = v.schema.WithPerTick(hz, perTick); err != nil {
			return nil, err
		}
	}
	if fields == nil {
		return v, nil
	}
	var err error
	if v.conversion, err = evolve.New(v.schema, own); err != nil {
		return nil, err
	}
	if len(v.conversion.Missing()) == len(own.Fields()) {
		return nil, errNoField
	}
	return v, nil
}

// differences returns the fields that only the client or only the server has.
func (v *version) differences() (d control.Differences) {
	if v.conversion == nil {
		return d
	}
	return control.Differences{Asking: v.conversion.Skipped(), Answering: v.conversion.Missing()}
}

// converted returns the fields that have other resolutions or ranges at both ends, for the log: at
// most control.MaxDifferences. The descriptions of the client may be hostile.
func (v *version) converted() string {
	if v.conversion == nil {
		return ""
	}
	var texts []string
	fields := v.conversion.Converted()
	for _, f := range fields[:min(len(fields), control.MaxDifferences)] {
		texts = append(texts, fmt.Sprintf("client {%s}, server {%s}", control.Printable(f[0], 128), f[1]))
	}
	return strings.Join(texts, "; ")
}

// frameSize returns the maximum number of bytes of a frame in a ring, and of its slot.
func frameSize(s *schema.Schema) int { return 8 + 4*s.Components() + s.BinaryBytes() }

// memoryOf returns about how many bytes a binding takes with the schema of the server, and with
// another one, which may be that of no other player.
func memoryOf(s *schema.Schema, own bool, ring int) int {
	frames := ring * s.BinaryBytes()
	if own {
		return 4000 + 1450*s.Components() + frames
	}
	return 6500 + 1750*s.Components() + 1000*len(s.Fields()) + frames
}

// bindingMemory returns about how many bytes the bindings of a player may take: twice those of all
// RPCs with the server's fields.
func (s *Server) bindingMemory() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	sum := 0
	for _, r := range s.rpcs {
		sum += memoryOf(r.schema, true, s.cfg.Ring)
	}
	return max(2*sum, spareMemory)
}

// refuse sets the reason of an answer to a client whose fields are not those of the server.
func refuse(a *control.BindAnswer, own *schema.Schema, fields []string, err error) {
	a.Reason, a.Theirs = control.ReasonInvalid, err.Error()
	var field *evolve.FieldError
	switch {
	case errors.As(err, &field):
		a.Reason, a.Theirs = control.ReasonSchema, field.To
		a.Field = slices.IndexFunc(fields, func(d string) bool { return strings.HasPrefix(d, field.Name+" ") })
	case errors.Is(err, errNoField):
		a.Reason, a.Theirs = control.ReasonSchema, ""
		for i := range own.Fields() {
			a.Answering = append(a.Answering, own.Fields()[i].Name)
		}
		a.Report(a.Differences())
	}
}

func (c *converter) deliver(p *Player, b *binding, d *rpcdelta.Delivery, at time.Time) error {
	theirs, ours := d.Frame, b.here.converted
	c.conversion.Convert(ours, theirs)
	d.Frame = ours
	err := c.sink.deliver(p, b, d, at)
	d.Frame = theirs
	return err
}
