// Package worldbench measures what a world costs a server: coding, encryption and sending to many
// players, whose links are simulated.
package worldbench

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"time"

	"github.com/uplink-rpc/uplink/internal/lab/perplayer"
	"github.com/uplink-rpc/uplink/internal/replication"
)

// Hz is the number of ticks per second of a world.
const Hz = 60

// Config configures a measurement.
type Config struct {
	Players int
	// Ticks is the number of measured ticks, after Warmup.
	Ticks int
	// MinRTT and MaxRTT are the round-trip times of the first and of the last player; those of the
	// others lie between them.
	MinRTT, MaxRTT time.Duration
	// Loss is the probability that a snapshot is lost, and that an ack is lost.
	Loss float64
	Seed uint64
	// Hostile adds clients that stall, ack nothing, lie, or keep to old baselines.
	Hostile bool
	// Scene is what is replicated.
	Scene Scene
	// Sessions sends by real sessions over loopback. Without it nothing is sent.
	Sessions bool
	// PerPlayer measures the coder with models per player too, with a sample of the players.
	PerPlayer bool
	// Progress is called with the share of the work that is done. It may be nil.
	Progress func(done float64)
}

// Warmup is the number of ticks before the measured ones.
const Warmup = 150

// Result is the result of a measurement. Times are in nanoseconds per tick, and medians over ticks.
type Result struct {
	Players int `json:"players"`
	Objects int `json:"objects"`
	// TickNs is the sum of QuantizeNs, EncodeNs and SendNs.
	TickNs     float64 `json:"tick_ns"`
	QuantizeNs float64 `json:"quantize_ns"`
	// EncodeNs is the time for all coding and learning of a tick, and for its messages.
	EncodeNs float64 `json:"encode_ns"`
	// SendNs is the time for encryption and sending. BareSendNs is that of the same datagrams,
	// encrypted and sent by a loop that does nothing else.
	SendNs     float64 `json:"send_ns"`
	BareSendNs float64 `json:"bare_send_ns"`
	// EncodesPerTick is the number of times that the world, or one of its groups, is encoded.
	EncodesPerTick float64 `json:"encodes_per_tick"`
	// BytesPerPlayer is the heap of a player's stream. BytesPerSession is that of a session with an
	// idle reliable channel and the stream.
	BytesPerPlayer  float64 `json:"bytes_per_player"`
	BytesPerSession float64 `json:"bytes_per_session"`
	// SnapshotBytes is the mean size of a message to a player.
	SnapshotBytes float64 `json:"snapshot_bytes"`
	// Mismatches is the number of decoded messages with an object that differs from the world's.
	Mismatches int `json:"mismatches"`
	// Decoded is the number of messages that a sample of clients has decoded, and Objects in them.
	Decoded        int `json:"decoded"`
	DecodedObjects int `json:"decoded_objects"`
	// PerPlayerCodingNs and PerPlayerSnapshotBytes are those of the coder with models per player,
	// measured with PerPlayerSample players and scaled to all.
	PerPlayerCodingNs      float64 `json:"per_player_coding_ns"`
	PerPlayerSnapshotBytes float64 `json:"per_player_snapshot_bytes"`
	PerPlayerSample        int     `json:"per_player_sample"`
}

var errNoTicks = errors.New("want at least 1 player and 1 tick")

// bench is a measurement.
type bench struct {
	cfg     Config
	world   *replication.World
	scene   Scene
	players []*player
	honest  int // the first players
	random  *rand.Rand
	link    *sessions // or nil
	sampled []*sampledPlayer

	perPlayerWorld  *perplayer.World // or nil
	perPlayerSchema *perplayer.Schema

	quantize, encode, send, bare, perPlayer []time.Duration
	bytes, messages, encodes                int
	perPlayerBytes                          int
}

