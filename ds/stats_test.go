package ds

import (
	"reflect"
	"testing"

	"github.com/uplink-rpc/uplink/internal/endpoint"
)

// TestDropString verifies that each reason has a name of its own, and that other values have one
// too.
func TestDropString(t *testing.T) {
	seen := map[string]bool{}
	for d := range drops + 2 {
		if s := d.String(); s == "" || seen[s] {
			t.Errorf("reason %d is %q", d, s)
		} else {
			seen[s] = true
		}
	}
}

// fill sets every number in v to n.
func fill(v reflect.Value, n uint64) {
	k := v.Kind()
	for i := 0; k == reflect.Struct && i < v.NumField(); i++ {
		fill(v.Field(i), n)
	}
	for i := 0; k == reflect.Array && i < v.Len(); i++ {
		fill(v.Index(i), n)
	}
	if k == reflect.Uint64 {
		v.SetUint(n)
	}
}

// TestShardsAddUp verifies that Stats adds all counts of the shards.
func TestShardsAddUp(t *testing.T) {
	const shards = 3
	b := newBench(t, Config{Transport: Transport{Shards: shards}}, func(*Player, Frame[testCall]) {})
	var one, want RPCStats
	var acks endpoint.Acks
	fill(reflect.ValueOf(&one).Elem(), 7)
	fill(reflect.ValueOf(&want).Elem(), 7*shards)
	fill(reflect.ValueOf(&acks).Elem(), 7*shards)
	one.Buffer, want.Buffer, want.RPC = BufferStats{}, BufferStats{}, "Call" // buffers count for themselves
	for i, h := range b.srv.shards {
		b.srv.rpcs["Call"].shards[i].unreliable.total = one
		fill(reflect.ValueOf(&h.acks.total).Elem(), 7)
		h.drops[Late] = 7
	}
	if st := b.srv.Stats(); st.RPCs[0] != want || st.Acks != acks || st.Drops[Late] != 7*shards {
		t.Errorf("got %+v", st)
	}
}
