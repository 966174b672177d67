package ds

import (
	"reflect"
	"testing"
)

// TestDropString names every reason, and does not panic at others.
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

// TestShardsAddUp: what shards counted is added up, whatever it is.
func TestShardsAddUp(t *testing.T) {
	var one, sum RPCStats
	fill(reflect.ValueOf(&one).Elem(), 7)
	one.Buffer = BufferStats{} // buffers count for themselves
	for range 3 {
		(&counts{total: one}).addTo(&sum)
	}
	fill(reflect.ValueOf(&one).Elem(), 21)
	one.Buffer = BufferStats{}
	if sum != one {
		t.Errorf("got %+v\nwant %+v", sum, one)
	}
}
