package natsstore_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/fleet"
	"github.com/uplink-rpc/uplink/fleet/natsstore"
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

	for i := range c.routes {
		cut(c.routes[i], true)
	}
	eventually(t, "no server has a store", func() bool { return g.all(func(s *fleet.Stats) bool { return !s.Up }) })
	during := g.token()
	if _, err := g.dial(2, during); err != nil {
		t.Error(err)
	}
	if _, err := g.dial(2, during); !errors.Is(err, token.ErrUsed) {
		t.Errorf("the token of the partition at the same server: %v", err)
	}
	for i := range c.routes {
		cut(c.routes[i], false)
	}
	eventually(t, "all is recorded", func() bool { return g.all(recorded) })
	if _, err := g.dial(3, during); !errors.Is(err, token.ErrUsed) {
		t.Errorf("the token of the partition at another server: %v", err)
	}
	g.join(3)
	if n := g.ended.Load(); n != 0 {
		t.Errorf("%d sessions ended", n)
	}
}

// contest is a token that several attempts use.
type contest struct {
	uses    []fleet.Use
	results []error
}

// TestMinority cuts one NATS server of three off from the other two, first the leader of the used
// tokens and then another one, while each token is used by an attempt at each of the three. The
// answers that an attempt did not get it asks for afterwards. Each token has been accepted once,
// and stays so.
func TestMinority(t *testing.T) {
	if testing.Short() {
		t.Skip("it needs a cluster")
	}
	t.Parallel()
	c := newLinkedCluster(t, 3)
	var stores []*natsstore.Store
	for _, l := range c.clients {
		stores = append(stores, c.storeAt("nats://"+l.addr()))
	}
	var contests []*contest
	var accepted [3]int // at each server of NATS in the last race
	race := func() {
		var all sync.WaitGroup
		from := len(contests)
		for range 20 {
			k := &contest{results: make([]error, len(stores))}
			id := token.ID{byte(len(contests)), byte(len(contests) >> 8)}
			for i, s := range stores {
				u := fleet.Use{Token: id, Expires: time.Now().Add(5 * time.Minute), Attempt: [32]byte{byte(i + 1)}}
				k.uses = append(k.uses, u)
				all.Go(func() { k.results[i] = use(t, s, u) })
			}
			contests = append(contests, k)
		}
		all.Wait()
		for _, k := range contests[from:] {
			for i, err := range k.results {
				if err == nil {
					accepted[i]++
				}
			}
		}
	}
	for round := range 2 {
		eventually(t, "a leader", func() bool { return c.leader() >= 0 })
		alone := (c.leader() + round) % len(stores)
		race()
		c.isolate(alone, true)
		race()
		eventually(t, "the majority accepts tokens", func() bool {
			accepted = [3]int{}
			race()
			return accepted[(alone+1)%3]+accepted[(alone+2)%3] == 20
		})
		if accepted[alone] > 0 {
			t.Errorf("the server that is alone accepts %d tokens", accepted[alone])
		}
		c.isolate(alone, false)
		race()
	}
	for n, k := range contests {
		winners := 0
		for i, err := range k.results {
			eventually(t, "an answer", func() bool {
				again := use(t, stores[i], k.uses[i])
				known := again == nil || errors.Is(again, token.ErrUsed)
				if known && (err == nil) != (again == nil) && (err == nil || errors.Is(err, token.ErrUsed)) {
					t.Errorf("token %d at server %d: %v, and later %v", n, i, err, again)
				}
				if again == nil {
					winners++
				}
				return known
			})
		}
		if winners != 1 {
			t.Errorf("token %d was accepted %d times: %v", n, winners, k.results)
		}
	}
	t.Logf("%d tokens", len(contests))
}

func use(t *testing.T, s *natsstore.Store, u fleet.Use) error {
	ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
	defer cancel()
	return s.Use(ctx, u)
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
