package game

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/rewind"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// TestHonestClaims counts the shots of honest players that are judged by another time than the one
// that they showed, over links with jitter and loss.
func TestHonestClaims(t *testing.T) {
	lasts := 20 * time.Second
	if testing.Short() {
		lasts = 15 * time.Second
	}
	var all rewind.Stats
	for _, rtt := range []time.Duration{10 * ms, 50 * ms, 100 * ms, 200 * ms, 300 * ms} {
		for _, loss := range []float64{0, 0.05, 0.2} {
			synctest.Test(t, func(t *testing.T) {
				up := simnet.Config{Delay: rtt / 2, Jitter: 20 * ms, Loss: loss, Seed: 8}
				down := up
				down.Seed++
				s, _ := match(t, uplinktest.NewNetwork(t, up, down), 3, 4, lasts, func(*Server) {})
				st := s.past.Stats()
				t.Logf("RTT %v, loss %v: %+v", rtt, loss, st)
				all.Claims, all.Clamped, all.Expired = all.Claims+st.Claims, all.Clamped+st.Clamped, all.Expired+st.Expired
			})
		}
	}
	if t.Logf("%+v", all); all.Claims < 150 || all.Clamped > all.Claims/200 || all.Expired > 0 {
		t.Errorf("%+v, want one of 200 clamped at most", all)
	}
}
