package ds

import (
	"fmt"
	"slices"
	"sync"

	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/versions"
)

// rpcShard is the state of an RPC in one shard. Only the shard's goroutine uses it, except for the
// counters.
type rpcShard struct {
	versions  []*version        // most recently used first
	scratch   *rpcdelta.Scratch // shared by all decoders
	converted *schema.Frame     // scratch for frames that are converted from another version
	profiler  profiler

	unreliable, reliable counts
}

func (r *rpcShard) counts(reliable bool) *counts {
	if reliable {
		return &r.reliable
	}
	return &r.unreliable
}

// versionOf returns the version of an RPC with the fields of a client (nil means the server's
// fields), its rate and its factors of velocities. It stores the maxVersions most recently used
// versions. A hostile client can evict the versions of others, which are then compiled again.
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

func (r *rpcShard) newVersion(own *schema.Schema, fields []string, hz float64, perTick []int64) (*version, error) {
	v := &version{fields: fields, schema: own}
	if fields != nil {
		theirs, err := versions.Parse(own.RPC(), fields)
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
	if v.conversion, err = versions.New(v.schema, own); err != nil {
		return nil, err
	}
	if len(v.conversion.Missing()) == len(own.Fields()) {
		return nil, errNoField
	}
	return v, nil
}

// profiler measures payloads of an RPC in a shard.
type profiler struct {
	left uint32 // payloads until the next measured one; of the shard's goroutine

	mu      sync.Mutex // guards the rest
	run     uint64     // number of the run of profile
	profile *rpcdelta.Profile
}
