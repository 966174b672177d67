package compare

import (
	"errors"
	"fmt"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/internal/bench"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/lab/internal/peer"
)

// replay runs a peer on the course of a link.
type replay struct {
	peer.Peer
	kind   *peer.Kind
	frames []schema.Frame
	course bench.Course
	held   []schema.Frame // decoded by the server
	rows   []schema.Frame // output of Decode
	tally  tally          // result of run
}

type tally struct{ sent, payloads, headers, delivered, wrong int }

func (t *tally) add(o *tally) {
	t.sent += o.sent
	t.payloads += o.payloads
	t.headers += o.headers
	t.delivered += o.delivered
	t.wrong += o.wrong
}

func (t *tally) point() Point {
	return Point{
		Bits:        share(t.payloads+t.headers, t.delivered),
		PayloadBits: share(t.payloads, t.sent),
		Delivered:   share(t.delivered, t.sent),
		Mismatches:  t.wrong,
	}
}

func newReplay(p peer.Peer, k *peer.Kind, s *schema.Schema, frames []schema.Frame, course bench.Course) *replay {
	r := &replay{Peer: p, kind: k, frames: frames, course: course, held: make([]schema.Frame, len(frames))}
	for range k.Span {
		r.rows = append(r.rows, *s.NewFrame())
	}
	for i := range r.held {
		r.held[i] = *s.NewFrame()
	}
	return r
}

// first returns the first of the frames in payload n. Schemes of engines repeat acked frames too.
func (r *replay) first(n int) int {
	if r.kind.Class == peer.Engine {
		return max(0, n+1-r.kind.Span)
	}
	return first(r.course, n, r.kind.Span)
}

// base returns the baseline of frame n among frames, or nil.
func (r *replay) base(n int, frames []schema.Frame) *schema.Frame {
	if b := r.course[n].Base; r.kind.Delta && b >= 0 {
		return &frames[b]
	}
	return nil
}

func (r *replay) encode(dst []byte, n int) ([]byte, error) {
	return r.Append(dst, r.base(n, r.frames), r.frames[r.first(n):n+1])
}

func (r *replay) decode(n int, payload []byte) ([]schema.Frame, error) {
	rows := r.rows[:n+1-r.first(n)]
	return rows, r.Decode(rows, r.base(n, r.held), payload)
}

// run sends every frame. The server decodes against the frames that it has decoded.
func (r *replay) run() (Point, error) {
	var payload []byte
	next := 0
	r.tally = tally{sent: len(r.frames)}
	for n := range r.frames {
		var err error
		if payload, err = r.encode(payload[:0], n); err != nil {
			return Point{}, fmt.Errorf("frame %d: %w", n, err)
		}
		r.tally.payloads += 8 * len(payload)
		r.tally.headers += r.course[n].HeaderBits
		if !r.course[n].Arrived {
			continue
		}
		rows, err := r.decode(n, payload)
		if err != nil {
			return Point{}, fmt.Errorf("frame %d: %w", n, err)
		}
		for i := range rows {
			q := r.first(n) + i
			if q < next {
				continue // delivered earlier
			}
			r.tally.delivered++
			r.held[q].CopyFrom(&rows[i])
			if !rows[i].Equal(&r.frames[q]) {
				r.tally.wrong++
			}
		}
		next = n + 1
	}
	return r.tally.point(), nil
}

func share(a, b int) float64 { return float64(a) / float64(max(b, 1)) }

// Minimum time and number of passes of a measurement.
const (
	measureFor    = 100 * time.Millisecond
	measurePasses = 3
)

// measure returns the mean times per frame of the fastest passes. Call run first, which sets the
// baselines.
func (r *replay) measure() (encodeNs, decodeNs float64, err error) {
	payloads, arrived := make([][]byte, len(r.frames)), 0
	for n := range payloads {
		if payloads[n], err = r.encode(nil, n); err != nil {
			return 0, 0, err
		}
		if r.course[n].Arrived {
			arrived++
		}
	}
	var room []byte
	encodeNs, err = fastest(func() error {
		for n := range r.frames {
			var err error
			if room, err = r.encode(room[:0], n); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return 0, 0, err
	}
	decodeNs, err = fastest(func() error {
		for n := range r.frames {
			if !r.course[n].Arrived {
				continue
			}
			if _, err := r.decode(n, payloads[n]); err != nil {
				return err
			}
		}
		return nil
	})
	return encodeNs / float64(len(r.frames)), decodeNs / float64(max(arrived, 1)), err
}

// fastest returns the time of the fastest of several passes, in nanoseconds.
func fastest(pass func() error) (ns float64, err error) {
	start, least := time.Now(), time.Duration(0)
	for n := 0; n < measurePasses || time.Since(start) < measureFor; n++ {
		at := time.Now()
		if err := pass(); err != nil {
			return 0, err
		}
		if took := time.Since(at); n == 0 || took < least {
			least = took
		}
	}
	return float64(least), nil
}

// Names of this project's codecs.
const (
	// Paper is codec rle with the header of the paper.
	Paper = "paper"
	// Adaptive is codec adaptive without redundancy.
	Adaptive = "adaptive"
	// Redundant is codec adaptive with preset low-latency.
	Redundant = Adaptive + repeatedSuffix
)

// ownKind is a scheme that internal/bench runs.
type ownKind struct {
	name, scheme string
	presets      []client.Preset // presets; empty: without redundancy
	note         string
}

// owns are the schemes of this project and of the paper.
var owns = []ownKind{
	{Paper, "paper", nil, "rle under two sequence numbers of 32 bits, a size inferred from the paper's 32-bit ack"},
	{"rle", "rle", nil, ""},
	{Adaptive, "adaptive", nil, ""},
	{Redundant, "adaptive", []client.Preset{preset}, ""},
}

func (t *trial) own(o *ownKind) (Scheme, error) {
	t.cfg.Progress(t.measured.Name, o.name)
	s := Scheme{Name: o.name, Class: Own, Note: o.note}
	for _, loss := range t.cfg.Losses {
		c, err := t.count(o, loss, true)
		if err != nil {
			return s, err
		}
		if c.FramesDelivered == 0 {
			return s, errors.New("no frame was delivered")
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
		c, err := t.count(o, t.cfg.TimedLoss, false)
		if err != nil {
			return s, err
		}
		s.EncodeNs, s.DecodeNs = c.EncodeFastest, c.DecodeFastest
	}
	return s, nil
}

func (t *trial) count(o *ownKind, loss float64, untimed bool) (*bench.Counts, error) {
	cfg := t.cfg.link(loss)
	cfg.Schemes, cfg.Presets, cfg.Untimed = []string{o.scheme}, o.presets, untimed
	if len(o.presets) == 0 {
		cfg.Redundancy = rpcdelta.RedundancyOff
	}
	if untimed {
		cfg.Seeds = t.cfg.seeds(loss)
	}
	r, err := bench.Run(t.ctx, t.measured, cfg)
	if err != nil {
		return nil, err
	}
	return &r.Codecs[0], nil
}
