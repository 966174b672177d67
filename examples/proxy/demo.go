package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/token"
	"github.com/uplink-rpc/uplink/transport"
	"github.com/uplink-rpc/uplink/transport/relay"
)

// demonstrate runs a proxy, two servers behind it and four players on loopback. All players dial
// the proxy; their tokens determine the server that they join.
func demonstrate(ctx context.Context) error {
	key, err := token.NewKey()
	if err != nil {
		return err
	}
	var relayKey [32]byte
	if _, err := rand.Read(relayKey[:]); err != nil {
		return err
	}
	public, err := transport.UDP().ListenPacket("127.0.0.1:0")
	if err != nil {
		return err
	}
	internal, err := transport.UDP().ListenPacket("127.0.0.1:0")
	if err != nil {
		return errors.Join(err, public.Close())
	}
	joined := make(chan string)
	var servers []server
	var running []*ds.Server
	for i, route := range []string{"eu-1", "eu-2"} {
		id := uint16(i) + 1
		srv, err := ds.Listen("127.0.0.1:0", ds.Config{
			Key: key, Network: relay.Network(nil, relayKey, nil), Transport: ds.Transport{Route: []byte(route), ServerID: id}, Addrs: []netip.AddrPort{public.LocalAddr()},
			Joined: func(p *ds.Player) {
				joined <- fmt.Sprintf("player %d joined %s from %v", p.ClientID(), route, p.Addr())
			},
		})
		if err != nil {
			return err
		}
		go func() { _ = srv.Serve(ctx) }() // until Close
		servers, running = append(servers, server{srv.Addr(), id, route}), append(running, srv)
	}
	p := newProxy(public, internal, relayKey, servers)
	go func() { _ = p.run() }() // until close
	for player := range uint64(4) {
		t, err := token.Issue(key.Issuer(), token.Claims{
			ClientID: player, Expires: time.Now().Add(time.Minute), Servers: []netip.AddrPort{public.LocalAddr()},
			Route: []byte(servers[player%2].route),
		})
		if err != nil {
			return err
		}
		// Without a preset: each call passes the proxy in a datagram of its own.
		conn, err := client.Dial(ctx, public.LocalAddr().String(), client.Config{Token: t})
		if err != nil {
			return err
		}
		fmt.Println(<-joined)
		if err := conn.Close(); err != nil {
			return err
		}
	}
	fmt.Printf("%+v\n", p.snapshot())
	for _, srv := range running {
		err = errors.Join(err, srv.Close())
	}
	p.close()
	return err
}
