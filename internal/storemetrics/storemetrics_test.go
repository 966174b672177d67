package storemetrics

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/uplink-rpc/uplink/fleet"
	"github.com/uplink-rpc/uplink/token"
)

// TestStore counts each call by its result.
func TestStore(t *testing.T) {
	var failure error
	s, ctx := New(fleet.NewMemory(), func() error { return failure }), t.Context()
	use := fleet.Use{Token: token.ID{1}, Expires: time.Now().Add(time.Minute)}
	session := fleet.Session{Client: 1, Server: "a", ID: 1, Issued: time.Now()}
	_ = s.Use(ctx, use)
	use.Attempt[0]++
	_ = s.Use(ctx, use)
	_ = s.Begin(ctx, session)
	session.Server, session.Issued = "b", session.Issued.Add(-time.Second)
	_ = s.Begin(ctx, session)
	_ = s.End(ctx, session)
	_ = s.Announce(ctx, fleet.Server{Name: "a", Addrs: []netip.AddrPort{{}}})
	_ = s.Withdraw(ctx, "a")
	_, _ = s.Servers(ctx)
	failure = errors.New("down")
	want := `# HELP uplink_store_calls_total Calls of the fleet's store, by call and result: ok, used or newer (as the store's answers), refused (an entry of the directory) or failed.
# TYPE uplink_store_calls_total counter
uplink_store_calls_total{call="announce",result="failed"} 0
uplink_store_calls_total{call="announce",result="ok"} 0
uplink_store_calls_total{call="announce",result="refused"} 1
uplink_store_calls_total{call="begin",result="failed"} 0
uplink_store_calls_total{call="begin",result="newer"} 1
uplink_store_calls_total{call="begin",result="ok"} 1
uplink_store_calls_total{call="end",result="failed"} 0
uplink_store_calls_total{call="end",result="ok"} 1
uplink_store_calls_total{call="servers",result="failed"} 0
uplink_store_calls_total{call="servers",result="ok"} 1
uplink_store_calls_total{call="use",result="failed"} 0
uplink_store_calls_total{call="use",result="ok"} 1
uplink_store_calls_total{call="use",result="used"} 1
uplink_store_calls_total{call="withdraw",result="failed"} 0
uplink_store_calls_total{call="withdraw",result="ok"} 1
# HELP uplink_store_up Whether the fleet's store works: 1 or 0.
# TYPE uplink_store_up gauge
uplink_store_up 0
`
	if err := testutil.CollectAndCompare(s, strings.NewReader(want), "uplink_store_calls_total", "uplink_store_up"); err != nil {
		t.Error(err)
	}
}
