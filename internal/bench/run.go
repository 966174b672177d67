// Package bench sends recorded play through an Encoder, a simulated link and a Decoder in virtual
// time, and counts bits. The counts depend only on trace and Config. The times of encoding and
// decoding are measured afterwards in real time.
package bench

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/trace"
)

// Run runs the trace once per scheme. It returns the context's error if that is done.
func Run(ctx context.Context, t *trace.Trace, cfg Config) (*Result, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	r := &Result{Trace: t.Name, Frames: len(t.Frames), RateHz: t.Schema.RateHz(), Distance: cfg.Distance}
	if cfg.Distance == 0 {
		l := &cfg.Link
		r.Link = &Link{RTTMs: 1e3 * l.RTT.Seconds(), JitterMs: 1e3 * l.Jitter.Seconds(), Loss: l.Loss, Burst: l.Burst, Seed: l.Seed}
	}
	for _, name := range cfg.Schemes {
		s, err := schemeOf(name)
		if err != nil {
			return nil, err
		}
		for _, s := range s.withPresets(cfg.Presets) {
			c, err := runScheme(ctx, t, cfg, s)
			if err != nil {
				return nil, fmt.Errorf("%s: %s: %w", t.Name, name, err)
			}
			r.Codecs = append(r.Codecs, c)
		}
	}
	r.Suite = r.suites()
	return r, nil
}

func runScheme(ctx context.Context, t *trace.Trace, cfg Config, s scheme) (c Counts, err error) {
	if !cfg.once() {
		return runSeeds(ctx, t, cfg, s)
	}
	p := newPair(ctx, t, cfg, s)
	if err := p.run(); err != nil {
		return Counts{}, err
	}
	c = p.tally.counts(p)
	c.Fields, c.Profile, c.Arrived, c.Listed = p.fieldBits(), p.profile, p.arrived, p.listed
	if !cfg.Untimed {
		err = p.measure(&c)
	}
	return c, err
}

// runSeeds runs the trace over several links, some concurrently, and adds up the counts.
func runSeeds(ctx context.Context, t *trace.Trace, cfg Config, s scheme) (Counts, error) {
	var total tally
	var mu sync.Mutex
	done, seeds := 0, max(cfg.Seeds, 1)
	progress := cfg.Progress
	cfg.Progress = nil
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i := range seeds {
		cfg := cfg
		cfg.Link.Seed += uint64(i)
		cfg.Frames = (cfg.Frames + seeds - 1) / seeds
		g.Go(func() error {
			p := newPair(ctx, t, cfg, s)
			if err := p.run(); err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			total.add(&p.tally)
			if done++; progress != nil {
				progress(s.name, float64(done)/float64(seeds))
			}
			return nil
		})
	}
	err := g.Wait()
	last := newPair(ctx, t, cfg, s)
	last.tally = total
	return last.tally.counts(last), err
}

// pair has both ends of one run, and its script.
type pair struct {
	ctx      context.Context
	cfg      Config
	scheme   scheme
	trace    *trace.Trace
	enc      *rpcdelta.Encoder
	dec      *rpcdelta.Decoder
	tally    tally
	now      time.Duration // virtual time
	acked    time.Duration // time at which the server sent the last ack
	oneWay   time.Duration
	deadline time.Duration // after the one-way delay; 0 if there is none
	warm     int           // frames at the start that do not count
	end      int           // first frame after those that count
	frames   int           // number of frames to send: those until end, and later ones that may repeat them
	fates    []fate        // results of the frames that count
	newest   uint64        // frame that reached the server
	recent   []payload     // payloads that may be repeated
	record   bool
	script   script
	profile  *rpcdelta.Profile // profile of the first run, or nil
	course   *Course           // records the run, or nil
	arrived  []bool            // records which frames arrived, or nil
	listed   []Listed          // the first Config.List frames
	repairs  [][]byte          // payloads repeated in the datagram
	rle      *rpcdelta.Encoder // encodes the same frames into the datagrams of the preset, or nil
	urgent   []int             // components of discrete fields
	room     [2048]byte        // buffer for messages of the timed passes
}

