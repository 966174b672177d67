// Package tap records a server's received, sent and decoded data in a capture file:
//
//	w, err := capture.Create("out.uplink", capture.Config{})
//	...
//	srv, err := ds.Listen(addr, ds.Config{Hooks: ds.Hooks{Tap: tap.New(w)}})
//	...
//	srv.Close()
//	err = w.Close()
package tap

import (
	"time"

	"github.com/uplink-rpc/uplink/capture"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/record"
	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/transport"
)

// New returns a tap that writes to w. Closing the server does not close w.
func New(w *capture.Writer) ds.Tap { return server{w} }

type server struct{ w *capture.Writer }

func (s server) Joined(p *ds.Player, suite transport.Suite) ds.PlayerTap {
	return &player{s.w.Open(record.Opened{
		Session: p.ID(), Client: p.ClientID(), Addr: p.Addr(), Suite: suite.String(), AEADOverhead: suite.Overhead(),
	})}
}

func (s server) Counted(st transport.ListenerStats) {
	var c record.Counts
	for reason, n := range st.Dropped.All() {
		if n != 0 {
			c.Drops = append(c.Drops, record.Count{Reason: reason, N: n})
		}
	}
	s.w.Counts(c)
}

func (s server) Resets() uint64 { return s.w.Resets() }

type player struct{ s *capture.Session }

func (p *player) Carried(c transport.TapEvent) {
	if c.Reliable {
		p.s.Message(c.At, record.Message{Sent: c.Sent, Body: c.Body})
		return
	}
	p.s.Datagram(c.At, record.Datagram{Sent: c.Sent, Number: c.Number, Size: c.Size, Body: c.Body})
}

func (p *player) Bound(b ds.Binding) {
	p.s.Bound(record.Bound{
		RPC: b.RPC, RateHz: b.RateHz, PerTick: b.PerTick, PeerRing: b.PeerRing, Frames: b.Frames, Ring: b.Ring, Codec: b.Codec, Reliable: b.Reliable, DeliverLate: b.DeliverLate,
		Deadline: b.Deadline, Batch: b.Batch,
	}, b.Schema, b.Prior)
}

func (p *player) Decoded(at time.Time, rpc int, frames []rpcdelta.Delivery) {
	p.s.Decoded(at, rpc, frames)
}

func (p *player) Dropped(at time.Time, rpc int, d ds.Drop, decoder bool) {
	p.s.Dropped(at, record.Dropped{RPC: max(rpc, record.NoRPC), Reason: d.String(), Decoder: decoder})
}

func (p *player) Withheld(at time.Time, rpc int, seq uint64, d ds.Drop) {
	p.s.Withheld(at, record.Withheld{RPC: rpc, Seq: seq, Reason: d.String()})
}

func (p *player) Left(err error) {
	cause := ""
	if err != nil {
		cause = err.Error()
	}
	p.s.Closed(cause)
}
