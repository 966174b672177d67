package bench

import (
	"fmt"
	"testing"

	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/sample"
)

// TestTallyNotices counts errors that no run produces.
func TestTallyNotices(t *testing.T) {
	s := sample.Portal2()
	wrong := s.Schema.NewFrame()
	wrong.CopyFrom(&s.Frames[1])
	wrong.Ints[0]++
	p := newPair(t.Context(), s, Config{}, scheme{})
	c := &p.tally
	for _, d := range []rpcdelta.Delivery{
		{Info: rpcdelta.Info{Seq: 0}, Frame: &s.Frames[0]},
		{Info: rpcdelta.Info{Seq: 1}, Frame: wrong},
		{Info: rpcdelta.Info{Seq: uint64(len(s.Frames))}, Frame: &s.Frames[0]}, // never sent
	} {
		p.count([]rpcdelta.Delivery{d}, nil)
	}
	for _, err := range []error{rpcdelta.ErrLate, rpcdelta.ErrDuplicate, rpcdelta.ErrBaselineMissing, rpcdelta.ErrDesync, fmt.Errorf("%w: x", rpcdelta.ErrMalformed)} {
		p.count(nil, err)
	}
	if c.delivered != 1 || c.mismatches != 2 || c.undecodable != 3 {
		t.Errorf("%+v", c)
	}
}