func newPair(ctx context.Context, t *trace.Trace, cfg Config, s scheme) *pair {
	p := &pair{ctx: ctx, cfg: cfg, scheme: s, trace: t, record: cfg.once() && !cfg.Untimed, acked: -time.Second}
	p.warm = int(math.Ceil(cfg.Warmup.Seconds() * t.Schema.RateHz()))
	p.end = p.warm + cmp.Or(cfg.Frames, len(t.Frames))
	p.frames = p.end
	if cfg.Distance == 0 && s.codec == rpcdelta.Adaptive {
		p.frames += rpcdelta.MaxFrames
	}
	p.fates = make([]fate, p.end-p.warm)
	p.oneWay = cfg.Link.RTT / 2
	p.urgent = urgentColumns(t.Schema)
	if s.preset != nil {
		p.deadline = s.preset.DeadlineAt(t.Schema.RateHz())
		p.cfg.Suite = s.preset.Suite
	}
	if cfg.Arrivals && cfg.once() {
		p.arrived = make([]bool, p.end)
	}
	return p
}

// frame returns frame n of the repeated trace.
func (p *pair) frame(n int) *schema.Frame { return &p.trace.Frames[n%len(p.trace.Frames)] }

func (p *pair) run() error {
	if err := p.reset(); err != nil {
		return err
	}
	send := p.overLink
	if p.cfg.Distance != 0 {
		send = p.atDistance
	}
	err := send()
	p.settle()
	return err
}

type script struct {
	acks     []ackAt   // in order
	arrivals []arrival // in order
}

type ackAt struct {
	frame int
	ack   rpcdelta.Ack
}

type arrival struct {
	payload []byte
	acked   bool // an ack was made after it
}

func (p *pair) reset() (err error) {
	c := &p.cfg
	enc := rpcdelta.EncoderConfig{Codec: p.scheme.codec, Ring: c.Ring, PeerRing: c.Ring, Redundancy: c.Redundancy, Prior: c.Prior}
	if preset := p.scheme.preset; preset != nil {
		enc.Delivery, enc.UrgentLoss = preset.Delivery, preset.UrgentLoss
		enc.MaxBatchDelay, enc.Deadline = preset.FramesAt(p.trace.Schema.RateHz())
		enc.Repair = preset.Repair
		if p.rle, err = rpcdelta.NewEncoder(p.trace.Schema, rpcdelta.EncoderConfig{Codec: rpcdelta.RLE, Ring: c.Ring, PeerRing: c.Ring}); err != nil {
			return err
		}
	}
	p.enc, err = rpcdelta.NewEncoder(p.trace.Schema, enc)
	if err != nil {
		return err
	}
	if p.profile == nil && (p.cfg.List > 0 || p.cfg.Fields && p.scheme.codec == rpcdelta.Adaptive) {
		p.profile = rpcdelta.NewProfile(p.trace.Schema)
		p.enc.Measure(p.profile)
	}
	dec := rpcdelta.DecoderConfig{Codec: p.scheme.codec, Ring: c.Ring, PeerRing: c.Ring, Prior: c.Prior}
	if enc.Repair {
		dec.RepairTime = enc.Deadline - enc.MaxBatchDelay
	}
	p.dec, err = rpcdelta.NewDecoder(p.trace.Schema, dec)
	return err
}

// payload is a message of frames, with the sequence numbers of its first and last frame.
type payload struct {
	message        []byte
	oldest, newest uint64
}

