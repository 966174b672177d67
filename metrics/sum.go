package metrics

import (
	"reflect"
	"slices"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/internal/replication"
)

// addCounters adds the counters of src to dst, by RPC and by world. It does not change the other
// fields of dst.
func addCounters(dst, src *client.Stats) {
	for i := range src.RPCs {
		r := &src.RPCs[i]
		sum := find(&dst.RPCs, func(d *client.RPCStats) bool { return d.RPC == r.RPC && d.Reliable == r.Reliable })
		sum.RPC, sum.Reliable = r.RPC, r.Reliable
		addUnsigned(reflect.ValueOf(sum).Elem(), reflect.ValueOf(r).Elem())
	}
	for i := range src.Replication {
		r := &src.Replication[i]
		sum := find(&dst.Replication, func(d *replication.Stats) bool { return d.Name == r.Name })
		sum.Name = r.Name
		addUnsigned(reflect.ValueOf(sum).Elem(), reflect.ValueOf(r).Elem())
	}
	addUnsigned(reflect.ValueOf(dst).Elem(), reflect.ValueOf(src).Elem())
	dst.Transport.RTTs.Sum += src.Transport.RTTs.Sum
}

func find[T any](all *[]T, match func(*T) bool) *T {
	i := slices.IndexFunc(*all, func(v T) bool { return match(&v) })
	if i < 0 {
		i = len(*all)
		*all = append(*all, *new(T))
	}
	return &(*all)[i]
}

// addUnsigned adds all unsigned integers in src, also those in its structs and arrays, to dst.
func addUnsigned(dst, src reflect.Value) {
	switch src.Kind() {
	case reflect.Uint64:
		dst.SetUint(dst.Uint() + src.Uint())
	case reflect.Struct:
		for i := range src.NumField() {
			if dst.Field(i).CanSet() {
				addUnsigned(dst.Field(i), src.Field(i))
			}
		}
	case reflect.Array:
		for i := range src.Len() {
			addUnsigned(dst.Index(i), src.Index(i))
		}
	default:
	}
}
