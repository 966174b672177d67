package client_test

import (
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/sample"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/transport"
)

// aim is the argument of an RPC in which only Fire is urgent.
type aim struct {
	Yaw  float64 `uplink:"kind=angle,bits=16"`
	Fire bool
}

// TestPresets counts the datagrams that each preset sends, and checks that Fire leaves in its Send,
// and that held frames leave if no Send follows.
func TestPresets(t *testing.T) {
	for _, c := range []struct {
		preset client.Preset
		rateHz float64
		batch  int // later frames that a frame waits for
		suites []transport.Suite
	}{
		{client.LowLatency, 60, 0, nil},
		{client.Balanced, 60, 2, nil},
		{client.Balanced, 30, 1, nil},
		{client.LowBandwidth, 60, 3, nil}, // a server without the compact suite
		{client.LowBandwidth, 30, 2, []transport.Suite{transport.AES128CTRHMAC8}},
	} {
		synctest.Test(t, func(t *testing.T) {
			network := newNetwork(t, 0, 2)
			arrived := 0
			uplinktest.Serve(t, network, ds.Config{Transport: ds.Transport{Suites: c.suites}}, func(s *ds.Server) error {
				return ds.Handle(s, "Aim", func(*ds.Player, ds.Frame[aim]) { arrived++ })
			})
			conn := uplinktest.Dial(t, network, client.Config{Preset: c.preset})
			stream, err := client.Bind[aim](t.Context(), conn, "Aim", client.BindConfig{RateHz: c.rateHz})
			uplinktest.Must(t, err)
			settle(time.Second)
			sent := outgoing(network)
			const warm, frames, every = 300, 1200, 100
			var value aim
			waited := 0
			for n := range warm + frames {
				value.Yaw = 40 * math.Sin(float64(n)/30)
				fires := n >= warm && n%every == every/2
				if fires {
					value.Fire = !value.Fire
				}
				if n == warm {
					sent.Store(0)
				}
				before := sent.Load()
				uplinktest.Must(t, uplinktest.Sent(stream.Send(&value)))
				synctest.Wait() // the loop may write it at the end of a batch
				if fires && sent.Load() == before {
					waited++
				}
				time.Sleep(time.Duration(float64(time.Second) / c.rateHz))
			}
			least := int64(frames / (c.batch + 1))
			if n := sent.Load(); waited != 0 || n < least || n > least*5/4+frames/every*2 {
				t.Errorf("%s at %v Hz: %d datagrams, want about %d; Fire waited %d times", c.preset.Name, c.rateHz, n, least, waited)
			}
			settle(time.Second)
			if arrived != warm+frames {
				t.Errorf("%s: %d of %d frames arrived", c.preset.Name, arrived, warm+frames)
			}
		})
	}
}

// TestDelayErrors checks that errors name the invalid field of a delay policy.
func TestDelayErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := newNetwork(t, 0, 3)
		uplinktest.Serve(t, network, ds.Config{}, func(s *ds.Server) error {
			return ds.Handle(s, "Aim", func(*ds.Player, ds.Frame[aim]) {})
		})
		conn := uplinktest.Dial(t, network, client.Config{})
		delay := client.DelayPolicy{MaxBatchDelay: 30 * ms}
		for want, cfg := range map[string]client.BindConfig{
			"MaxBatchDelay is 1s": {Delay: client.DelayPolicy{MaxBatchDelay: time.Second}},
			"Deadline is 10ms":    {Delay: client.DelayPolicy{MaxBatchDelay: 50 * ms, Deadline: 10 * ms}},
			"Tolerance is -1ns":   {Delay: client.DelayPolicy{Tolerance: -1}},
			"Delivery of 2":       {Delay: client.DelayPolicy{Delivery: 2}},
			"a reliable RPC":      {Delay: delay, Reliable: true},
		} {
			if _, err := client.Bind[aim](t.Context(), conn, "Aim", cfg); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%+v: %v", cfg, err)
			}
		}
	})
}

// TestTeleports plays a recording with ten teleports: under each preset that lets frames wait, each
// leaves in its Send.
func TestTeleports(t *testing.T) {
	for _, preset := range []client.Preset{client.Balanced, client.LowBandwidth} {
		synctest.Test(t, func(t *testing.T) {
			network := newNetwork(t, 0, 2)
			recording := sample.Portal2()
			fields := recording.Schema.Fields()
			position := slices.IndexFunc(fields, func(f schema.Field) bool { return f.Kind == schema.KindVec3 })
			arrived := 0
			uplinktest.Serve(t, network, ds.Config{}, func(s *ds.Server) error {
				return ds.HandleSchema(s, recording.Schema, func(*ds.Player, ds.Frame[*schema.Frame]) { arrived++ })
			})
			conn := uplinktest.Dial(t, network, client.Config{Preset: preset})
			stream, err := client.BindSchema(t.Context(), conn, recording.Schema, client.BindConfig{})
			uplinktest.Must(t, err)
			settle(time.Second)
			sent := outgoing(network)
			const first, every, teleports = 600, 97, 10
			offset, waited := 0.0, 0
			f := recording.Schema.NewFrame()
			for n := range first + teleports*every {
				jumps := n >= first && n%every == 0
				if jumps {
					offset = 4000 - offset
				}
				f.CopyFrom(recording.At(n))
				at := recording.Schema.RestoreField(nil, f, position)
				at[0] += offset
				uplinktest.Must(t, recording.Schema.QuantizeField(f, position, at))
				before := sent.Load()
				uplinktest.Must(t, uplinktest.Sent(stream.Send(f)))
				synctest.Wait()
				if jumps && sent.Load() == before {
					waited++
				}
				time.Sleep(time.Second / 60)
			}
			if frames := int64(first + teleports*every); waited != 0 || sent.Load() > frames*2/3 {
				t.Errorf("%s: %d teleports waited; %d datagrams for %d frames", preset.Name, waited, sent.Load(), frames)
			}
		})
	}
}
