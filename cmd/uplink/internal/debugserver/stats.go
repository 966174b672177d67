package debugserver

import (
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/transport"
)

// Stats gives a server's statistics for JSON, with the names of the reasons for drops.
func Stats(st ds.Stats) any {
	type rpc struct {
		ds.RPCStats
		Drops map[string]uint64
	}
	out := struct {
		RPCs      []rpc
		Acks      ds.AckStats
		Drops     map[string]uint64
		Transport transport.ListenerStats
	}{Acks: st.Acks, Drops: drops(st.Drops[:]), Transport: st.Transport}
	for _, r := range st.RPCs {
		out.RPCs = append(out.RPCs, rpc{r, drops(r.Drops[:])})
	}
	return out
}

func drops(counts []uint64) map[string]uint64 {
	named := make(map[string]uint64, len(counts))
	for d, n := range counts {
		named[ds.Drop(d).String()] = n
	}
	return named
}
