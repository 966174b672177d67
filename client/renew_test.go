package client_test

import (
	"context"
	"errors"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/token"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// backend issues tokens for one player.
type backend struct {
	key    token.Key
	issued int
	down   int // attempts for which it does not answer
}

func (b *backend) renew(context.Context) (token.Token, error) {
	if b.down > 0 {
		b.down--
		return token.Token{}, errors.New("the backend is away")
	}
	b.issued++
	return token.Issue(b.key.Issuer(), token.Claims{
		ClientID: 42, Expires: time.Now().Add(time.Minute), Servers: []netip.AddrPort{netip.MustParseAddrPort(uplinktest.Addr)},
	})
}

// TestHandshakeDoesNotEnd has the server's welcome get lost for longer than the server waits: Token is used up.
func TestHandshakeDoesNotEnd(t *testing.T) {
	for _, renews := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			network := newNetwork(t, 0, 9)
			key, err := token.NewKey()
			uplinktest.Must(t, err)
			b := &backend{key: key}
			first, err := b.renew(t.Context())
			uplinktest.Must(t, err)
			uplinktest.Serve(t, network, ds.Config{Key: key}, func(*ds.Server) error { return nil })
			cfg := client.Config{Network: network, Token: first}
			if renews {
				cfg.Renew = b.renew
			}
			up, down := newLink(0), newLink(0)
			down.Loss = 1
			for at, loss := range map[time.Duration]simnet.Config{60 * ms: down, 6 * time.Second: newLink(0)} {
				time.AfterFunc(at, func() { uplinktest.Must(t, network.Set(up, loss)) })
			}
			began := time.Now()
			conn, err := client.Dial(t.Context(), uplinktest.Addr, cfg)
			if took := time.Since(began); took < 6*time.Second || took > 7*time.Second {
				t.Errorf("%v", took)
			}
			if renews {
				uplinktest.Must(t, err)
				uplinktest.Must(t, conn.Close())
			} else if !errors.Is(err, token.ErrUsed) {
				t.Errorf("Dial: %v", err)
			}
			if renewed := b.issued == 2; renewed != renews {
				t.Errorf("%d tokens", b.issued)
			}
		})
	}
}

// TestRenew has a server restart under a client that needs a token for each
// connection: one that can get another comes back, one that cannot ends and says why.
func TestRenew(t *testing.T) {
	for _, renews := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			network := newNetwork(t, 0, 8)
			key, err := token.NewKey()
			uplinktest.Must(t, err)
			b := &backend{key: key}
			first, err := b.renew(t.Context())
			uplinktest.Must(t, err)
			journal := uplinktest.NewJournal(t, 1)
			start := func() *uplinktest.Server {
				return uplinktest.Serve(t, network, ds.Config{Key: key}, func(s *ds.Server) error { return ds.Handle(s, "Move", journal.Handle) })
			}
			srv := start()
			cfg := client.Config{Token: first}
			if renews {
				cfg.Renew, b.down = b.renew, 2
			}
			conn := uplinktest.Dial(t, network, cfg)
			stream := uplinktest.Bind(t, conn, "Move")
			network.Crash(t, uplinktest.Addr)
			<-srv.Served
			settle(time.Second)
			start()
			settle(30 * time.Second)
			m := uplinktest.MoveAt(1, 0)
			err = stream.Send(&m)
			if renews && (err != nil || b.issued < 2) {
				t.Errorf("%v after %d tokens", err, b.issued)
			}
			if !renews && (!errors.Is(err, client.ErrLost) || !errors.Is(err, token.ErrStale) && !errors.Is(err, token.ErrUsed)) {
				t.Errorf("Send: %v", err)
			}
		})
	}
}
