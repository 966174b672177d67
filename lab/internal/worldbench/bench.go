package worldbench

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/uplink-rpc/uplink/internal/replication"
	"github.com/uplink-rpc/uplink/internal/replication/fragment"
	"github.com/uplink-rpc/uplink/internal/snapshot"
)

// Config configures a run.
type Config struct {
	Scene   Scene
	Players int
	// Ticks is the number of measured ticks, not counting the warmup.
	Ticks int
	// Loss is the loss of datagrams and of acks, 0 to below 1.
	Loss float64
	// MinRTT and MaxRTT are the round-trip times of the first and the last player. Those of other
	// players are spaced evenly between them. All are rounded up to ticks.
	MinRTT, MaxRTT time.Duration
	Seed           uint64
	// Hostile adds hostile clients and a second server without them, for comparison.
	Hostile bool
	// Peers are other designs, measured on the same world and links.
	Peers []Peer
	// Clock returns the time since some start.
	Clock func() time.Duration
	// Offline discards datagrams instead of sending them. Nothing is encrypted, and memory is not
	// measured. For tests.
	Offline bool
}

const (
	// warmup is the number of ticks before the first measured one: a second, in which the first
	// acks arrive.
	warmup = rate
	// maxSample is the maximum number of players that decode, and of players for whom peers code.
	maxSample = 16
	// maxDatagram is the size of a datagram's payload in a message of several datagrams.
	maxDatagram = replication.MaxFragment
)

// MaxPlayers is the maximum number of players.
const MaxPlayers = 10_000

// Result contains mean times per tick in nanoseconds, without the slowest 5 % of the ticks, and
// mean sizes in bytes.
type Result struct {
	Players int     `json:"players"`
	Objects int     `json:"objects"`
	Ticks   int     `json:"ticks"`
	RTTMs   [2]int  `json:"rtt_ms"`
	Loss    float64 `json:"loss"`
	Seed    uint64  `json:"seed"`

	// TickNs is the sum of all parts: quantizing, coding and learning, choosing baselines and
	// building messages, and sending.
	TickNs     float64 `json:"tick_ns"`
	QuantizeNs float64 `json:"quantize_ns"`
	EncodeNs   float64 `json:"encode_ns"`
	SendNs     float64 `json:"send_ns"`
	// BareSendNs is the time for encrypting and sending datagrams of the same sizes in batches.
	// SendRatio is SendNs divided by it.
	BareSendNs float64 `json:"bare_send_ns"`
	SendRatio  float64 `json:"send_ratio"`
	// AcksNs is the time for handling the acks that arrived since the previous tick.
	AcksNs float64 `json:"acks_ns"`

	EncodesPerTick float64 `json:"encodes_per_tick"`
	// BytesPerPlayer and BytesPerSession are heap memory: of a stream, and of a session with an
	// idle reliable channel and its stream.
	BytesPerPlayer  float64 `json:"bytes_per_player"`
	BytesPerSession float64 `json:"bytes_per_session"`
	SnapshotBytes   float64 `json:"snapshot_bytes"`
	// Mismatches counts the messages that sampled clients could not decode, or decoded to a wrong
	// world.
	Mismatches int `json:"mismatches"`

	// HostileEncodeRatio and HostileBytesRatio are the results with hostile clients divided by
	// those without. The bytes are those of honest players. HostileEncodesPerTick is the number of
	// encodings with hostile clients.
	HostileEncodeRatio float64 `json:"hostile_encode_ratio,omitempty"`
	HostileBytesRatio  float64 `json:"hostile_bytes_ratio,omitempty"`

	HostileEncodesPerTick float64 `json:"hostile_encodes_per_tick,omitempty"`

	Peers []PeerResult `json:"peers,omitempty"`
}

// PeerResult is the cost of a peer for all players, extrapolated from a sample.
type PeerResult struct {
	Name          string  `json:"name"`
	CodingNs      float64 `json:"coding_ns"`
	SnapshotBytes float64 `json:"snapshot_bytes"`
}

