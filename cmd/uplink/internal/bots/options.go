package bots

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/internal/simlink"
	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/token"
	"github.com/uplink-rpc/uplink/transport"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

const (
	maxPlayers = 60_000 // each has a UDP port of its own
	maxRate    = 1000
	// minRebind is the time that a server needs to follow.
	minRebind = time.Second
)

// Options configure a run. Errors name the command's flags.
type Options struct {
	To         string // address of the server
	Players    int
	Rate       float64       // calls a second of each; 0: they stay idle
	Ramp       time.Duration // over which they join
	For        time.Duration // to play once all have joined; 0: until the context is done
	Wait       time.Duration // for the server's answers
	Codec      rpcdelta.Codec
	Preset     client.Preset
	Redundancy int // as in client.Config
	Link       simlink.Config
	Suites     []transport.Suite
	Insecure   bool // as in client.Config, with Suites
	// Issuer issues the bots' tokens. With the zero key they have none.
	Issuer token.IssuerKey
	Route  string // route id of the tokens that bots get with Issuer
	// Others are further servers that these tokens name.
	Others []netip.AddrPort
	// Joined, if set, is called with each bot's connection when its RPC is bound.
	Joined func(context.Context, *client.Conn) error
	// RebindEvery is the interval at which each bot rebinds to another socket; 0: never.
	RebindEvery time.Duration
	Network     transport.Network // nil means UDP
	// KeyLog receives the secrets of all sessions; nil: none.
	KeyLog io.Writer
}

// Validate returns an error that names an invalid flag.
func (o *Options) Validate() error {
	switch {
	case o.Players < 1 || o.Players > maxPlayers:
		return fmt.Errorf("--players %d: want 1 to %d", o.Players, maxPlayers)
	case o.Rate != 0 && !(o.Rate >= 1 && o.Rate <= maxRate):
		return fmt.Errorf("--rate %v: want 1 to %d calls a second, or 0 for players who stay idle", o.Rate, maxRate)
	case o.Ramp < 0:
		return fmt.Errorf("--ramp %v: want 0s or more", o.Ramp)
	case o.For < 0:
		return fmt.Errorf("--for %v: want 0s, which is until Ctrl-C, or more", o.For)
	case o.RebindEvery != 0 && o.RebindEvery < minRebind:
		return fmt.Errorf("--rebind-every %v: want 0s, which is never, or at least %v", o.RebindEvery, minRebind)
	case o.Wait <= 0:
		return fmt.Errorf("--wait %v: want more than 0s", o.Wait)
	}
	return o.Link.Validate()
}

// client sets up bot i. This is the one place where bots get what the server knows them by.
func (r *run) client(i int) (client.Config, error) {
	o := &r.options
	c := client.Config{
		KeyLog:  o.KeyLog,
		Network: r.network, Codec: o.Codec, Preset: o.Preset, Redundancy: o.Redundancy, Suites: o.Suites, Insecure: o.Insecure, BindTimeout: o.Wait,
	}
	if o.Issuer.IsZero() {
		return c, nil
	}
	c.Renew = func(context.Context) (token.Token, error) {
		server, err := Resolve(o.To)
		if err != nil {
			return token.Token{}, err
		}
		return Issue(o.Issuer, r.firstID+uint64(i), o.Route, append([]netip.AddrPort{server}, o.Others...)...)
	}
	var err error
	c.Token, err = c.Renew(context.Background())
	return c, err
}

// Resolve returns the address of a server as tokens name it.
func Resolve(addr string) (netip.AddrPort, error) {
	server, err := net.ResolveUDPAddr("udp", addr)
	if err != nil {
		return netip.AddrPort{}, err
	}
	return netip.AddrPortFrom(server.AddrPort().Addr().Unmap(), server.AddrPort().Port()), nil
}

// Issue issues a token for a client and servers, with a route id, valid for a minute, as a backend
// does.
func Issue(key token.IssuerKey, client uint64, route string, servers ...netip.AddrPort) (token.Token, error) {
	return token.Issue(key, token.Claims{
		ClientID: client, Expires: time.Now().Add(time.Minute), Servers: servers, Route: []byte(route),
	})
}

func (o *Options) network() (transport.Network, error) {
	inner := o.Network
	if inner == nil {
		inner = transport.UDP()
	}
	up, down := o.Link.Up(), o.Link.Down()
	switch {
	case o.Link.Perfect():
		return inner, nil
	case o.Link.RTT == 0 && o.Link.Jitter == 0:
		return newLossyNetwork(inner, up, down)
	}
	return simnet.WrapNetwork(inner, up, down)
}
