package demopanel

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/simlink"
)

// Settings are the settings that a visitor can change.
type Settings struct {
	Link  simlink.Config
	Codec rpcdelta.Codec
	// Preset applies to adaptive.
	Preset client.Preset
	// Redundancy is a value of rpcdelta.EncoderConfig.Redundancy.
	Redundancy int
}

// Range is the permitted range of a number.
type Range struct {
	Min  float64 `json:"min"`
	Max  float64 `json:"max"`
	Step float64 `json:"step"` // step of a slider
}

// Limits are the permitted settings. The demo's initial settings may exceed them.
type Limits struct {
	Loss       Range    `json:"loss"`
	Burst      Range    `json:"burst"`
	RTT        Range    `json:"rtt_ms"`
	Jitter     Range    `json:"jitter_ms"`
	Codec      []string `json:"codec"`
	Preset     []string `json:"preset"`
	Redundancy []string `json:"redundancy"`
}

var limits = Limits{
	Loss:       Range{0, 1, 0.01},
	Burst:      Range{1, 20, 1},
	RTT:        Range{0, 1000, 10},
	Jitter:     Range{0, 200, 1},
	Codec:      []string{rpcdelta.Adaptive.String(), rpcdelta.RLE.String()},
	Preset:     presetNames(),
	Redundancy: redundancies(),
}

// Presets are the presets by descending bandwidth.
var Presets = []client.Preset{client.LowLatency, client.Balanced, client.LowBandwidth}

// noPreset is the name of the zero preset.
const noPreset = "none"

func presetNames() []string {
	names := []string{noPreset}
	for _, p := range Presets {
		names = append(names, p.Name)
	}
	return names
}

func parsePreset(name string) (client.Preset, error) {
	i := slices.Index(presetNames(), name)
	switch {
	case i < 0:
		return client.Preset{}, fmt.Errorf("preset is %q: want %s", name, oneOf(limits.Preset))
	case i == 0:
		return client.Preset{}, nil
	}
	return Presets[i-1], nil
}

// Names of redundancies that are not numbers.
const (
	auto = "auto"
	off  = "off"
)

func redundancies() []string {
	names := []string{auto, off}
	for n := 1; n <= rpcdelta.MaxRedundancy; n++ {
		names = append(names, redundancyName(n))
	}
	return names
}

func redundancyName(n int) string {
	switch n {
	case rpcdelta.RedundancyAuto:
		return auto
	case rpcdelta.RedundancyOff:
		return off
	}
	return strconv.Itoa(n)
}

type values struct {
	Loss       *float64 `json:"loss,omitempty"` // 0 to 1
	Burst      *float64 `json:"burst,omitempty"`
	RTT        *float64 `json:"rtt_ms,omitempty"`
	Jitter     *float64 `json:"jitter_ms,omitempty"`
	Codec      *string  `json:"codec,omitempty"`
	Preset     *string  `json:"preset,omitempty"`
	Redundancy *string  `json:"redundancy,omitempty"`
}

func (s Settings) values() values {
	ms := func(d time.Duration) *float64 { return new(float64(d) / float64(time.Millisecond)) }
	return values{
		Loss: &s.Link.Loss, Burst: &s.Link.Burst, RTT: ms(s.Link.RTT), Jitter: ms(s.Link.Jitter),
		Codec: new(s.Codec.String()), Preset: new(cmp.Or(s.Preset.Name, noPreset)), Redundancy: new(redundancyName(s.Redundancy)),
	}
}

// parseChange reads a change in JSON. An error names the invalid part and the permitted values.
func parseChange(r io.Reader) (v values, err error) {
	const want = `want an object with one or more of loss, burst, rtt_ms, jitter_ms, codec, preset, redundancy, as {"loss": 0.1}`
	d := json.NewDecoder(r)
	d.DisallowUnknownFields()
	if err = d.Decode(&v); err == nil {
		if _, more := d.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("there is something after the object")
		}
	}
	if err == nil && v == (values{}) {
		err = errors.New("nothing to change")
	}
	var typ *json.UnmarshalTypeError
	switch {
	case errors.As(err, &typ) && typ.Field != "":
		return values{}, fmt.Errorf("%s is a %s: want %s", typ.Field, typ.Value, permitted(typ.Field))
	case err != nil:
		return values{}, fmt.Errorf("%w: %s", err, want)
	}
	return v, nil
}

// setting is a number among the values, nil if the change does not contain it.
type setting struct {
	Range
	name  string
	value *float64
	set   func(*Settings, float64)
}

func (v *values) numbers() []setting {
	ms := func(v float64) time.Duration { return time.Duration(v * float64(time.Millisecond)) }
	return []setting{
		{limits.Loss, "loss", v.Loss, func(s *Settings, x float64) { s.Link.Loss = x }},
		{limits.Burst, "burst", v.Burst, func(s *Settings, x float64) { s.Link.Burst = x }},
		{limits.RTT, "rtt_ms", v.RTT, func(s *Settings, x float64) { s.Link.RTT = ms(x) }},
		{limits.Jitter, "jitter_ms", v.Jitter, func(s *Settings, x float64) { s.Link.Jitter = ms(x) }},
	}
}

// permitted returns a description of a field's permitted values.
func permitted(field string) string {
	for _, n := range (&values{}).numbers() {
		if n.name == field {
			return n.String()
		}
	}
	switch field {
	case "codec":
		return oneOf(limits.Codec)
	case "preset":
		return oneOf(limits.Preset)
	}
	return oneOf(limits.Redundancy)
}

// String returns a description of the range.
func (r Range) String() string { return fmt.Sprintf("a number from %g to %g", r.Min, r.Max) }

func oneOf(names []string) string { return `"` + strings.Join(names, `", "`) + `"` }

// apply returns the settings with a change applied, or an error that names the field.
func (v *values) apply(s Settings) (Settings, error) {
	var err error
	for _, n := range v.numbers() {
		switch {
		case n.value == nil:
		case !(*n.value >= n.Min && *n.value <= n.Max):
			err = errors.Join(err, fmt.Errorf("%s is %g: want %v", n.name, *n.value, n.Range))
		default:
			n.set(&s, *n.value)
		}
	}
	if v.Codec != nil {
		codec, bad := rpcdelta.ParseCodec(*v.Codec)
		if bad != nil {
			err = errors.Join(err, fmt.Errorf("codec is %q: want %s", *v.Codec, oneOf(limits.Codec)))
		}
		s.Codec = codec
	}
	if v.Preset != nil {
		p, bad := parsePreset(*v.Preset)
		err = errors.Join(err, bad)
		s.Preset = p
	}
	if v.Redundancy != nil {
		n, bad := parseRedundancy(*v.Redundancy)
		err = errors.Join(err, bad)
		s.Redundancy = n
	}
	return s, err
}

func parseRedundancy(name string) (int, error) {
	for n := rpcdelta.RedundancyOff; n <= rpcdelta.MaxRedundancy; n++ {
		if redundancyName(n) == name {
			return n, nil
		}
	}
	return 0, fmt.Errorf("redundancy is %q: want %s", name, oneOf(limits.Redundancy))
}
