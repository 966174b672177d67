// Package debugserver serves pprof and expvar, with which operators inspect a Go process.
package debugserver

import (
	"expvar"
	"fmt"
	"net/http"
	"net/http/pprof"

	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/endpoint"
	"github.com/uplink-rpc/uplink/internal/web"
	"github.com/uplink-rpc/uplink/transport"
)

// Handler serves /debug/pprof/ and /debug/vars, whose key "uplink" is stats as JSON. It answers
// only connections within this machine, since heaps and profiles reveal more about players than
// metrics. Use it behind a dashboard.Guard, which refuses requests from proxies and from pages of
// other sites. The command line is not shown, since it may contain tokens.
func Handler(stats func() any) http.Handler {
	vars := new(expvar.Map)
	vars.Set("uplink", expvar.Func(stats))
	vars.Set("memstats", expvar.Get("memstats"))
	mux := http.NewServeMux()
	mux.HandleFunc("GET /debug/vars", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		fmt.Fprintln(w, vars)
	})
	mux.HandleFunc("GET /debug/pprof/", pprof.Index) // and the profiles that it lists
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("POST /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	mux.HandleFunc("GET /debug/pprof/cmdline", http.NotFound)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := web.LocalConnection(r); err != nil {
			web.Refuse(w, http.StatusForbidden, fmt.Errorf("debug: %w; a tunnel leads there: ssh -L 9464:127.0.0.1:9464 HOST", err))
			return
		}
		w.Header().Set("Cache-Control", "no-store")
		mux.ServeHTTP(w, r)
	})
}

// Stats returns a server's statistics for JSON, with the names of the drop reasons.
func Stats(st ds.Stats) any {
	type rpc struct {
		ds.RPCStats
		Drops map[string]uint64
	}
	out := struct {
		RPCs      []rpc
		Acks      endpoint.Acks
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
