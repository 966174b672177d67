package ds_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/rpcdelta/prior"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/token"
	"github.com/uplink-rpc/uplink/transport"
)

// listen returns the error of Listen, and closes the server if there is none.
func listen(t *testing.T, addr string, cfg ds.Config) error {
	t.Helper()
	srv, err := ds.Listen(addr, cfg)
	if err == nil {
		uplinktest.Must(t, srv.Close())
	}
	return err
}

// TestBadConfig verifies that errors name the setting.
func TestBadConfig(t *testing.T) {
	for want, cfg := range map[string]ds.Config{
		"Config.Tuning.Ring is 1":        {Tuning: ds.Tuning{Ring: 1}},
		"Config.Tuning.Ring is 257":      {Tuning: ds.Tuning{Ring: rpcdelta.MaxRing + 1}},
		"Config.Tuning.AckHz is 0.5":     {Tuning: ds.Tuning{AckHz: 0.5}},
		"Config.Tuning.AckHz is -1":      {Tuning: ds.Tuning{AckHz: -1}},
		"Config.Tuning.AckHz is 1001":    {Tuning: ds.Tuning{AckHz: 1001}},
		"Config.Limits.QueueBytes":       {Limits: ds.Limits{QueueBytes: -1}},
		"Config.Limits.RateSlack is 0.5": {Limits: ds.Limits{RateSlack: 0.5}},
		"Config.Limits.RateSlack is NaN": {Limits: ds.Limits{RateSlack: math.NaN()}},
		"Config.Limits.MaxRate is 1001":  {Limits: ds.Limits{MaxRate: 1001}},
		"Config.MaxPlayers":              {MaxPlayers: -1},
		"Config.Limits.MaxRejected":      {Limits: ds.Limits{MaxRejected: -1}},
		"Timeout is 1ms":                 {Transport: ds.Transport{Timeout: time.Millisecond}},
		"Shards is -1":                   {Transport: ds.Transport{Shards: -1}},
		"Config.Tuning.Priors":           {Tuning: ds.Tuning{Priors: []*prior.Prior{nil}}},
		"Config.TickHz is 0.5":           {TickHz: 0.5},
		"Config.TickHz is 1001":          {TickHz: 1001},
	} {
		wantErrors(t, "ds: ", map[string]error{want: listen(t, "127.0.0.1:0", cfg)})
	}
	for _, addr := range []string{"", "127.0.0.1", "127.0.0.1:port"} {
		if err := listen(t, addr, ds.Config{}); err == nil {
			t.Errorf("listens on %q", addr)
		}
	}
	for _, addr := range []string{":0", "0.0.0.0:0"} { // no loopback address
		err := listen(t, addr, ds.Config{})
		if !errors.Is(err, token.ErrNoKey) || !strings.Contains(err.Error(), "Config.Key") || !strings.Contains(err.Error(), "127.0.0.1") {
			t.Errorf("%s: %v", addr, err)
		}
	}
	uplinktest.Must(t, listen(t, "0.0.0.0:0", ds.Config{Transport: ds.Transport{Insecure: true}}))
}

