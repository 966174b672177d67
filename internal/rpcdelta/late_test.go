package rpcdelta

import (
	"errors"
	"slices"
	"testing"

	"github.com/uplink-rpc/uplink/internal/rpcdelta/wire"
)

// TestLate verifies that with DeliverLate a frame that arrives out of order is delivered once,
// marked as late, and dropped otherwise. In both cases it is no baseline: its ack bit stays 0.
func TestLate(t *testing.T) { forSingles(t, checkLate) }

func checkLate(t *testing.T, v variant) {
	for _, deliver := range []bool{false, true} {
		p := newPair(t, smallSchema(t), v.encoder(EncoderConfig{}), DecoderConfig{DeliverLate: deliver})
		for range 5 {
			p.exchange(t)
		}
		p.arrive(t, p.sendMarked(t, 4), []arrival{
			{2, []uint64{7}, false, 2, nil},
			{2, nil, false, 0, ErrDuplicate},
			{0, []uint64{5}, true, 0, nil},
			{0, nil, true, 0, ErrDuplicate},
			{3, []uint64{8}, false, 0, nil},
			{0, nil, true, 0, ErrDuplicate},
			{1, []uint64{6}, true, 0, nil},
			{1, nil, true, 0, ErrDuplicate},
			{2, nil, false, 0, ErrDuplicate},
		})
		a := p.acknowledge(t)
		if a.Seq != 8 || a.Len != 3 || a.Window != 0b001 { // 7, not 6 and 5
			t.Errorf("ack %+v, window %b", a, a.Window)
		}
	}
}

// TestLateBeyondTheRing verifies that a late frame whose baseline was evicted does not request a
// reset.
func TestLateBeyondTheRing(t *testing.T) { forSingles(t, checkLateBeyondTheRing) }

func checkLateBeyondTheRing(t *testing.T, v variant) {
	p := newPair(t, smallSchema(t), v.encoder(EncoderConfig{PeerRing: 4}), DecoderConfig{Ring: 4, DeliverLate: true})
	p.frame.Ints[0] = 1 << 20
	p.exchange(t)
	if info := p.send(t); info.Kind != Delta {
		t.Fatalf("%+v", info)
	}
	kept := slices.Clone(p.payload)
	for range 6 {
		p.send(t)
		p.receive(t)
	}
	var want error
	if v.codec == RLE {
		want = ErrLate // the adaptive decoder keeps more frames, and checkpoints of its state
	}
	if out, err := p.dec.Decode(kept); !errors.Is(err, want) || err == nil && !out[0].Frame.Equal(p.frame) {
		t.Errorf("%v, want %v", err, want)
	}
	if a := p.acknowledge(t); a.ResetReason != nil {
		t.Errorf("%+v", a)
	}
}

// TestLateAroundReset verifies that frames that arrive after a reset are late if they are of the
// new epoch, and dropped if they are of the old one, with a baseline or without.
func TestLateAroundReset(t *testing.T) { forSingles(t, checkLateAroundReset) }

func checkLateAroundReset(t *testing.T, v variant) {
	p := newPair(t, smallSchema(t), v.encoder(EncoderConfig{}), DecoderConfig{DeliverLate: true})
	p.frame.Ints[0] = 1 << 20
	p.send(t)
	keyframe := slices.Clone(p.payload)
	for range 5 {
		p.exchange(t)
	}
	p.send(t) // 6, a delta of the old epoch
	delta := slices.Clone(p.payload)
	must(t, p.enc.Ack(Ack{Seq: 6, ResetReason: ErrBaselineMissing}))
	p.send(t) // 7 and 8, both able to reset
	first := slices.Clone(p.payload)
	p.send(t)
	if d := p.receive(t); d.Kind != Reset || p.dec.epoch != 1 {
		t.Fatalf("%+v, epoch %d", d, p.dec.epoch)
	}
	out, err := p.dec.Decode(first)
	if err != nil || out[0].Kind != Keyframe || !out[0].Late || p.dec.epoch != 1 {
		t.Errorf("a late frame of the new epoch: %+v, %v", out, err)
	}
	for _, old := range [][]byte{keyframe, delta} {
		if out, err = p.dec.Decode(old); !errors.Is(err, ErrLate) || p.dec.epoch != 1 {
			t.Errorf("a late frame of the old epoch: %+v, %v", out, err)
		}
	}
	if a := p.acknowledge(t); a.Epoch != 1 || a.Seq != 8 || !a.Whole || a.Len != 0 {
		t.Errorf("%+v", a)
	}
	if info := p.exchange(t); info.Kind != Delta {
		t.Errorf("%+v, want a delta", info)
	}
}

// TestOldEpochs verifies that a frame without baseline is dropped if it is of an older epoch
// although its sequence is the newest, and resets the decoder if it is of a newer epoch.
func TestOldEpochs(t *testing.T) { forSingles(t, checkOldEpochs) }

func checkOldEpochs(t *testing.T, v variant) {
	for ahead := range uint8(8) {
		p := newPair(t, smallSchema(t), v.encoder(EncoderConfig{}), DecoderConfig{})
		p.enc.epoch = 6
		p.exchange(t)
		p.enc.epoch = (6 + ahead) & wire.EpochMask
		p.enc.hasBase, p.enc.acked = false, false
		p.send(t)
		out, err := p.dec.Decode(p.payload)
		switch {
		case ahead == 0 && (err != nil || out[0].Kind != Keyframe),
			ahead > 0 && ahead <= 4 && (err != nil || out[0].Kind != Reset || p.dec.epoch != p.enc.epoch),
			ahead > 4 && (!errors.Is(err, ErrLate) || p.dec.epoch != 6):
			t.Errorf("%d ahead: %+v, %v, epoch %d", ahead, out, err, p.dec.epoch)
		}
	}
}

// TestLateness covers the maximum delay at which the sequence of a header is unambiguous.
func TestLateness(t *testing.T) { forSingles(t, checkLateness) }

func checkLateness(t *testing.T, v variant) {
	for _, c := range []struct {
		long bool
		late int
	}{{false, 63}, {true, 1023}} {
		p := newPair(t, smallSchema(t), v.encoder(EncoderConfig{}), DecoderConfig{DeliverLate: true})
		for range 2000 {
			p.exchange(t)
		}
		if c.long {
			p.enc.hasBase = false
		}
		if info := p.send(t); (info.HeaderBits >= 8*wire.LongHeader) != c.long {
			t.Fatalf("%+v", info)
		}
		kept := slices.Clone(p.payload)
		for range c.late {
			p.exchange(t)
		}
		out, err := p.dec.Decode(kept)
		if newest := p.enc.next - 1; p.dec.processed.Newest != newest || err == nil && !out[0].Late || err != nil && !errors.Is(err, ErrLate) {
			t.Errorf("late by %d: %+v, %v; newest %d, want %d", c.late, out, err, p.dec.processed.Newest, newest)
		}
	}
}