// Run measures.
func Run(cfg Config) (r *Result, err error) {
	if cfg.Players < 1 || cfg.Ticks < 1 {
		return nil, errNoTicks
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	b := &bench{cfg: cfg, scene: cfg.Scene, honest: cfg.Players, random: rand.New(rand.NewPCG(cfg.Seed, 1))}
	if b.world, err = b.scene.NewWorld(); err != nil {
		return nil, err
	}
	r = &Result{Players: cfg.Players, Objects: b.scene.Objects()}
	empty := heap()
	if cfg.Sessions {
		if b.link, err = openSessions(cfg.Players); err != nil {
			return nil, err
		}
		defer b.link.close()
	}
	withSessions := heap()
	if err := b.join(); err != nil {
		return nil, err
	}
	total := Warmup + cfg.Ticks
	for n := range total {
		if err := b.tick(n, n >= Warmup); err != nil {
			return nil, fmt.Errorf("tick %d: %w", n, err)
		}
		if cfg.Progress != nil && n%8 == 0 {
			cfg.Progress(float64(n) / float64(total))
		}
	}
	b.finish(r)
	r.BytesPerPlayer = b.closeStreams() / float64(len(b.players))
	r.BytesPerSession = (float64(withSessions)-float64(empty))/float64(cfg.Players) + r.BytesPerPlayer
	return r, nil
}

// closeStreams closes all streams and returns the heap that this frees, in bytes.
func (b *bench) closeStreams() float64 {
	before := heap()
	for _, p := range b.players {
		p.streams.Close()
		p.streams, p.stream = nil, nil
	}
	return float64(before) - float64(heap())
}

func (b *bench) finish(r *Result) {
	r.QuantizeNs, r.EncodeNs, r.SendNs, r.BareSendNs = median(b.quantize), median(b.encode), median(b.send), median(b.bare)
	r.TickNs = r.QuantizeNs + r.EncodeNs + r.SendNs
	r.EncodesPerTick = float64(b.encodes) / float64(b.cfg.Ticks)
	r.SnapshotBytes = float64(b.bytes) / float64(max(b.messages, 1))
	for _, s := range b.sampled {
		r.Mismatches += s.mismatches
		r.Decoded += s.decoded
		r.DecodedObjects += s.objects
	}
	if n := len(b.sampled); b.cfg.PerPlayer && n > 0 {
		r.PerPlayerSample = n
		r.PerPlayerCodingNs = median(b.perPlayer) * float64(b.cfg.Players) / float64(n)
		r.PerPlayerSnapshotBytes = float64(b.perPlayerBytes) / float64(n*b.cfg.Ticks)
	}
}

// tick simulates a tick.
func (b *bench) tick(n int, measured bool) error {
	now := time.Unix(0, 0).Add(time.Duration(n) * time.Second / Hz)
	for _, p := range b.players {
		if err := p.receiveAck(n, now); err != nil {
			return err
		}
	}
	start := time.Now()
	if err := b.world.Begin(uint64(n)); err != nil {
		return err
	}
	began := time.Now()
	if err := b.scene.Put(b.world, n); err != nil {
		return err
	}
	b.world.Commit()
	put := time.Now()
	for i, p := range b.players {
		p.message, p.ends = p.message[:0], p.ends[:0]
		b.scene.Move(i, p.stream, n)
	}
	coding := time.Now()
	_, err := b.world.Broadcast(func() time.Time { return now }, 0)
	encoded := time.Now()
	if err != nil {
		return err
	}
	if measured {
		b.quantize = append(b.quantize, put.Sub(began))
		b.encode = append(b.encode, began.Sub(start)+encoded.Sub(coding))
		b.encodes += b.world.Encodes()
		for _, p := range b.players[:b.honest] {
			if len(p.message) > 0 {
				b.bytes += len(p.message) - len(p.ends)
				b.messages++
			}
		}
	}
	if b.link != nil {
		send, bare, err := b.link.send(b.players[:b.honest], n)
		if err != nil {
			return err
		}
		if measured {
			b.send, b.bare = append(b.send, send), append(b.bare, bare)
		}
	}
	for _, p := range b.players {
		p.transmit(n, b.random)
	}
	return b.sample(n, measured)
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func median(t []time.Duration) float64 {
	if len(t) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(t))
	return float64(sorted[len(sorted)/2])
}
