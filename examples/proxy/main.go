// Proxy is a UDP proxy in front of several dedicated servers, with one public address. It does not
// know the keys of sessions and tokens: a hello contains the route id of its connect token, and a
// connection id contains the id of its server. It passes the addresses of clients to servers in
// envelopes, which are authenticated with a key that the proxy and the servers share (package
// transport/relay).
//
//	go run ./examples/proxy -listen 203.0.113.7:7777 -internal 10.0.0.1:7000 -key relay.key \
//	    -server 1,eu-1,10.0.0.2:7777 -server 2,eu-2,10.0.0.3:7777
//
// Without flags it shows all of this on loopback: a proxy, two servers and four players.
//
// The file relay.key contains 64 hexadecimal digits. Each server has the same key, its own id and
// route, and the public address:
//
//	ds.Listen("10.0.0.2:7777", ds.Config{
//		Network: relay.Network(nil, key, logger), Transport: ds.Transport{Route: []byte("eu-1"), ServerID: 1},
//		Addrs: []netip.AddrPort{netip.MustParseAddrPort("203.0.113.7:7777")}, Key: dsKey,
//	})
//
// Servers accept envelopes only from the proxy address that is authenticated in them. -internal is
// therefore the address at which servers see the proxy. If there is a NAT between them, set
// -internal-as to that address.
//
// The backend sets token.Claims.Route to the route of the server that a player shall join.
package main

import (
	"context"
	"encoding/hex"
	"flag"
	"fmt"
	"log"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/uplink-rpc/uplink/transport"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:7777", "address for clients")
	internal := flag.String("internal", "127.0.0.1:7000", "address for servers")
	internalAs := flag.String("internal-as", "", "address that servers see instead of -internal")
	keyFile := flag.String("key", "", "file with the key of proxy and servers, 64 hexadecimal digits")
	var servers []server
	flag.Func("server", "a server: ID,ROUTE,ADDRESS:PORT; may be repeated", func(text string) error {
		s, err := parseServer(text)
		servers = append(servers, s)
		return err
	})
	flag.Parse()
	var err error
	if *keyFile == "" && servers == nil {
		err = demonstrate(context.Background())
	} else {
		err = serve(*listen, *internal, *internalAs, *keyFile, servers)
	}
	if err != nil {
		log.Fatal(err)
	}
}

func serve(listen, internal, internalAs, keyFile string, servers []server) error {
	text, err := os.ReadFile(keyFile)
	if err != nil {
		return err
	}
	key, err := hex.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(key) != 32 {
		return fmt.Errorf("%s: want 64 hexadecimal digits", keyFile)
	}
	up, err := transport.UDP().ListenPacket(listen)
	if err != nil {
		return err
	}
	down, err := transport.UDP().ListenPacket(internal)
	if err != nil {
		return err
	}
	p := newProxy(up, down, [32]byte(key), servers)
	if internalAs != "" {
		if p.addr, err = netip.ParseAddrPort(internalAs); err != nil {
			return fmt.Errorf("-internal-as: %w", err)
		}
	}
	if p.addr.Addr().IsUnspecified() {
		return fmt.Errorf("-internal %v: want the address that servers see, or -internal-as with it", p.addr)
	}
	go func() {
		for range time.Tick(10 * time.Second) {
			log.Printf("%+v", p.snapshot())
		}
	}()
	log.Printf("forwarding %v to %d servers, which see %v", up.LocalAddr(), len(servers), p.addr)
	return p.run()
}

// parseServer parses "ID,ROUTE,ADDRESS:PORT".
func parseServer(text string) (s server, err error) {
	parts := strings.Split(text, ",")
	if len(parts) != 3 {
		return s, fmt.Errorf("want ID,ROUTE,ADDRESS:PORT")
	}
	id, err := strconv.ParseUint(parts[0], 10, 16)
	if err != nil || id == 0 {
		return s, fmt.Errorf("server id %q: want 1 to 65535", parts[0])
	}
	s.id, s.route = uint16(id), parts[1]
	s.addr, err = netip.ParseAddrPort(parts[2])
	return s, err
}
