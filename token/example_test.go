package token_test

import (
	"fmt"
	"log"
	"net/netip"
	"time"

	"github.com/uplink-rpc/uplink/token"
)

// The backend issues, the client carries, the server opens.
func Example() {
	key, err := token.NewKey() // the server's: uplink keygen makes files of these
	if err != nil {
		log.Fatal(err)
	}

	// The backend, for a player who has logged in.
	issued, err := token.Issue(key.Issuer(), token.Claims{
		ClientID: 42,
		Expires:  time.Now().Add(time.Minute),
		Servers:  []netip.AddrPort{netip.MustParseAddrPort("203.0.113.7:7777")},
		UserData: []byte("team=blue"),
	})
	if err != nil {
		log.Fatal(err)
	}
	text := issued.String() // over HTTPS

	// The client.
	t, err := token.Parse(text)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("trusts the right server:", t.ServerKey() == key.Public())

	// The server, with what the client sent it.
	claims, id, err := key.Open(t.Sealed())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("client", claims.ClientID, "of", claims.Servers[0], "is", string(claims.UserData))
	fmt.Println("lives", claims.Expires.Sub(claims.Issued).Round(time.Second), "and has one name:", id == t.ID())
	// Output:
	// trusts the right server: true
	// client 42 of 203.0.113.7:7777 is team=blue
	// lives 1m0s and has one name: true
}