// TestBadRegistrations verifies the errors of functions that register RPCs and worlds.
func TestBadRegistrations(t *testing.T) {
	// A network that does not spread datagrams has one shard.
	srv, err := ds.Listen(uplinktest.Addr, ds.Config{Network: struct{ transport.Network }{perfect(t)}, Transport: ds.Transport{Shards: 2}})
	uplinktest.Must(t, err)
	defer func() { uplinktest.Must(t, srv.Close()) }()
	type noField struct{ Up bool }
	type noResolution struct{ Speed float64 }
	type unsupported struct{ Updates func() }
	type unexported struct{ speed uint8 } //nolint:unused // the test needs it unused
	handleSchema := func(s *schema.Schema) error {
		return ds.HandleSchema(srv, s, func(*ds.Player, ds.Frame[*schema.Frame]) {})
	}
	uplinktest.Must(t, errors.Join(handles("Move", func(*ds.Player, ds.Frame[noField]) {})(srv), handleSchema(buttonsSchema(t))))
	accept := func(*ds.Player, ds.Frame[*schema.Frame]) error { return nil }
	uplinktest.Must(t, ds.Validate(srv, "Buttons", accept))
	wantErrors(t, "ds: ", map[string]error{
		"Move is handled already":                    handles("Move", func(*ds.Player, ds.Frame[noField]) {})(srv),
		"Buttons is handled already":                 handleSchema(buttonsSchema(t)),
		`Fire: field "Speed"`:                        handles("Fire", func(*ds.Player, ds.Frame[noResolution]) {})(srv),
		`Fire: field "Updates"`:                      handles("Fire", func(*ds.Player, ds.Frame[unsupported]) {})(srv),
		`Fire: field "speed"`:                        handles("Fire", func(*ds.Player, ds.Frame[unexported]) {})(srv),
		"Fire: string is not a stru":                 handles("Fire", func(*ds.Player, ds.Frame[string]) {})(srv),
		"name":                                       ignores("")(srv),
		"validate Fire: it is not handled":           validates("Fire", nil)(srv),
		"validate Move: it is handled, but not with": validates("Move", nil)(srv),
		"but not with *schema.Frame":                 ds.Validate(srv, "Move", accept),
		"handle Fire: the handler is nil":            ds.Handle[noField](srv, "Fire", nil),
		"handle Fire: JitterBuffer: frames are released in Poll: set Config.Poll": handles("Fire", func(*ds.Player, frame) {}, ds.JitterBuffer{})(srv),
	})
	polling, err := ds.Listen(uplinktest.Addr, ds.Config{Network: perfect(t), Poll: true})
	uplinktest.Must(t, err)
	ticking, err := ds.Listen(uplinktest.Addr, ds.Config{Network: perfect(t), Poll: true, TickHz: 60})
	uplinktest.Must(t, err)
	defer func() { uplinktest.Must(t, errors.Join(polling.Close(), ticking.Close())) }()
	buffered := func(s *ds.Server, j ds.JitterBuffer) error { return handles("Fire", func(*ds.Player, frame) {}, j)(s) }
	wantErrors(t, "ds: handle Fire: JitterBuffer", map[string]error{
		"set Config.TickHz": buffered(polling, ds.JitterBuffer{}),
		"Repeat is -1":      buffered(ticking, ds.JitterBuffer{Repeat: -1}),
		"Depth is 1m0s":     buffered(ticking, ds.JitterBuffer{Depth: time.Minute}),
		"MinDepth is 50ms":  buffered(ticking, ds.JitterBuffer{MinDepth: 50 * ms, MaxDepth: 40 * ms}),
	})
	if n := len(srv.Stats().RPCs); n != 2 || srv.Shards() != 1 {
		t.Errorf("%d RPCs, %d shards", n, srv.Shards())
	}

	world := func(name string, cfg ds.WorldConfig[mover]) error {
		_, err := ds.NewWorld(srv, name, cfg)
		return err
	}
	outside := func(put func(uint16, uint8, *mover) error) error {
		return put(9, 0, &mover{Position: schema.Vec3{Y: 1001}, Rotation: schema.Quat{W: 1}})
	}
	w, err := ds.NewWorld(srv, "movers", ds.WorldConfig[mover]{})
	uplinktest.Must(t, err)
	_, noChannel := ds.NewWorld(srv, "bad", ds.WorldConfig[struct{ C chan int }]{})
	offer := func(cfg ds.StateConfig) error {
		_, err := w.OfferState(nil, cfg)
		return err
	}
	wantErrors(t, "", map[string]error{
		`field "C"`:                    noChannel,
		"a world movers already":       world("movers", ds.WorldConfig[mover]{}),
		"world's name has 0 bytes":     world("", ds.WorldConfig[mover]{}),
		"world's name has 65 bytes":    world(strings.Repeat("x", 65), ds.WorldConfig[mover]{}),
		"SendHz is 1001":               world("wrong", ds.WorldConfig[mover]{TickHz: 1000, SendHz: 1001}),
		"SendHz is 61":                 world("wrong", ds.WorldConfig[mover]{SendHz: 61}),
		"SendHz is 0.05":               world("wrong", ds.WorldConfig[mover]{SendHz: 0.05}),
		"TickHz is 0.5":                world("wrong", ds.WorldConfig[mover]{TickHz: 0.5}),
		"SendHz is -1":                 world("wrong", ds.WorldConfig[mover]{SendHz: -1}),
		"Spread is 51ms":               world("wrong", ds.WorldConfig[mover]{SendHz: 20, Spread: 51 * ms}),
		"TickHz is 1001":               world("wrong", ds.WorldConfig[mover]{TickHz: 1001}),
		"TickHz is NaN":                world("wrong", ds.WorldConfig[mover]{TickHz: math.NaN()}),
		`9: schema: wrong: field "Pos`: world("wrong", ds.WorldConfig[mover]{Initial: outside}),
		"Bandwidth is 999":             offer(ds.StateConfig{Bandwidth: 999}),
		"Bandwidth is -1":              offer(ds.StateConfig{Bandwidth: -1}),
		"MinBandwidth is 999":          offer(ds.StateConfig{MinBandwidth: 999}),
		"MinBandwidth is 256001":       offer(ds.StateConfig{MinBandwidth: 256_001}),
		"InputTicks is 33":             offer(ds.StateConfig{InputTicks: 33}),
	})
}

// TestWorldErrors checks the errors for objects and ticks that cannot be sent.
func TestWorldErrors(t *testing.T) {
	srv, err := ds.Listen("127.0.0.1:0", ds.Config{})
	uplinktest.Must(t, err)
	defer srv.Close()
	w, err := ds.NewWorld(srv, "movers", ds.WorldConfig[mover]{})
	uplinktest.Must(t, err)
	m := mover{Position: schema.Vec3{X: 1001}, Rotation: schema.Quat{W: 1}}
	withoutTick := w.Put(7, 0, &m)
	uplinktest.Must(t, w.Begin(3))
	outside := w.Put(7, 0, &m)
	m.Position.X = 0
	uplinktest.Must(t, w.Put(7, 0, &m))
	again := w.Put(7, 0, &m)
	w.Commit()
	milliseconds := w.Begin(1_795_871_188_934)
	wantErrors(t, "", map[string]error{
		"Begin first": withoutTick, "object 7": outside, "ascend": again, "tick 3": w.Begin(3),
		"not milliseconds": milliseconds,
	})
	if out := new(schema.RangeError); !errors.As(outside, &out) || out.Field != "Position" {
		t.Errorf("out of bounds: %v", outside)
	}
}
