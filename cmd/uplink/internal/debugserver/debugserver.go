// Package debugserver serves what Go's operators look into a process with: pprof and expvar.
package debugserver

import (
	"expvar"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"net/netip"

	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/transport"
)

// Handler serves /debug/pprof/ and /debug/vars, whose key "uplink" is stats as JSON. It answers
// only where the connection came to a loopback address and the request names one, as no page of
// another site can have a browser do: heaps and profiles tell more of players than metrics do. The
// command line is not shown, since tokens may be in it.
func Handler(stats func() any) http.Handler {
	vars := new(expvar.Map)
	vars.Set("uplink", expvar.Func(stats))
	vars.Set("memstats", expvar.Get("memstats"))
	mux := http.NewServeMux()
	mux.HandleFunc("GET /debug/vars", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		fmt.Fprintln(w, vars)
	})
	mux.HandleFunc("GET /debug/pprof/", pprof.Index) // and those that it lists
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("POST /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	mux.HandleFunc("GET /debug/pprof/cmdline", http.NotFound)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isLocal(r) {
			http.Error(w, "debug: only at a loopback address; a tunnel leads there: ssh -L 9464:127.0.0.1:9464 HOST", http.StatusForbidden)
			return
		}
		w.Header().Set("Cache-Control", "no-store")
		mux.ServeHTTP(w, r)
	})
}

// isLocal reports whether a request came over a loopback connection and names a loopback host.
func isLocal(r *http.Request) bool {
	to, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return ok && isLoopback(to.String()) && isLoopback(r.RemoteAddr) && isLoopback(r.Host)
}

// isLoopback reports whether an address, with or without a port, is a loopback address.
func isLoopback(addr string) bool {
	if host, _, err := net.SplitHostPort(addr); err == nil {
		addr = host
	}
	ip, err := netip.ParseAddr(addr)
	return addr == "localhost" || err == nil && ip.Unmap().IsLoopback()
}

// Stats returns a server's statistics for JSON, with the names of the drop reasons.
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
