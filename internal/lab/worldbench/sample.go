package worldbench

import (
	"fmt"
	"time"

	"github.com/uplink-rpc/uplink/internal/lab/perplayer"
	"github.com/uplink-rpc/uplink/internal/replication"
	"github.com/uplink-rpc/uplink/internal/replication/fragment"
	"github.com/uplink-rpc/uplink/snapshot"
)

// maxSample is the number of players whose messages are decoded, and which the coder with models per
// player encodes.
const maxSample = 8

// sampledPlayer decodes what a player receives.
type sampledPlayer struct {
	*player
	dec        replication.SnapshotDecoder
	assembler  *fragment.Assembler
	mismatches int
	decoded    int
	objects    int

	coder *perplayer.Encoder
	buf   []byte
}

// addSample chooses players spread over all round-trip times.
func (b *bench) addSample() error {
	var world *perplayer.World
	if r, ok := b.scene.(*recording); ok && b.cfg.PerPlayer {
		s, err := perPlayerSchema(r.typ.Schema())
		if err != nil {
			return err
		}
		world = perplayer.NewWorld(s, nil)
		b.perPlayerWorld, b.perPlayerSchema = world, s
	}
	n := min(maxSample, b.honest)
	for i := range n {
		p := &sampledPlayer{player: b.players[(b.honest-1)*i/max(1, n-1)], assembler: fragment.NewAssembler(replication.MaxPart, fragment.MaxCount)}
		p.sampled = true
		typ, err := cubeType()
		if err != nil {
			return err
		}
		p.dec = replication.NewSnapshotDecoder(typ.Schema(), typ.Schema().NewSet())
		if err := p.dec.Begin(b.world.SnapshotOffer(), nil); err != nil {
			return err
		}
		if world != nil {
			p.coder = perplayer.NewEncoder(b.perPlayerSchema, world)
		}
		b.sampled = append(b.sampled, p)
	}
	return nil
}

func perPlayerSchema(s *snapshot.Schema) (*perplayer.Schema, error) {
	var fields []perplayer.Field
	for _, f := range s.Fields() {
		fields = append(fields, perplayer.Field(f))
	}
	return perplayer.NewSchema(fields...)
}

// sample decodes the messages of tick n, and encodes it with models per player.
func (b *bench) sample(n int, measured bool) error {
	b.scene.Record(n)
	for _, p := range b.sampled {
		if !p.arrives {
			continue
		}
		if err := p.decode(b, n); err != nil {
			return fmt.Errorf("player %d: %w", p.id, err)
		}
	}
	if b.perPlayerWorld == nil {
		return nil
	}
	set, cur := b.world.Newest(), b.perPlayerWorld.Begin()
	for i := range set.Len() {
		if err := cur.Add(perplayer.Object(set.Object(i)), set.Row(i)); err != nil {
			return err
		}
	}
	var sum time.Duration
	for _, p := range b.sampled {
		for _, a := range p.arrived {
			if err := p.coder.Ack(perplayer.Ack{Newest: a.Newest, Window: a.Window}); err != nil {
				return err
			}
		}
		p.arrived = p.arrived[:0]
		start := time.Now()
		out, _, err := p.coder.Append(p.buf[:0], 1<<20)
		sum += time.Since(start)
		if err != nil {
			return err
		}
		p.buf = out
		if measured {
			b.perPlayerBytes += len(out)
		}
	}
	if measured {
		b.perPlayer = append(b.perPlayer, sum)
	}
	return nil
}

// decode decodes the last message and compares its objects with the world's.
func (p *sampledPlayer) decode(b *bench, n int) error {
	message := p.message[1:]
	if len(p.ends) > 1 {
		for d := range p.datagrams {
			var err error
			if message, err = p.assembler.Add(d[1:]); err != nil {
				return err
			}
		}
	}
	_, set, err := p.dec.Decode(message)
	if err != nil {
		return err
	}
	p.decoded++
	p.objects += set.Len()
	if !b.scene.Check(b.world, set, n) {
		p.mismatches++
	}
	return nil
}