// encode returns the payloads that leave in a datagram at frame n: one of it and of the frames
// batched with it, and repaired ones. There are none if frame n waits for a later one.
func (p *pair) encode(n int) ([]payload, error) {
	if n%1024 == 0 {
		if err := p.ctx.Err(); err != nil {
			return nil, err
		}
		if p.cfg.Progress != nil {
			p.cfg.Progress(p.scheme.name, float64(n)/float64(p.frames))
		}
	}
	if n == p.end {
		p.enc.Measure(nil)
	}
	message, info, err := p.appendFrame(nil, n)
	if err != nil || message == nil {
		return nil, err
	}
	payloads := p.with(payload{message, info.Seq - uint64(info.Redundant), info.Seq})
	if len(p.listed) < p.cfg.List {
		p.list(&info)
	}
	if p.counts(info.Seq) {
		p.tally.frame(&p.scheme, info, len(message))
		p.tally.payloadBits += 8 * p.repairSize()
		p.tally.frameBits += 8 * p.repairSize()
	}
	if err := p.encodeRLE(&info); err != nil {
		return nil, err
	}
	for q := info.Seq - uint64(info.Held); q <= info.Seq; q++ {
		if p.counts(q) && p.isUrgent(int(q)) {
			p.tally.urgent++
			p.tally.urgentDelay = max(p.tally.urgentDelay, p.leaves(n)-p.leaves(int(q)))
		}
	}
	if p.course != nil {
		base := -1
		if info.Kind == rpcdelta.Delta {
			base = len(*p.course) - info.BaselineAge
		}
		*p.course = append(*p.course, Passage{Base: base, HeaderBits: info.HeaderBits})
	}
	return payloads, nil
}

// with returns a new payload and the repaired ones, which are copies of recent ones.
func (p *pair) with(first payload) []payload {
	all := []payload{first}
	for _, m := range p.repairs {
		i := slices.IndexFunc(p.recent, func(r payload) bool { return bytes.Equal(r.message, m) })
		all = append(all, p.recent[i])
	}
	p.recent = append(p.recent, first)
	p.recent = p.recent[max(0, len(p.recent)-rpcdelta.MaxRepairAge):]
	return all
}

// counts reports whether frame n counts.
func (p *pair) counts(n uint64) bool { return n >= uint64(p.warm) && n < uint64(p.end) }

// encodeRLE counts the frames of a datagram of a preset as rle sends them in the same datagram: a
// bundle of one payload per frame.
func (p *pair) encodeRLE(info *rpcdelta.Info) error {
	if p.rle == nil {
		return nil
	}
	size := min(info.Held, 1) + bundleLength*info.Held
	for q := info.Seq - uint64(info.Held); q <= info.Seq; q++ {
		message, _, err := p.rle.AppendFrame(p.room[:0], p.frame(int(q)))
		if err != nil {
			return err
		}
		size += len(message)
	}
	if p.counts(info.Seq) {
		p.tally.rleBits += 8 * size
	}
	return nil
}

// repairSize returns the number of bytes that the repeated payloads add to a datagram, in a bundle.
func (p *pair) repairSize() int {
	n := min(len(p.repairs), 1) // the type of the bundle
	for _, b := range p.repairs {
		n += bundleLength + len(b)
	}
	return n
}

// appendFrame appends the result of encode. The last frame of the trace does not wait.
func (p *pair) appendFrame(dst []byte, n int) (message []byte, info rpcdelta.Info, err error) {
	f := p.frame(n)
	if p.scheme.preset != nil {
		if err = p.enc.Hold(f); err == nil && (p.enc.Due() || n+1 == p.frames) {
			message, info = p.enc.AppendHeld(dst)
			p.repairs = p.repairs[:0]
			for b := p.enc.AppendRepair(nil); b != nil; b = p.enc.AppendRepair(nil) {
				p.repairs = append(p.repairs, b)
			}
		}
	} else if p.enc.Held()+1 < p.perPayload() && n+1 < p.frames {
		err = p.enc.Hold(f)
	} else {
		message, info, err = p.enc.AppendFrame(dst, f)
	}
	if err == nil && message != nil && p.enc.Held() > 0 {
		err = errors.New("--send-every or --preset: so many frames do not fit a datagram")
	}
	if err != nil {
		err = fmt.Errorf("frame %d: %w", n, err)
	}
	return message, info, err
}

func (p *pair) perPayload() int {
	if p.scheme.codec == rpcdelta.Adaptive {
		return max(p.cfg.SendEvery, 1)
	}
	return 1
}

