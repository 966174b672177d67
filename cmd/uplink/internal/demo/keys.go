package demo

import (
	"context"
	"errors"
	"net/netip"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/token"
	"github.com/uplink-rpc/uplink/transport"
)

// keys are the demo's own: the server's, and the half of it that a backend would issue tokens with.
type keys struct {
	server token.Key
	issuer token.IssuerKey
}

func newKeys() (keys, error) {
	k, err := token.NewKey()
	if err != nil {
		return keys{}, err
	}
	return keys{k, k.Issuer()}, nil
}

// listen starts the server, with a handler for each trace.
func (d *demo) listen() (err error) {
	if d.keys, err = newKeys(); err != nil {
		return err
	}
	d.srv, err = ds.Listen("127.0.0.1:0", ds.Config{
		Key: d.keys.server, Suites: d.options.suites(), Insecure: d.options.insecure(), KeyLog: d.options.KeyLog, MaxPlayers: 2 * len(d.players),
	})
	if err != nil {
		return err
	}
	for _, t := range d.traces {
		if err := ds.HandleSchema(d.srv, t.Schema, d.check(t)); err != nil {
			return errors.Join(err, d.srv.Close())
		}
	}
	return nil
}

// admit gives a player's next connection what lets it in, now and whenever it has
// lost its link. Each has an id of its own, or it would take the place of the last
// one, which plays on; that of the first is the player's index plus 1.
func (d *demo) admit(ctx context.Context, p *player, cfg client.Config) (client.Config, error) {
	id := uint64(1 + p.index + p.dialed*len(d.players))
	p.dialed++
	cfg.Renew = func(context.Context) (token.Token, error) {
		return token.Issue(d.keys.issuer, token.Claims{
			ClientID: id, Expires: time.Now().Add(time.Minute), Servers: []netip.AddrPort{d.srv.Addr()},
		})
	}
	var err error
	cfg.Token, err = cfg.Renew(ctx)
	cfg.Suites, cfg.Insecure = d.options.suites(), d.options.insecure()
	return cfg, err
}

func (o *Options) suites() []transport.Suite { return []transport.Suite{o.Suite} }

// insecure says that the suite wants to be allowed.
func (o *Options) insecure() bool { return o.Suite == transport.None }