// Validate returns an error that names an invalid setting.
func (c *Config) Validate() error {
	switch {
	case c.Players < 1 || c.Players > MaxPlayers:
		return fmt.Errorf("--players %d: want 1 to %d", c.Players, MaxPlayers)
	case c.Ticks < 1:
		return fmt.Errorf("--ticks %d: want at least 1", c.Ticks)
	case c.Hostile && c.Ticks < stallTicks+2*rate:
		return fmt.Errorf("--ticks %d: want at least %d with --hostile: one client stalls for ten seconds", c.Ticks, stallTicks+2*rate)
	case !(c.Loss >= 0 && c.Loss < 1):
		return fmt.Errorf("--loss %g: want 0 to below 1", c.Loss)
	case c.MinRTT <= 0 || c.MinRTT > c.MaxRTT || inTicks(c.MaxRTT) > maxRTT:
		return fmt.Errorf("--rtt %v-%v: want two ascending times above 0s, up to %dms", c.MinRTT, c.MaxRTT, maxRTT*1000/rate)
	}
	return nil
}

// inTicks returns a round-trip time in ticks, rounded up.
func inTicks(d time.Duration) int { return int((d*rate + time.Second - 1) / time.Second) }

// clients returns the simulated clients. Hostile ones follow the honest ones.
func (c *Config) clients(hostiles []behavior) ([]*client, error) {
	all := make([]*client, c.Players+len(hostiles))
	for i := range all {
		rtt := c.MinRTT
		if c.Players > 1 && i < c.Players {
			rtt += (c.MaxRTT - c.MinRTT) * time.Duration(i) / time.Duration(c.Players-1)
		}
		all[i] = &client{link: link{seed: c.Seed, client: i, loss: c.Loss, rtt: inTicks(rtt)}}
	}
	for i, b := range hostiles {
		h := all[c.Players+i]
		h.behavior, h.loss = b, max(c.Loss, b.loss)
	}
	for _, at := range c.sample() {
		d, err := c.Scene.NewReceiver()
		if err != nil {
			return nil, err
		}
		all[at].decoding = &decoding{decoder: d, assembler: fragment.NewAssembler(replication.MaxFragment, fragment.MaxCount)}
	}
	return all, nil
}

// sample returns the indices of some players with round-trip times over the whole range.
func (c *Config) sample() (at []int) {
	n := min(c.Players, maxSample)
	for i := range n {
		at = append(at, (2*i+1)*c.Players/(2*n))
	}
	return at
}

// Run measures. It uses one processor.
func Run(ctx context.Context, cfg Config) (r *Result, err error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var servers []*measured
	defer func() {
		for _, s := range servers {
			if s.sessions != nil {
				err = errors.Join(err, s.sessions.close())
			}
		}
	}()
	kinds := [][]behavior{nil}
	if cfg.Hostile {
		kinds = append(kinds, hostile())
	}
	for _, hostiles := range kinds {
		clients, err := cfg.clients(hostiles)
		if err != nil {
			return nil, err
		}
		s, err := newServer(ctx, &cfg, clients)
		if err != nil {
			return nil, err
		}
		servers = append(servers, &measured{server: s})
	}
	opened := cfg.Clock()
	peers, err := cfg.run(ctx, servers)
	if err != nil {
		return nil, err
	}
	r = cfg.result(servers, peers)
	if !cfg.Offline {
		r.BareSendNs = servers[0].bare.mean()
		r.SendRatio = r.SendNs / r.BareSendNs
		if err := wait(ctx, idle-min(idle, cfg.Clock()-opened)); err != nil {
			return nil, err
		}
		r.BytesPerPlayer, r.BytesPerSession = servers[0].memory()
	}
	return r, nil
}

// run plays the world to all servers and peers alternately.
func (c *Config) run(ctx context.Context, servers []*measured) ([]*peerRun, error) {
	var sample []*client
	for _, i := range c.sample() {
		sample = append(sample, servers[0].clients[i])
	}
	var peers []*peerRun
	for n := range warmup + c.Ticks {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		for i := range servers {
			if err := servers[(i+n)%len(servers)].measure(n); err != nil {
				return nil, err
			}
		}
		set := servers[0].sets[n%snapshot.Ring]
		if n == 0 && set.Len() > 0 {
			for _, p := range c.Peers {
				run, err := newPeerRun(p, sample, c.Scene.Schema(), set)
				if err != nil {
					return nil, err
				}
				peers = append(peers, run)
			}
		}
		for _, p := range peers {
			if err := p.step(c, n, set); err != nil {
				return nil, err
			}
		}
	}
	return peers, nil
}

