package ds

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/rpcdelta/inspect"
	"github.com/uplink-rpc/uplink/schema"
)

// RPCProfile counts the bits of an RPC's payloads by field, of both channels.
type RPCProfile struct {
	RPC    string
	Schema *schema.Schema
	inspect.Profile
}

// Profile starts a new profile of each RPC. every is the mean number of payloads per measured
// payload; which payloads are measured is random within each shard. [Server.Profiles] returns the
// profiles. With 0, as at the start, no payload is measured, and the last profile is kept. A
// measured payload costs about twice as much to receive as another (BenchmarkReceiveProfiled).
// While no payload is measured there is almost no cost.
func (s *Server) Profile(every int) {
	n := uint64(min(max(every, 0), math.MaxInt32))
	s.mu.Lock()
	defer s.mu.Unlock()
	run := s.profiling.Load() >> 32
	if n != 0 {
		run++
	}
	s.profiling.Store(run<<32 | n)
}

// Profiles returns copies of the profiles that the last call of Profile with a number other than 0
// started, by name of the RPC.
func (s *Server) Profiles() []RPCProfile {
	run := s.profiling.Load() >> 32
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]RPCProfile, 0, len(s.rpcs))
	for _, name := range slices.Sorted(maps.Keys(s.rpcs)) {
		r := s.rpcs[name]
		sum := inspect.NewProfile(r.schema)
		for _, h := range r.shards {
			p := &h.profiler
			p.mu.Lock()
			if p.profile != nil && p.run == run {
				sum.Add(p.profile)
			}
			p.mu.Unlock()
		}
		out = append(out, RPCProfile{RPC: name, Schema: r.schema, Profile: *sum})
	}
	return out
}

// profiler measures payloads of an RPC in a shard.
type profiler struct {
	left uint32 // payloads until the next measured one; of the shard's goroutine

	mu      sync.Mutex // guards the rest
	run     uint64     // of profile
	profile *inspect.Profile
}

// decode decodes a payload, and measures some of them. The choice is random, as players send in
// turn.
func (s *Server) decode(b *binding, payload []byte) ([]rpcdelta.Delivery, error) {
	profiling := s.profiling.Load()
	run, every := profiling>>32, uint32(profiling)
	if every == 0 || b.version.conversion != nil { // profiles are of the server's fields
		return b.dec.Decode(payload)
	}
	p := &b.here.profiler
	if p.left = min(p.left, 2*every); p.left > 1 {
		p.left--
		return b.dec.Decode(payload)
	}
	p.left = 1 + rand.Uint32N(2*every-1)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.profile == nil || p.run != run {
		p.profile, p.run = inspect.NewProfile(b.rpc.schema), run
	}
	b.dec.Measure(p.profile)
	defer b.dec.Measure(nil)
	return b.dec.Decode(payload)
}
