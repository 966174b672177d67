package dashboard

import (
	"maps"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/endpoint"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
)

// TestFlowParts checks that the parts of a flow add up to the wire bytes of its datagrams.
func TestFlowParts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := func(name string) uint64 { return rapid.Uint64Range(0, 1e9).Draw(t, name) }
		r := ds.RPCStats{Payloads: endpoint.Payloads{
			RPC: "Move", Reliable: rapid.Bool().Draw(t, "reliable"), Coalesced: n("coalesced"), CoalescedBytes: n("coalesced bytes"), AEADBytes: n("AEAD"),
		}}
		r.Messages = r.Coalesced + n("alone")
		r.PayloadBits, r.HeaderBits = 8*n("payload"), 8*n("header")
		r.Bytes = (r.PayloadBits + r.HeaderBits) / 8
		around := uint64(endpoint.HeaderSize + endpoint.IPSize)
		if r.Reliable {
			around = endpoint.SegmentHeaderSize + endpoint.IPSize
		}
		want := 8 * (r.Bytes + r.AEADBytes + r.CoalescedBytes + (r.Messages-r.Coalesced)*around)
		f := newFlow(&r)
		if got := f.Encoded + f.Header + f.AEAD + f.Headers; got != want || f.Encoded != r.PayloadBits || f.Header != r.HeaderBits {
			t.Errorf("%d bits, want %d: %+v", got, want, f)
		}
	})
}

// TestSince checks that a sample is the difference of two observations, for each RPC and channel,
// and never negative.
func TestSince(t *testing.T) {
	begin := time.UnixMilli(1_000_000)
	before := observation{at: begin, totals: totals{Players: 4, Acks: 10, AckBits: 800, RTTs: 3, RTTTime: 900, Drops: map[string]uint64{"token": 2, "full": 1}}}
	now := observation{at: begin.Add(2 * time.Second), totals: totals{Players: 3, Acks: 30, AckBits: 2400, RTTs: 5, RTTTime: 1500, Drops: map[string]uint64{"token": 5, "full": 1}}}
	stats := func(rpc string, reliable bool, delta, missed, late uint64) flow {
		r := ds.RPCStats{Payloads: endpoint.Payloads{RPC: rpc, Reliable: reliable}, Missed: missed, Stats: rpcdelta.Stats{Delta: delta, FullBits: 100 * delta, AgeSum: 6 * delta}}
		r.Drops[ds.Late] = late
		return newFlow(&r)
	}
	before.flows = []flow{stats("Aim", false, 10, 0, 0), stats("Move", false, 100, 20, 1)}
	now.flows = []flow{stats("Aim", false, 10, 0, 0), stats("Aim", true, 5, 0, 0), stats("Move", false, 160, 19, 4)}
	s := now.since(&before)
	if s.At != 1_002_000 || s.Seconds != 2 || s.Players != 3 || s.Acks != 20 || s.AckBits != 1600 || s.RTTs != 2 || s.RTTTime != 600 {
		t.Errorf("%+v", s)
	}
	if !maps.Equal(s.Drops, map[string]uint64{"token": 3}) {
		t.Errorf("drops %v", s.Drops)
	}
	for i, want := range []struct {
		calls, missed uint64
		drops         map[string]uint64
	}{{0, 0, nil}, {5, 0, nil}, {60, 0, map[string]uint64{"late": 3}}} {
		if f := s.RPCs[i]; f.Calls != want.calls || f.Delta != want.calls || f.Full != 100*want.calls || f.Age != 6*want.calls || f.Missed != want.missed || !maps.Equal(f.Drops, want.drops) {
			t.Errorf("RPC %d: %+v, want %+v", i, f, want)
		}
	}
	if len(now.flows[2].Drops) != 1 || now.flows[2].Drops["late"] != 4 {
		t.Errorf("the counts have changed: %v", now.flows[2].Drops)
	}
}
