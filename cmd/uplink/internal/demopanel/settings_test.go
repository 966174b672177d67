package demopanel

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/simlink"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
)

// begun contains the initial settings of the tests' games.
var begun = Settings{
	Link:  simlink.Config{RTT: 80 * time.Millisecond, Loss: 0.05, Burst: 1, Seed: 7},
	Codec: rpcdelta.Adaptive,
}

func change(body string) (Settings, error) {
	v, err := parseChange(strings.NewReader(body))
	if err != nil {
		return Settings{}, err
	}
	return v.apply(begun)
}

func TestChange(t *testing.T) {
	for body, want := range map[string]func(*Settings){
		`{"loss":0.5}`:             func(s *Settings) { s.Link.Loss = 0.5 },
		`{"loss":0, "burst":2.5} `: func(s *Settings) { s.Link.Loss, s.Link.Burst = 0, 2.5 },
		`{"rtt_ms":12.5}`:          func(s *Settings) { s.Link.RTT = 12500 * time.Microsecond },
		`{"jitter_ms":200}`:        func(s *Settings) { s.Link.Jitter = 200 * time.Millisecond },
		`{"codec":"rle"}`:          func(s *Settings) { s.Codec = rpcdelta.RLE },
		`{"preset":"balanced"}`:    func(s *Settings) { s.Preset = client.Balanced },
		`{"redundancy":"off"}`:     func(s *Settings) { s.Redundancy = rpcdelta.RedundancyOff },
		`{"redundancy":"7"}`:       func(s *Settings) { s.Redundancy = 7 },
		`{"redundancy":"auto"}`:    func(s *Settings) { s.Redundancy = rpcdelta.RedundancyAuto },
	} {
		expected := begun
		want(&expected)
		if got, err := change(body); err != nil || got != expected {
			t.Errorf("%s: %+v, %v", body, got, err)
		}
	}
}

// TestBadChange: what is wrong is named, and what may be.
func TestBadChange(t *testing.T) {
	const want = `: want an object with one or more of loss, burst, rtt_ms, jitter_ms, codec, preset, redundancy, as {"loss": 0.1}`
	const redundancy = `"auto", "off", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15"`
	for body, message := range map[string]string{
		`{"loss":1.5}`:            "loss is 1.5: want a number from 0 to 1",
		`{"loss":-0.1,"burst":0}`: "loss is -0.1: want a number from 0 to 1\nburst is 0: want a number from 1 to 20",
		`{"loss":"much"}`:         "loss is a string: want a number from 0 to 1",
		`{"loss":1e999}`:          "loss is a number 1e999: want a number from 0 to 1",
		`{"burst":"x"}`:           "burst is a string: want a number from 1 to 20",
		`{"rtt_ms":true}`:         "rtt_ms is a bool: want a number from 0 to 1000",
		`{"jitter_ms":-1}`:        "jitter_ms is -1: want a number from 0 to 200",
		`{"codec":"zip"}`:         `codec is "zip": want "adaptive", "rle"`,
		`{"codec":1}`:             `codec is a number: want "adaptive", "rle"`,
		`{"preset":"fast"}`:       `preset is "fast": want "none", "low-latency", "balanced", "low-bandwidth"`,
		`{"preset":1}`:            `preset is a number: want "none", "low-latency", "balanced", "low-bandwidth"`,
		`{"redundancy":"0"}`:      `redundancy is "0": want ` + redundancy,
		`{"redundancy":3}`:        `redundancy is a number: want ` + redundancy,
		`{"lag":3}`:               `json: unknown field "lag"` + want,
		`{"loss":0.1} {}`:         `there is something after the object` + want,
		`{}`:                      `nothing to change` + want,
		`{"loss":null}`:           `nothing to change` + want,
		`[]`:                      `json: cannot unmarshal array into Go value of type demopanel.values` + want,
		``:                        `EOF` + want,
	} {
		if _, err := change(body); err == nil || err.Error() != message {
			t.Errorf("%s\ngot  %v\nwant %s", body, err, message)
		}
	}
}

// FuzzChange: every accepted change makes a valid link, and reads back as the same settings.
func FuzzChange(f *testing.F) {
	f.Add(`{"loss":0.5,"burst":3,"rtt_ms":100,"jitter_ms":0.25,"codec":"rle","preset":"low-latency","redundancy":"3"}`)
	f.Add(`{"redundancy":"off"}`)
	f.Fuzz(func(t *testing.T, body string) {
		s, err := change(body)
		if err != nil {
			return
		}
		if err := s.Link.Validate(); err != nil {
			t.Error(err)
		}
		if err := (rpcdelta.EncoderConfig{Codec: s.Codec, Redundancy: s.Redundancy}).Check(); err != nil {
			t.Error(err)
		}
		b, err := json.Marshal(s.values())
		uplinktest.Must(t, err)
		if again, err := change(string(b)); err != nil || again != s {
			t.Errorf("%+v became %s and %+v, %v", s, b, again, err)
		}
	})
}
