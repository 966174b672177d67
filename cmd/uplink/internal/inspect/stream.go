package inspect

import (
	"errors"
	"fmt"

	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/capture"
	"github.com/uplink-rpc/uplink/internal/record"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/rpcdelta/inspect"
	"github.com/uplink-rpc/uplink/internal/rpcdelta/prior"
	"github.com/uplink-rpc/uplink/internal/schema"
)

// Reasons for not decoding a stream.
const (
	beforeFile = "from before this file"
	afterLoss  = "records were lost before"
	beforeOwn  = "older than where decoding began"
)

type stream struct {
	bound  *record.Bound
	name   string
	schema *schema.Schema
	cfg    rpcdelta.DecoderConfig
	limits *limits
	broken string // reason why there is no decoder

	ready   bool              // whether it can be decoded
	why     string            // reason if it cannot
	dec     *rpcdelta.Decoder // nil before the first payload
	cost    int               // memory reserved for dec
	resumed bool              // whether dec started at a reset within the stream
	began   bool              // whether the reset was decoded
	start   uint64            // sequence number of the reset
	offset  uint64            // difference of the server's sequence numbers from dec's
	acks    ackState
	parts   *inspect.Explanation // explanation of the next payload; usually nil
}

func newStream(x *inspection, b *record.Bound) *stream {
	s := &stream{bound: b, name: fmt.Sprintf("RPC %d", b.RPC), limits: &x.limits}
	s.cfg = rpcdelta.DecoderConfig{
		Codec: b.Codec, RPC: b.RPC, Ring: b.Ring, PeerRing: b.PeerRing, DeliverLate: b.DeliverLate, RepairTime: repairTime(b), Reliable: b.Reliable,
	}
	if declared := x.schemas[b.Schema]; declared == nil {
		s.broken = fmt.Sprintf("schema %d is not in the file", b.Schema)
	} else {
		s.name = declared.RPC()
		var err error
		if s.schema, err = x.limits.atRate(declared, b); err != nil {
			s.broken = err.Error()
		}
	}
	if b.Prior != 0 {
		if s.cfg.Prior = x.priors[b.Prior]; s.cfg.Prior == nil {
			s.broken = fmt.Sprintf("prior %s is not in the file", prior.Name(b.Prior))
		}
	}
	if s.why = beforeFile; !b.Again {
		s.fresh()
	}
	return s
}

// repairTime returns RepairTime of the server's decoder. Such a decoder keeps earlier states for
// payloads that the client repeats.
func repairTime(b *record.Bound) int {
	if b.Reliable || b.Codec != rpcdelta.Adaptive {
		return 0
	}
	return max(0, b.Deadline-b.Batch)
}

// fresh makes the next payload start a new decoder.
func (s *stream) fresh() {
	s.free()
	s.ready, s.why = s.broken == "", s.broken
}

// stop stops decoding until the next reset.
func (s *stream) stop(why string) {
	s.free()
	s.ready, s.why = false, why
}

func (s *stream) free() {
	s.limits.Return(s.cost)
	s.dec, s.cost = nil, 0
}

// make creates the decoder, if the stream can be decoded and has none.
func (s *stream) make() {
	if !s.ready || s.dec != nil {
		return
	}
	var err error
	if s.cost, err = s.limits.take(s.schema, s.bound); err == nil {
		s.dec, err = rpcdelta.NewDecoder(s.schema, s.cfg)
	}
	if err != nil {
		s.broken = err.Error()
		s.stop(s.broken)
	}
}

func reasonOf(err error) string {
	for _, r := range []struct {
		err  error
		drop ds.Drop
	}{
		{rpcdelta.ErrBaselineMissing, ds.BaselineMissing}, {rpcdelta.ErrDesync, ds.Desync}, {rpcdelta.ErrLate, ds.Late}, {rpcdelta.ErrDuplicate, ds.Duplicate},
	} {
		if errors.Is(err, r.err) {
			return r.drop.String()
		}
	}
	return ds.Malformed.String()
}

// again decodes a payload that the server decoded. why is the reason if it cannot be decoded.
// differs is the difference from the server's result.
func (s *stream) again(b []byte, want *record.Decoded) (frames []rpcdelta.Delivery, why, differs string) {
	if !s.ready && want.Kind == rpcdelta.Reset && !s.cfg.Reliable {
		s.fresh()
		s.resumed, s.began, s.start = true, false, want.Seq
	}
	if s.make(); !s.ready {
		return nil, s.why, ""
	}
	if s.resumed && want.Seq < s.start {
		return nil, beforeOwn, ""
	}
	frames, err := s.decode(b)
	if err != nil {
		return nil, "", fmt.Sprintf("the server got %d frames, here it is %v", want.Frames, err)
	}
	newest := &frames[len(frames)-1]
	if s.resumed && !s.began {
		s.began, s.offset = true, want.Seq-newest.Seq
		// The server had received the older frames of this payload earlier.
		frames = frames[max(0, len(frames)-want.Frames):]
	}
	for i := range frames {
		frames[i].Seq += s.offset
	}
	hash := capture.Hash(frames)
	switch {
	case len(frames) != want.Frames:
		differs = fmt.Sprintf("%d frames, the server got %d", len(frames), want.Frames)
	case newest.Seq != want.Seq:
		differs = fmt.Sprintf("frame %d, the server got %d", newest.Seq, want.Seq)
	case newest.Kind != want.Kind:
		differs = fmt.Sprintf("%v, the server got %v", newest.Kind, want.Kind)
	case hash != want.Hash:
		differs = fmt.Sprintf("the frames' hash is %08x, the server got %08x", hash, want.Hash)
	}
	return frames, "", differs
}

func (s *stream) decode(b []byte) ([]rpcdelta.Delivery, error) {
	s.dec.Explain(s.parts)
	s.parts = nil
	frames, err := s.dec.Decode(b)
	s.dec.Explain(nil)
	return frames, err
}

// refuse passes to the decoder a payload that the server's decoder dropped.
func (s *stream) refuse(b []byte, want string) (why, differs string) {
	if s.make(); !s.ready {
		return s.why, ""
	}
	frames, err := s.decode(b)
	if err == nil {
		return "", fmt.Sprintf("%d frames come out, the server dropped it as %s", len(frames), want)
	}
	got := reasonOf(err)
	old := func(r string) bool { return r == ds.Late.String() || r == ds.Duplicate.String() }
	switch {
	case got == want:
		return "", ""
	case s.resumed && old(got) && old(want):
		return beforeOwn, ""
	}
	return "", fmt.Sprintf("it is %v, the server dropped it as %s", err, want)
}
