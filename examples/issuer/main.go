// Issuer: a complete login. The game's backend issues connect tokens to players who are logged in.
// A client connects with its token, which identifies the player to the dedicated server.
//
// The client requests a server and a token from the backend over HTTPS, with its login session:
//
//	POST /token
//	Authorization: Bearer SESSION
//
//	{"server": "203.0.113.7:7777", "token": "uplink-token-1...."}
//
// and dials at once. The token names the servers, contains the key that authenticates them, and
// expires after a minute. It is valid for one session; to reconnect, the client requests another
// one (client.Config.Renew). The client has no key of its own.
//
// Here all three are one program on loopback with a new key. In production, "uplink keygen -o
// ds.key" creates the keys: the servers parse ds.key with token.ParseKey, the backend ds.key.issuer
// with token.ParseIssuerKey, from a file or a secret store. The clocks of backend and servers
// should agree within a few seconds.
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

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/schema"
	"github.com/uplink-rpc/uplink/token"
)

// ServerMove contains the arguments of the RPC.
type ServerMove struct {
	Location schema.Vec3 `uplink:"resolution=0.1"` // cm
	Buttons  uint16      `uplink:"kind=bits"`
}

// issuer is the part of the backend that issues tokens.
type issuer struct {
	key     token.IssuerKey
	server  netip.AddrPort    // a server with free slots
	players map[string]player // by session; in production a database
}

type player struct {
	id   uint64
	team string
}

// answer is the answer to a client. In JSON its token is text.
type answer struct {
	Server netip.AddrPort `json:"server"`
	Token  token.Token    `json:"token"`
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
		Servers:  []netip.AddrPort{i.server},
		UserData: []byte("team=" + who.team),
	})
	if err != nil {
		log.Print(err)
		http.Error(w, "no token can be issued", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store") // with the token, anyone can play as this player
	json.NewEncoder(w).Encode(answer{i.server, t})
}

// fetch requests a token from the backend.
func fetch(ctx context.Context, url, session string) (a answer, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/token", nil)
	if err != nil {
		return a, err
	}
	req.Header.Set("Authorization", "Bearer "+session)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return a, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return a, fmt.Errorf("no token: %s", res.Status)
	}
	err = json.NewDecoder(res.Body).Decode(&a)
	return a, err
}

// listen starts the dedicated server. It knows players by the claims of their tokens.
func listen(key token.Key) (*ds.Server, error) {
	srv, err := ds.Listen("127.0.0.1:0", ds.Config{
		Key: key,
		Joined: func(p *ds.Player) {
			fmt.Printf("server: client %d joins with %q\n", p.ClientID(), p.UserData())
			if team, ok := strings.CutPrefix(string(p.UserData()), "team="); !ok || team == "" {
				p.Kick("players without a team are not admitted")
			}
		},
	})
	if err != nil {
		return nil, err
	}
	return srv, ds.Handle(srv, "ServerMove", func(p *ds.Player, f ds.Frame[ServerMove]) {
		if f.Seq == 0 {
			fmt.Printf("server: client %d is at %.1f\n", p.ClientID(), f.Value.Location)
		}
	})
}

// play runs the client of a player.
func play(ctx context.Context, url, session string) error {
	a, err := fetch(ctx, url, session)
	if err != nil {
		return err
	}
	// Without a preset: the example is about tokens, and its few calls need no batching.
	conn, err := client.Dial(ctx, a.Server.String(), client.Config{
		Token: a.Token,
		Renew: func(ctx context.Context) (token.Token, error) {
			a, err := fetch(ctx, url, session)
			return a.Token, err
		},
	})
	if err != nil {
		return err
	}
	defer conn.Close()
	move, err := client.Bind[ServerMove](ctx, conn, "ServerMove", client.BindConfig{RateHz: 60})
	if err != nil {
		return err
	}
	for i := range 30 {
		if _, err := move.Send(&ServerMove{Location: schema.Vec3{X: 10 * float64(i)}}); err != nil {
			return err
		}
		time.Sleep(time.Second / 60)
	}
	_, err = client.Dial(ctx, a.Server.String(), client.Config{Token: a.Token})
	fmt.Println("the same token again is refused:", errors.Is(err, token.ErrUsed))
	return nil
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
	srv, err := listen(key)
	if err != nil {
		return err
	}
	defer srv.Close()
	go srv.Serve(ctx)

	mux := http.NewServeMux()
	mux.Handle("POST /token", &issuer{
		key:     key.Issuer(),
		server:  srv.Addr(),
		players: map[string]player{"ada's session": {42, "blue"}},
	})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	backend := &http.Server{Handler: mux, ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second}
	defer backend.Close()
	go backend.Serve(ln)
	url := "http://" + ln.Addr().String()

	fmt.Println("without a login:", play(ctx, url, "nobody's session"))
	return play(ctx, url, "ada's session")
}
