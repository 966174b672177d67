// Package inspect reads captures of a dedicated server. It decodes each payload again and compares
// the result with the server's.
package inspect

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/uplink-rpc/uplink/cmd/uplink/internal/budget"
	"github.com/uplink-rpc/uplink/internal/capture"
	"github.com/uplink-rpc/uplink/internal/record"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/rpcdelta/prior"
	"github.com/uplink-rpc/uplink/internal/schema"
)

// Options select records. The zero value selects all.
type Options struct {
	Player   uint64 // 0: all
	RPC      string // "": all
	From, To time.Duration
	// Each, if not nil, is called for each frame and for each payload without a frame.
	Each func(Row)
	// Explain is the number of the record to explain; 0: none.
	Explain int
	// Memory limits the memory for a file in bytes: sessions, streams and their decoders, schemas
	// and priors. 0 means [budget.Default]. Streams whose decoders exceed it are not decoded. If
	// anything else exceeds it, Run fails.
	Memory int64
	// Progress, if not nil, is called from time to time with the bytes read so far.
	Progress func(done int64)

	frame func(x *inspection, player uint64, s *schema.Schema, d *rpcdelta.Delivery) // called for each frame; may be nil
}

func (o *Options) wants(player uint64, rpc string, at time.Duration) bool {
	return (o.Player == 0 || o.Player == player) && (o.RPC == "" || o.RPC == rpc) && at >= o.From && (o.To == 0 || at <= o.To)
}

type inspection struct {
	options Options
	sum     *Summary
	players map[uint64]*player
	schemas map[uint64]*schema.Schema
	priors  map[uint64]*prior.Prior
	rpcs    map[rpcKey]*RPC
	limits  limits
	at      capture.Record // the current record, without its body
	asked   *Explained
	done    bool // whether the requested record is explained
}

// Run reads a capture. The summary covers the records read, also if there is an error; it is nil
// only if nothing was read. The error is nil at the end of a complete file, and otherwise the
// reader's.
func Run(r io.Reader, o Options) (*Summary, *Explained, error) {
	in, err := capture.NewReader(r)
	if err != nil {
		return nil, nil, err
	}
	x := &inspection{
		options: o, players: map[uint64]*player{}, schemas: map[uint64]*schema.Schema{},
		priors: map[uint64]*prior.Prior{prior.Generic().Hash(): prior.Generic()}, rpcs: map[rpcKey]*RPC{},
		limits: limits{Budget: budget.New(o.Memory), rates: map[rateKey]*schema.Schema{}},
	}
	start := in.Start()
	x.sum = &Summary{
		Start: start.Wall.UTC(), Index: start.Index,
		Drops: map[string]uint64{}, Transport: map[string]uint64{}, byPlayer: map[uint64]*Session{},
	}
	err = x.read(in)
	x.sum.Bytes = in.Offset()
	for _, p := range x.players {
		p.finish(x)
	}
	x.sum.finish(x)
	if o.Explain != 0 && x.asked == nil && err == nil {
		err = fmt.Errorf("there is no record %d: the file has %d", o.Explain, x.sum.Records)
	}
	if x.asked != nil {
		x.asked.sortPayloads()
	}
	return x.sum, x.asked, err
}

func (x *inspection) read(in *capture.Reader) error {
	const often = 4096 // records
	for !x.done {
		rec, err := in.Next()
		if errors.Is(err, io.EOF) {
			x.sum.Whole = true
			return nil
		}
		if err != nil {
			return err
		}
		x.sum.Records++
		x.sum.Seconds = max(x.sum.Seconds, rec.At.Seconds())
		if x.options.Progress != nil && rec.Number%often == 0 {
			x.options.Progress(rec.Offset)
		}
		if len(x.sum.byPlayer) > maxSessionsRead {
			return fmt.Errorf("record %d: more than %d sessions", rec.Number, maxSessionsRead)
		}
		body := rec.Body
		rec.Body = nil
		x.at = rec
		x.take(body)
		if err := x.limits.full; err != nil {
			return fmt.Errorf("record %d: %w", rec.Number, err)
		}
	}
	return nil
}

