package compare

import (
	"errors"

	"github.com/uplink-rpc/uplink/internal/lab/bench"
	"github.com/uplink-rpc/uplink/rpcdelta"
)

// errNothing says that a link let nothing through.
var errNothing = errors.New("no frame was delivered")

// Names of this project's codecs.
const (
	// Paper is codec rle under the paper's own header.
	Paper = "paper"
	// Adaptive is codec adaptive with one frame in each payload.
	Adaptive = "adaptive"
	// Redundant is codec adaptive with as many older frames in each payload as it chooses itself.
	Redundant = "adaptive auto"
)

// ownKind is a codec that internal/lab/bench runs: its name here and there.
type ownKind struct {
	name, scheme string
	redundancy   int
	note         string
}

// owns are this project's codecs and the paper's.
var owns = []ownKind{
	{Paper, "paper", rpcdelta.RedundancyOff, "rle under two sequence numbers of 32 bits, a size inferred from the paper's 32-bit ack"},
	{"rle", "rle", rpcdelta.RedundancyOff, ""},
	{Adaptive, "adaptive", rpcdelta.RedundancyOff, ""},
	{Redundant, "adaptive", rpcdelta.RedundancyAuto, ""},
}

// own runs one of them at each loss.
func (t *trial) own(o *ownKind) (Scheme, error) {
	t.cfg.Progress(t.measured.Name, o.name)
	s := Scheme{Name: o.name, Class: Own, Note: o.note}
	for _, loss := range t.cfg.Losses {
		c, err := t.count(o.scheme, o.redundancy, loss, true)
		if err != nil {
			return s, err
		}
		if c.FramesDelivered == 0 {
			return s, errNothing
		}
		s.Points = append(s.Points, Point{
			Loss:        loss,
			Bits:        (c.PayloadBits + c.HeaderBits) / c.DeliveredRatio,
			PayloadBits: c.PayloadBits,
			Delivered:   c.DeliveredRatio,
			Mismatches:  c.Mismatches + c.Undecodable,
		})
	}
	if !t.cfg.Untimed {
		c, err := t.count(o.scheme, o.redundancy, t.cfg.TimedLoss, false)
		if err != nil {
			return s, err
		}
		s.EncodeNs, s.DecodeNs = c.EncodeFastest, c.DecodeFastest
	}
	return s, nil
}

func (t *trial) count(scheme string, redundancy int, loss float64, untimed bool) (*bench.Counts, error) {
	cfg := t.cfg.link(loss)
	cfg.Schemes, cfg.Redundancy, cfg.Untimed = []string{scheme}, redundancy, untimed
	r, err := bench.Run(t.ctx, t.measured, cfg)
	if err != nil {
		return nil, err
	}
	return &r.Codecs[0], nil
}