// measured is a server with the times of its ticks.
type measured struct {
	*server
	all, quantize, encode, send, bare, acks times
	encodeCount                             int
}

func (m *measured) measure(n int) error {
	if n == warmup {
		for _, c := range m.clients {
			c.bytes, c.messages = 0, 0
		}
	}
	if err := m.step(n); err != nil || n < warmup {
		return err
	}
	t := &m.times
	m.all.add(t.all)
	m.quantize.add(t.quantize)
	m.encode.add(t.encode)
	m.send.add(t.send)
	m.bare.add(t.bare)
	m.acks.add(t.acks)
	m.encodeCount += m.encodes
	return nil
}

// bytes returns the mean size of the snapshots of the given players.
func (m *measured) bytes(players []*client) float64 {
	bytes, messages := 0, 0
	for _, c := range players {
		bytes, messages = bytes+c.bytes, messages+c.messages
	}
	return float64(bytes) / float64(max(1, messages))
}

func (c *Config) result(servers []*measured, peers []*peerRun) *Result {
	m := servers[0]
	r := &Result{
		Players: c.Players, Objects: c.Scene.Objects(), Ticks: c.Ticks, Loss: c.Loss, Seed: c.Seed,
		RTTMs:  [2]int{int(c.MinRTT.Milliseconds()), int(c.MaxRTT.Milliseconds())},
		TickNs: m.all.mean(), QuantizeNs: m.quantize.mean(), EncodeNs: m.encode.mean(), SendNs: m.send.mean(), AcksNs: m.acks.mean(),
		EncodesPerTick: float64(m.encodeCount) / float64(c.Ticks),
		SnapshotBytes:  m.bytes(m.clients),
	}
	for _, s := range servers {
		for _, c := range s.clients {
			if c.decoding != nil {
				r.Mismatches += c.decoding.bad
			}
		}
	}
	for _, p := range peers {
		r.Peers = append(r.Peers, PeerResult{
			Name: p.Name(), CodingNs: p.times.mean() * float64(c.Players) / float64(len(p.coders)), SnapshotBytes: float64(p.bytes) / float64(p.count),
		})
	}
	if c.Hostile {
		other := servers[1]
		r.HostileEncodeRatio = other.encode.mean() / r.EncodeNs
		r.HostileEncodesPerTick = float64(other.encodeCount) / float64(c.Ticks)
		r.HostileBytesRatio = other.bytes(other.clients[:c.Players]) / r.SnapshotBytes
	}
	return r
}

// memory closes all streams and then all sessions, and returns the memory that they have used.
func (m *measured) memory() (stream, session float64) {
	all := heap()
	for _, p := range m.players {
		p.streams.Close()
		p.streams, p.stream = nil, nil
	}
	streams := heap()
	for _, p := range m.players {
		_ = p.Close() // never fails
		p.session = nil
	}
	_ = wait(context.Background(), 2*tick) // the listener removes them in its ticks
	sessions := heap()
	n := float64(len(m.players))
	runtime.KeepAlive(m)
	return (all - streams) / n, (all - sessions) / n
}

// heap returns the size of reachable memory in bytes.
func heap() float64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// times contains the times of a part of the ticks.
type times []time.Duration

func (t *times) add(d time.Duration) { *t = append(*t, d) }

// mean returns the mean in nanoseconds, without the slowest twentieth, since other processes run
// too.
func (t times) mean() float64 {
	s := slices.Sorted(slices.Values(t))
	s = s[:len(s)-len(s)/20]
	sum := time.Duration(0)
	for _, d := range s {
		sum += d
	}
	return float64(sum) / float64(max(1, len(s)))
}
