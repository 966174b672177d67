package worldbench

import (
	"fmt"
	"time"

	"github.com/uplink-rpc/uplink/internal/snapshot"
)

// Peer is another design whose coding is measured with the same world and links.
type Peer interface {
	// Name identifies the peer in the result.
	Name() string
	// Begin prepares the peer for a world in its initial state, which all clients know.
	Begin(s *snapshot.Schema, initial *snapshot.Set) error
	// Add adds the next snapshot; the first one is 0. Its time is not measured.
	Add(set *snapshot.Set) error
	// Join returns the coder of a player.
	Join() PlayerCoder
}

// PlayerCoder is a peer's coder for one player.
type PlayerCoder interface {
	// Append appends the payload of the newest snapshot.
	Append(dst []byte) ([]byte, error)
	// Ack processes an ack of snapshot number. Bit i of window stands for the snapshot i+1 before
	// it.
	Ack(newest, window uint64) error
}

// peerRun is a peer with coders for a sample of players.
type peerRun struct {
	Peer
	coders []PlayerCoder
	links  []*link // one per coder, with the losses of the clients
	times  times   // times of all coders per tick
	bytes  int
	count  int
	buf    []byte
}

func newPeerRun(p Peer, sample []*client, schema *snapshot.Schema, initial *snapshot.Set) (*peerRun, error) {
	r := &peerRun{Peer: p}
	if err := p.Begin(schema, initial); err != nil {
		return nil, fmt.Errorf("%s: %w", p.Name(), err)
	}
	for _, c := range sample {
		r.coders = append(r.coders, p.Join())
		r.links = append(r.links, &link{seed: c.seed, client: c.client, loss: c.loss, rtt: c.rtt})
	}
	return r, nil
}

// step processes the due acks, and then codes the newest snapshot for all coders.
func (r *peerRun) step(cfg *Config, tick int, set *snapshot.Set) error {
	for i, l := range r.links {
		if t, ok := l.arrives(tick); ok {
			l.receive(t.snapshot)
			if l.lost(tick, ackLoss) {
				continue
			}
			if err := r.coders[i].Ack(l.newest, l.window); err != nil {
				return fmt.Errorf("%s: %w", r.Name(), err)
			}
		}
	}
	if err := r.Add(set); err != nil {
		return fmt.Errorf("%s: %w", r.Name(), err)
	}
	sum, measured := time.Duration(0), tick >= warmup
	for i, c := range r.coders {
		start := cfg.Clock()
		var err error
		r.buf, err = c.Append(r.buf[:0])
		sum += cfg.Clock() - start
		if err != nil {
			return fmt.Errorf("%s: %w", r.Name(), err)
		}
		l := r.links[i]
		l.begin(tick)
		for k := range (len(r.buf) + maxDatagram - 1) / maxDatagram {
			l.send(tick, uint64(tick), k)
		}
		if measured {
			r.bytes += len(r.buf)
			r.count++
		}
	}
	if measured {
		r.times.add(sum)
	}
	return nil
}
