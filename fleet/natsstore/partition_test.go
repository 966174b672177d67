package natsstore_test

import (
	"errors"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/fleet"
	"github.com/uplink-rpc/uplink/token"
)

// TestPartition cuts one NATS server of three off from its clients, which use the others, and then
// all three from each other. Players stay, joins are allowed as configured, and when the links are
// back, tokens that were used meanwhile are used in the fleet.
func TestPartition(t *testing.T) {
	if testing.Short() {
		t.Skip("it needs a cluster")
	}
	t.Parallel()
	c := newLinkedCluster(t, 3)
	g := newGame(t, c, fleet.Config{Outage: time.Hour, Interval: 200 * time.Millisecond})
	for i := range g.servers {
		g.join(i)
	}
	cut := func(links []*link, cut bool) {
		for _, l := range links {
			l.set(cut)
		}
	}

	cut(c.clients[:1], true)
	for i := range g.servers {
		eventually(t, "a token is used once", func() bool { return g.usedOnce(i) })
	}
	cut(c.clients[:1], false)

	cut(c.routes, true)
	eventually(t, "no server has a store", func() bool { return g.all(func(s *fleet.Stats) bool { return !s.Up }) })
	during := g.token()
	if _, err := g.dial(2, during); err != nil {
		t.Error(err)
	}
	if _, err := g.dial(2, during); !errors.Is(err, token.ErrUsed) {
		t.Errorf("the token of the partition at the same server: %v", err)
	}
	cut(c.routes, false)
	eventually(t, "all is recorded", func() bool { return g.all(recorded) })
	if _, err := g.dial(3, during); !errors.Is(err, token.ErrUsed) {
		t.Errorf("the token of the partition at another server: %v", err)
	}
	g.join(3)
	if n := g.ended.Load(); n != 0 {
		t.Errorf("%d sessions ended", n)
	}
}

// usedOnce uses a token at a server and at the next one. It reports false if one of these does not
// reach its store: it allows joins then.
func (g *game) usedOnce(server int) bool {
	g.t.Helper()
	unchecked := func() (n uint64) {
		for _, s := range g.servers {
			n += s.Stats().Fleet.Unchecked
		}
		return n
	}
	before, tok := unchecked(), g.token()
	var errs [2]error
	for i := range errs {
		errs[i] = g.visit((server+i)%len(g.servers), tok)
	}
	if unchecked() != before {
		return false
	}
	if errs[0] != nil || !errors.Is(errs[1], token.ErrUsed) {
		g.t.Fatalf("a token used twice: %v", errs)
	}
	return true
}
