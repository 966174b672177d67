package ds_test

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/transport"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// TestUnreliable sends unreliable messages both ways over a link that loses, delays and repeats
// some. Each arrives once at most, most arrive, and the callbacks run where handlers run. Messages
// above the rate limit of clients are refused, and those that a game does not take are dropped
// without the end of the session.
func TestUnreliable(t *testing.T) {
	for _, poll := range []bool{false, true} {
		bubble(t, fmt.Sprintf("poll=%t", poll), func(t *testing.T) {
			network := linkedBy(t, 50*ms, simnet.Config{Loss: 0.1, Jitter: 10 * ms, Duplicate: 0.2, Seed: 5})
			came := [2]map[uint32]int{{}, {}} // at the server, at the client
			take := func(end int, b []byte) {
				if len(b) != 4 {
					t.Errorf("%d bytes came", len(b))
				}
				came[end][binary.LittleEndian.Uint32(b)]++
			}
			var player *ds.Player
			srv := serve(t, network, ds.Config{
				Poll: poll, Joined: func(p *ds.Player) { player = p },
				Hooks: ds.Hooks{OnUnreliable: func(_ *ds.Player, b []byte) { take(0, b) }},
			})
			if poll {
				polling(t, 10*ms, func() { srv.Poll() })
			}
			conn := uplinktest.Dial(t, network, client.Config{Hooks: client.Hooks{OnUnreliable: func(b []byte) { take(1, b) }}})
			settle(time.Second)
			const count = 600
			for i := range uint32(count) {
				b := binary.LittleEndian.AppendUint32(nil, i)
				uplinktest.Must(t, conn.SendUnreliable(b))
				uplinktest.Must(t, player.SendUnreliable(b))
				settle(time.Second / 60)
			}
			settle(time.Second)
			for end, m := range came {
				if len(m) < count*8/10 || len(m) > count*96/100 {
					t.Errorf("%d of %d messages came to end %d", len(m), count, end)
				}
				for i, n := range m {
					if n != 1 {
						t.Errorf("message %d came %d times", i, n)
					}
				}
			}
			for _, send := range []func([]byte) error{conn.SendUnreliable, player.SendUnreliable} {
				if err := send(make([]byte, transport.MaxPayload)); err == nil || !strings.Contains(err.Error(), fmt.Sprint(transport.MaxPayload, " bytes")) {
					t.Error(err)
				}
			}
			refused := 0
			for range 1000 {
				if conn.SendUnreliable(make([]byte, 4)) != nil {
					refused++
				}
			}
			if refused != 0 { // 68 bytes each, of 128 KiB
				t.Errorf("%d refused", refused)
			}
			for range 2000 {
				if conn.SendUnreliable(make([]byte, 4)) != nil {
					refused++
				}
			}
			settle(time.Second)
			if st := srv.Stats(); refused == 0 || conn.Err() != nil || st.Drops[ds.RateLimited] != 0 || player.Rejected() != 0 {
				t.Errorf("%d refused, %v, drops %v", refused, conn.Err(), st.Drops)
			}
		})
	}
}
