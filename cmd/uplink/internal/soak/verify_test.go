package soak

import (
	"errors"
	"testing"

	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/schema"
	"github.com/uplink-rpc/uplink/trace"
	"github.com/uplink-rpc/uplink/trace/sample"
)

// TestFrame plays from a row of its own, with frames missing, around the end of the trace.
func TestFrame(t *testing.T) {
	played := sample.Portal2()
	v := newVerifier([]*trace.Trace{played})
	frame := func(p *ds.Player, row int, seq uint64) {
		v.Frame(p, ds.Frame[*schema.Frame]{Value: played.At(row), Seq: seq})
	}
	expect := func(wantGood, wantBad uint64) {
		t.Helper()
		if good, bad := v.Counts(); good != wantGood || bad != wantBad {
			t.Errorf("%d good, %d bad, want %d and %d", good, bad, wantGood, wantBad)
		}
	}
	one, two := new(ds.Player), new(ds.Player)
	for i := range 2000 {
		frame(one, 3000+3*i, uint64(3*i))
		frame(two, 100+i, uint64(7+i))
	}
	expect(4000, 0)
	frame(one, 1, 6000) // a row that was not to come; whatever comes next is a new beginning
	expect(4000, 1)
	frame(one, 2, 6001)
	expect(4001, 1)
	altered := played.Schema.NewFrame()
	altered.CopyFrom(played.At(2100))
	altered.Ints[0]++
	v.Frame(two, ds.Frame[*schema.Frame]{Value: altered, Seq: 2007})
	expect(4001, 2)
	v.Left(one, nil)
	v.Left(two, errors.New("gone"))
	if len(v.players) != 0 {
		t.Errorf("%d players are kept", len(v.players))
	}
}
