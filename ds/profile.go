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

// RPCProfile is what the bits of an RPC's payloads are spent on, those of both channels.
type RPCProfile struct {
	RPC    string
	Schema *schema.Schema
	inspect.Profile
}

// Profile has one of every so many payloads of each RPC measured, on average, at random
// within each shard, for Profiles to tell, and begins anew; 0, as at the start, ends that
// and keeps what was measured. A payload that is measured costs about twice as much to
// receive as another (BenchmarkReceiveProfiled); while none is, there is no cost to speak of.
func (s *Server) Profile(every int) {
	n := uint64(min(max(every, 0), math.MaxInt32))
	for {
		old := s.profiling.Load()
		run := old >> 32
		if n != 0 {
			run++
		}
		if s.profiling.CompareAndSwap(old, run<<32|n) {
			return
		}
	}
}

// Profiles gives what was measured since Profile was called last with another number than
// 0, of each RPC, by name. They are copies.
func (s *Server) Profiles() []RPCProfile {
	run := s.profiling.Load() >> 32
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]RPCProfile, 0, len(s.rpcs))
	for _, name := range slices.Sorted(maps.Keys(s.rpcs)) {
		r := s.rpcs[name]
		p := inspect.NewProfile(r.schema)
		for _, h := range r.shards {
			h.profiler.addTo(p, run)
		}
		out = append(out, RPCProfile{RPC: name, Schema: r.schema, Profile: *p})
	}
	return out
}

// profiler measures payloads of an RPC in a shard.
type profiler struct {
	left uint32 // payloads until the next that is measured; of the shard's goroutine

	mu      sync.Mutex // guards the rest
	run     uint64     // of Server.profiling, that profile is of
	profile *inspect.Profile
}

func (p *profiler) addTo(sum *inspect.Profile, run uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.profile != nil && p.run == run {
		sum.Add(p.profile)
	}
}

// decode decodes a payload, and measures it if it is one's turn. Which one's that is is
// left to chance: players send in turn.
func (p *profiler) decode(b *binding, payload []byte, profiling uint64) ([]rpcdelta.Delivery, error) {
	run, every := profiling>>32, uint32(profiling)
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

// decode decodes a payload of the binding.
func (s *Server) decode(b *binding, payload []byte) ([]rpcdelta.Delivery, error) {
	if p := s.profiling.Load(); uint32(p) != 0 {
		return b.here.profiler.decode(b, payload, p)
	}
	return b.dec.Decode(payload)
}