func (x *inspection) take(body record.Body) {
	if x.at.Number == x.options.Explain {
		x.ask(body)
	}
	switch b := body.(type) {
	case *record.Start:
	case *record.Schema:
		x.schema(b)
	case *record.Prior:
		x.prior(b)
	case *record.Opened:
		x.opened(b)
	case *record.Closed:
		x.player(b.Player).closed(x, b)
	case *record.Bound:
		x.player(b.Player).bound(x, b)
	case *record.Datagram:
		x.player(b.Player).datagram(x, b)
	case *record.Message:
		x.player(b.Player).message(x, b)
	case *record.Decoded:
		x.player(b.Player).decoded(x, b)
	case *record.Dropped:
		x.player(b.Player).dropped(x, b)
	case *record.Withheld:
		x.player(b.Player).withheld(x, b)
	case *record.Lost:
		x.lost(b)
	case *record.Counts:
		for _, c := range b.Drops {
			x.limits.count(x.sum.Transport, c.Reason, c.N)
		}
	case *record.End:
		x.sum.Continues = b.More
	}
}

func (x *inspection) schema(b *record.Schema) {
	s, err := x.limits.Schema(b.JSON)
	if x.parsed(err, fmt.Sprint("schema ", b.ID)) {
		x.schemas[b.ID] = s
	}
}

func (x *inspection) prior(b *record.Prior) {
	p, err := x.limits.Prior(b.File)
	if x.parsed(err, "prior "+prior.Name(b.Hash)) {
		x.priors[b.Hash] = p
	}
}

// parsed reports whether err is nil. Errors are counted as problems, except that exhausted memory
// ends the inspection.
func (x *inspection) parsed(err error, what string) bool {
	var spent *budget.Error
	if errors.As(err, &spent) {
		x.limits.full = cmp.Or(x.limits.full, err)
	} else if err != nil && len(x.sum.Problems) < maxProblems {
		x.sum.Problems = append(x.sum.Problems, fmt.Sprintf("record %d: %s: %v", x.at.Number, what, err))
	}
	return err == nil
}

// lost discards state that is wrong after lost records.
func (x *inspection) lost(b *record.Lost) {
	x.sum.Lost += b.Records
	for _, p := range x.players {
		p.forget(x)
		for _, s := range p.streams {
			s.stop(afterLoss)
		}
	}
}

// Bounds for captures from untrusted sources.
const (
	// maxSessionsRead is the maximum number of sessions of a file.
	maxSessionsRead = 1 << 20
	// maxRates is the maximum number of combinations of schema, rate and prior.
	maxRates = 256

	// Measured sizes in bytes. A decoder that delivers late frames keeps up to lateStates earlier
	// states.
	decoderSize       = 5 << 10
	statePerComponent = 430
	lateStates        = 7

	playerSize  = 512
	sessionSize = 256
	streamSize  = 768
	carriedSize = 256
	payloadSize = 64
	rpcSize     = 2 << 10
	reasonSize  = 128
)

// limits bounds the memory for a file.
type limits struct {
	*budget.Budget
	full  error // first error of keep
	rates map[rateKey]*schema.Schema
}

// keep reserves memory. If none is left, the inspection ends with the error.
func (l *limits) keep(bytes int) {
	l.full = cmp.Or(l.full, l.Take(bytes))
}

// count sets the count of a reason. The text of each reason is stored once.
func (l *limits) count(counts map[string]uint64, reason string, n uint64) {
	if _, ok := counts[reason]; !ok {
		l.keep(reasonSize + len(reason))
	}
	counts[reason] = n
}

type rateKey struct {
	schema, prior uint64
	hz            float64
	perTick       string
}

func (l *limits) atRate(declared *schema.Schema, b *record.Bound) (*schema.Schema, error) {
	key := rateKey{b.Schema, b.Prior, b.RateHz, fmt.Sprint(b.PerTick)}
	if s := l.rates[key]; s != nil {
		return s, nil
	}
	if len(l.rates) == maxRates {
		return nil, fmt.Errorf("more than %d schemas and rates", maxRates)
	}
	if err := l.TakeMost(budget.Model(declared)); err != nil {
		return nil, err
	}
	s, err := declared.WithPerTick(b.RateHz, b.PerTick)
	if err == nil {
		l.rates[key] = s
	}
	return s, err
}

// take reserves memory for a decoder and returns the decoder's size.
func (l *limits) take(s *schema.Schema, b *record.Bound) (int, error) {
	ring := max(b.Ring, rpcdelta.DefaultRing)
	frame := 4*s.Components() + 24
	for i := range s.Fields() {
		if f := &s.Fields()[i]; f.Max != nil && f.Kind == schema.KindBytes {
			frame += 24 + int(*f.Max)
		} else {
			frame += f.Size
		}
	}
	state := statePerComponent * s.Components()
	cost := decoderSize + ring*frame*5/4 + state
	if b.DeliverLate || repairTime(b) > 0 {
		cost += lateStates * (state + 1<<10)
	}
	if err := l.TakeMost(cost); err != nil {
		return 0, err
	}
	return cost, nil
}
