package metrics

import (
	"runtime"
	"runtime/debug"

	"github.com/prometheus/client_golang/prometheus"
)

// module is this one's path.
const module = "github.com/uplink-rpc/uplink"

// buildDesc is the metric that says what runs.
type buildDesc struct {
	info    *prometheus.Desc
	version string
}

func (f family) build() buildDesc {
	return buildDesc{
		info:    f.desc("build_info", "Always 1; its labels say which uplink runs, and the Go that built it.", "version", "go_version"),
		version: version(debug.ReadBuildInfo()),
	}
}

func (d *buildDesc) describe(ch chan<- *prometheus.Desc) { ch <- d.info }

func (e emitter) build(d *buildDesc) { e.gauge(d.info, 1, d.version, runtime.Version()) }

// version is that of this module in a program: of the program itself, or of what it is built with.
func version(info *debug.BuildInfo, ok bool) string {
	if !ok {
		return "unknown"
	}
	for _, m := range append(info.Deps, &info.Main) {
		if m.Path != module {
			continue
		}
		if m.Replace != nil {
			m = m.Replace
		}
		if m.Version != "" {
			return m.Version
		}
	}
	return "unknown"
}
