package client

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/uplink-rpc/uplink/transport"
)

// Preset sets all that costs bandwidth and delay.
type Preset struct {
	// Name is the name on the command line.
	Name string
	// MaxBatchDelay is the maximum time that a frame waits for later ones.
	MaxBatchDelay time.Duration
	// Deadline is the time after which a frame is of no more use to the server, in addition to the
	// one-way delay. It applies from 60 frames a second on, and grows as frames become rarer.
	Deadline time.Duration
	// Delivery is the share of frames that are to arrive by the deadline.
	Delivery float64
	// Suite is the cipher suite.
	Suite transport.Suite
}

// presetDelivery is the Delivery of all presets. It leaves a margin to 99.9 %.
const presetDelivery = 0.9992

// The presets.
var (
	// LowLatency sends every frame at once.
	LowLatency = Preset{Name: "low-latency", Deadline: 55 * time.Millisecond, Delivery: presetDelivery, Suite: transport.AES128GCM}
	// Balanced lets frames wait for up to 33 ms: 2 frames at 60 Hz, 1 at 30 Hz.
	Balanced = Preset{Name: "balanced", MaxBatchDelay: time.Second / 30, Deadline: 120 * time.Millisecond, Delivery: presetDelivery, Suite: transport.AES128GCM}
	// LowBandwidth lets frames wait for up to 50 ms, 3 frames at 60 Hz, and uses the compact suite.
	LowBandwidth = Preset{Name: "low-bandwidth", MaxBatchDelay: time.Second / 20, Deadline: 220 * time.Millisecond, Delivery: presetDelivery, Suite: transport.AES128CTRHMAC8}
)

// Presets returns all presets.
func Presets() []Preset { return []Preset{LowLatency, Balanced, LowBandwidth} }

// ParsePreset returns the preset with the given name. Hyphens and case do not matter.
func ParsePreset(name string) (Preset, error) {
	plain := func(s string) string { return strings.ToLower(strings.ReplaceAll(s, "-", "")) }
	var names []string
	for _, p := range Presets() {
		if plain(p.Name) == plain(name) {
			return p, nil
		}
		names = append(names, p.Name)
	}
	return Preset{}, fmt.Errorf("no preset %q; there are %s", name, strings.Join(names, ", "))
}

// presetRate is the rate in Hz below which deadlines grow.
const presetRate = 60

// DeadlineAt returns the deadline of frames at a rate in Hz.
func (p *Preset) DeadlineAt(rateHz float64) time.Duration {
	return time.Duration(float64(p.Deadline) * max(1, presetRate/rateHz))
}

// FramesAt returns MaxBatchDelay, rounded, and Deadline in frames at a rate in Hz.
func (p *Preset) FramesAt(rateHz float64) (batch, deadline int) {
	const tolerance = 0.01 // of a frame: rates such as 66.67 Hz are rounded themselves
	batch = int(math.Floor(p.MaxBatchDelay.Seconds()*rateHz + 0.5 + tolerance))
	return batch, int(math.Floor(p.DeadlineAt(rateHz).Seconds()*rateHz + tolerance))
}
