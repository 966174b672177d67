// Issuer: a game's backend that hands connect tokens to players who are logged in.
//
// A client that wants to play asks the backend where and with what, over HTTPS and
// with whatever proves its login there:
//
//	POST /token
//	Authorization: Bearer SESSION
//
//	{"token": "uplink-token-1...."}
//
// and dials at once with what it reads by token.Parse. The token names the servers,
// holds the key by which the client knows them, and lives a minute: it is for one
// session, and the next one needs another. A client asks again to reconnect; it
// never has a key of its own.
//
// Here the server that would take the token is a key alone. In earnest
// "uplink keygen -o ds.key" makes both keys: the backend reads ds.key.issuer with
// token.ParseIssuerKey, from a file or a secret store. The clocks of backend and
// server should agree to a few seconds.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/uplink-rpc/uplink/token"
)

// issuer is the part of the backend that issues tokens.
type issuer struct {
	key     token.IssuerKey
	servers []netip.AddrPort
	players map[string]player // by session; a database in earnest
}

type player struct {
	id   uint64
	team string
}

// answer is what a client gets. Its token is text in JSON.
type answer struct {
	Token token.Token `json:"token"`
}

func (i *issuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	session, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	who, known := i.players[session]
	if !ok || !known {
		http.Error(w, "log in first", http.StatusUnauthorized)
		return
	}
	t, err := token.Issue(i.key, token.Claims{
		ClientID: who.id, // from the login, never from the request
		Expires:  time.Now().Add(time.Minute),
		Servers:  i.servers,
		UserData: []byte("team=" + who.team),
	})
	if err != nil {
		log.Print(err)
		http.Error(w, "no token can be issued", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store") // whoever has it can play as this player
	json.NewEncoder(w).Encode(answer{t})
}

// fetch is the client's side.
func fetch(ctx context.Context, url, session string) (token.Token, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/token", nil)
	if err != nil {
		return token.Token{}, err
	}
	req.Header.Set("Authorization", "Bearer "+session)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return token.Token{}, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return token.Token{}, fmt.Errorf("no token: %s", res.Status)
	}
	var a answer
	err = json.NewDecoder(res.Body).Decode(&a)
	return a.Token, err
}

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	key, err := token.NewKey()
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("POST /token", &issuer{
		key:     key.Issuer(),
		servers: []netip.AddrPort{netip.MustParseAddrPort("203.0.113.7:7777")},
		players: map[string]player{"ada's session": {42, "blue"}},
	})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	backend := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	done := make(chan error, 1)
	go func() { done <- backend.Serve(ln) }()
	url := "http://" + ln.Addr().String()

	if _, err := fetch(ctx, url, "nobody's session"); err != nil {
		fmt.Println("a stranger gets", err)
	}
	t, err := fetch(ctx, url, "ada's session")
	if err != nil {
		return err
	}
	fmt.Println("ada gets a token with the server's key:", t.ServerKey() == key.Public())

	// The server opens what the client sends it; transport does that for a program.
	claims, id, err := key.Open(t.Sealed())
	if err != nil {
		return err
	}
	fmt.Println("token", id)
	fmt.Printf("client %d may join %v with %q, until %v\n",
		claims.ClientID, claims.Servers, claims.UserData, claims.Expires.Format(time.TimeOnly))

	if err := backend.Shutdown(ctx); err != nil {
		return err
	}
	if err := <-done; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