func (p *pair) decode(m payload) {
	p.reached(m)
	got, err := p.dec.Decode(m.message)
	p.count(got, err)
	if p.record {
		p.script.arrivals = append(p.script.arrivals, arrival{payload: m.message})
	}
}

// reached notes that a payload reached the server, in time or not.
func (p *pair) reached(m payload) {
	p.newest = max(p.newest, m.newest)
	for q := m.oldest; q <= m.newest; q++ {
		if p.counts(q) {
			p.fates[q-uint64(p.warm)].arrived = true
		}
	}
}

func (p *pair) count(got []rpcdelta.Delivery, err error) {
	if err != nil && !errors.Is(err, rpcdelta.ErrLate) && !errors.Is(err, rpcdelta.ErrDuplicate) {
		p.tally.undecodable++
	}
	for i := range got {
		n := got[i].Seq
		if n < uint64(len(p.arrived)) {
			p.arrived[n] = true
		}
		if n < uint64(len(p.listed)) {
			p.listed[n].Arrived = true
		}
		if p.course != nil {
			(*p.course)[n].Arrived = true
		}
		switch {
		case n >= uint64(p.frames) || !got[i].Frame.Equal(p.frame(int(n))):
			p.tally.mismatches++
		case p.counts(n):
			p.tally.delivered++
			delay := p.now - p.leaves(int(n)) - p.oneWay
			p.tally.delay += delay
			if p.deadline == 0 || delay <= p.deadline {
				p.fates[n-uint64(p.warm)].inTime = true
			}
		}
	}
}

// fate records whether a frame reached the server in a payload, and whether it was delivered in
// time.
type fate struct{ arrived, inTime bool }

// settle counts the fates of all frames.
func (p *pair) settle() {
	for _, f := range p.fates {
		p.tally.frames++
		switch {
		case f.inTime:
			p.tally.inTime++
		case f.arrived:
			p.tally.late++
		}
	}
}

// urgentColumns returns the components of fields that are urgent by default.
func urgentColumns(s *schema.Schema) (columns []int) {
	for _, l := range s.Layouts() {
		if l.Field.Kind == schema.KindBits || l.Field.Kind == schema.KindBool {
			for k := range l.N {
				columns = append(columns, l.At+k)
			}
		}
	}
	return columns
}

// isUrgent reports whether a bit or bool of frame n changed.
func (p *pair) isUrgent(n int) bool {
	if n == 0 {
		return false
	}
	f, before := p.frame(n), p.frame(n-1)
	for _, at := range p.urgent {
		if f.Ints[at] != before.Ints[at] {
			return true
		}
	}
	return false
}

// makeAck returns the decoder's ack.
func (p *pair) makeAck() []byte {
	ack := p.dec.AppendAck(nil)
	if p.counts(p.newest) {
		p.tally.acks++
		p.tally.ackBytes += cmp.Or(p.scheme.ack, len(ack))
	}
	if p.record {
		p.script.arrivals[len(p.script.arrivals)-1].acked = true
	}
	return ack
}

// takeAck passes an ack to the encoder before frame n.
func (p *pair) takeAck(message []byte, n int) error {
	ack, _, err := rpcdelta.ParseAck(message)
	if err != nil {
		return err
	}
	if p.record {
		p.script.acks = append(p.script.acks, ackAt{frame: n, ack: ack})
	}
	if p.rle != nil {
		if err := p.rle.Ack(ack); err != nil {
			return err
		}
	}
	return p.enc.Ack(ack)
}

func (p *pair) fieldBits() []FieldBits {
	if p.profile == nil || !p.cfg.Fields {
		return nil
	}
	out := make([]FieldBits, len(p.profile.Fields))
	for i, f := range p.profile.Fields {
		out[i] = FieldBits{Name: f.Name, FullBits: share(int(f.FullBits), p.end), PayloadBits: thousandths(f.Bits / float64(p.end))}
	}
	return out
}
