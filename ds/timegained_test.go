package ds_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/endpoint"
	"github.com/uplink-rpc/uplink/internal/message"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/token"
)

// TestTimeGainedByBinding verifies that a client gains no more than the margins of a TimeCheck, and
// has no more than one call per tick from a JitterBuffer, whatever it binds: as many numbers as
// there are, at any rate, in one session or in many.
func TestTimeGainedByBinding(t *testing.T) {
	const played, margins, tick = 10 * time.Second, 500 * time.Millisecond, time.Second / 60
	for _, c := range []struct {
		name   string
		cfg    ds.Config
		option ds.HandleOption
		rate   float64       // that the client asks for
		rejoin time.Duration // how often it starts a session; 0 is once
		most   time.Duration // simulated
	}{
		{"check", ds.Config{}, ds.TimeCheck{Resolve: true}, 60, 0, played + margins},
		{"check at another rate", ds.Config{}, ds.TimeCheck{Resolve: true}, 250, 0, 0},
		{"check of time", ds.Config{}, ds.TimeCheck{Resolve: true, Delta: "Time"}, 250, 0, played + margins},
		{"check in many sessions", ds.Config{}, ds.TimeCheck{Resolve: true}, 60, 500 * time.Millisecond, played + margins},
		{"buffer", ds.Config{Poll: true, TickHz: 60}, ds.JitterBuffer{}, 60, 0, played + tick},
		{"buffer in many sessions", ds.Config{Poll: true, TickHz: 60}, ds.JitterBuffer{}, 60, 500 * time.Millisecond, played + tick},
		{"buffer at another rate", ds.Config{Poll: true, TickHz: 60}, ds.JitterBuffer{}, 250, 0, 0},
	} {
		bubble(t, c.name, func(t *testing.T) {
			type stepOf struct {
				X    float64 `uplink:"resolution=1,min=0,max=65535"`
				Time float64 `uplink:"resolution=0.0001,min=0,max=1"`
			}
			network, simulated := perfect(t), time.Duration(0)
			srv := serve(t, network, c.cfg, handles("Step", func(*ds.Player, ds.Frame[stepOf]) { simulated += tick }, c.option))
			stop := polling(t, tick, func() { srv.Poll() })
			typ, err := schema.Compile[stepOf]("Step", 0)
			uplinktest.Must(t, err)
			step, start := typ.Schema(), time.Now()
			for time.Since(start) < played {
				claims := token.Claims{ClientID: 7, Expires: time.Now().Add(time.Minute), Servers: []netip.AddrPort{netip.MustParseAddrPort(uplinktest.Addr)}}
				tok, err := token.Issue(token.Development().Issuer(), claims)
				uplinktest.Must(t, err)
				r := dialRawAt(t, uplinktest.Addr, endpoint.Config{Network: network, Token: tok}, time.Millisecond)
				all := bindAll(r, step, c.rate)
				end := start.Add(played)
				if c.rejoin != 0 {
					end = time.Now().Add(c.rejoin)
				}
				for ; time.Now().Before(end); time.Sleep(4 * ms) {
					for _, next := range all {
						uplinktest.Must(t, r.Send(next()))
					}
				}
			}
			stop()
			settle(100 * ms)
			if most := c.most + time.Since(start)/1000; simulated > most || c.most > 0 && simulated < played/2 {
				t.Errorf("%v simulated in %v, want up to %v", simulated, played, most)
			}
		})
	}
}

// bindAll asks for an RPC under several numbers and at two rates, and returns the payloads of those
// that are bound.
func bindAll(r *raw, s *schema.Schema, rate float64) (all []func() []byte) {
	for n := range 6 {
		for _, hz := range []float64{rate, rate / 2} {
			req := request(n, s, false)
			req.RateHz = hz
			if r.bind(req).Reason == message.ReasonNone {
				all = append(all, stepsOf(r.t, s, n))
			}
		}
	}
	return all
}

// stepsOf returns payloads of calls that simulate a sixtieth of a second.
func stepsOf(t *testing.T, s *schema.Schema, n int) func() []byte {
	t.Helper()
	enc, err := rpcdelta.NewEncoder(s, rpcdelta.EncoderConfig{RPC: n})
	uplinktest.Must(t, err)
	f := s.NewFrame()
	f.Ints[1] = 167 // ten thousandths of a second
	return func() []byte {
		f.Ints[0] = (f.Ints[0] + 1) & 0xffff
		b, _, err := enc.AppendFrame(nil, f)
		uplinktest.Must(t, err)
		return b
	}
}
