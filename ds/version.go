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
	// maxGrowth is by how many components, and by how many bytes, the frames of a client may exceed
	// the server's.
	maxGrowth = 256
)

// fieldsOf returns the descriptions of a client's fields, nil if they are the server's, or sets the
// reason of the answer.
func fieldsOf(a *control.BindAnswer, own *schema.Schema, r *control.BindRequest) (fields []string) {
	switch {
	case r.Fingerprint == own.Fingerprint():
		return nil
	case len(r.Fields) == 0 || len(r.Fields) > schema.MaxFields || len(r.Described) > schema.MaxFields:
		a.Reason = control.ReasonInvalid
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
		return slices.Equal(v.fields, fields) && v.rated.RateHz() == hz && slices.Equal(v.rated.PerTick(), perTick)
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
	v := &version{fields: fields, schema: own, scratch: r.scratch}
	if fields != nil {
		theirs, err := evolve.Parse(own.RPC(), fields)
		switch {
		case err != nil:
			return nil, err
		case theirs.Components() > own.Components()+maxGrowth || theirs.BinaryBytes() > own.BinaryBytes()+maxGrowth:
			return nil, fmt.Errorf("%d components and %d bytes of integers and byte strings, want at most %d and %d, which are %d more than the server has",
				theirs.Components(), theirs.BinaryBytes(), own.Components()+maxGrowth, own.BinaryBytes()+maxGrowth, maxGrowth)
		}
		if v.conversion, err = evolve.New(theirs, own); err != nil {
			return nil, err
		}
		if len(v.conversion.Missing()) == len(own.Fields()) {
			return nil, errNoField
		}
		v.schema, v.scratch, v.converted = theirs, rpcdelta.NewScratch(theirs), own.NewFrame()
	}
	if v.rated = v.schema; v.rated.RateHz() == hz && slices.Equal(v.rated.PerTick(), perTick) {
		return v, nil
	}
	var err error
	v.rated, err = v.schema.WithPerTick(hz, perTick)
	return v, err
}

// refuse sets the reason of an answer to a client whose fields are not those of the server.
func refuse(a *control.BindAnswer, fields []string, err error) {
	a.Reason, a.Theirs = control.ReasonInvalid, err.Error()
	var field *evolve.FieldError
	switch {
	case errors.As(err, &field):
		a.Reason, a.Theirs = control.ReasonSchema, field.To
		a.Field = slices.IndexFunc(fields, func(d string) bool { return strings.HasPrefix(d, field.Name+" ") })
	case errors.Is(err, errNoField):
		a.Reason, a.Theirs = control.ReasonSchema, ""
	}
}

func (c *converter) deliver(p *Player, b *binding, d *rpcdelta.Delivery, at time.Time) error {
	c.conversion.Convert(c.converted, d.Frame)
	theirs := d.Frame
	d.Frame = c.converted
	err := c.sink.deliver(p, b, d, at)
	d.Frame = theirs
	return err
}
