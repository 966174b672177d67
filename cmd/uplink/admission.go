package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"time"

	"github.com/spf13/pflag"

	"github.com/uplink-rpc/uplink/token"
	"github.com/uplink-rpc/uplink/transport"
)

// admission is what lets a client of a command in at a server: a token, or the issuer's key to make tokens with.
type admission struct{ token, key string }

func (a *admission) addFlags(f *pflag.FlagSet) {
	f.StringVar(&a.token, "token", "", "connect token, as uplink token or a backend issues it; @FILE reads a file")
	f.StringVar(&a.key, "key", "", "file of the issuer's key, to make tokens with, also for connecting again")
}

func (a *admission) check() error {
	if a.token != "" && a.key != "" {
		return errors.New("--token: with --key tokens are made; leave one of them out")
	}
	return nil
}

// ticket is what admission comes to: the address to dial and what lets in there, where that is needed.
type ticket struct {
	addr  string
	token token.Token
	renew func(context.Context) (token.Token, error)
}

// ticket gives the token for a server, and with a key a way to more. They are for a client id of their own.
func (a *admission) ticket(ctx context.Context, addr string) (t ticket, err error) {
	t.addr = addr
	switch {
	case a.token != "":
		t.token, err = readToken(a.token)
		return t, err
	case a.key == "":
		return t, nil
	}
	key, err := loadIssuerKey(a.key)
	if err != nil {
		return t, err
	}
	udp, err := net.ResolveUDPAddr("udp", addr)
	if err != nil {
		return t, fmt.Errorf("--to: %w", err)
	}
	server := netip.AddrPortFrom(udp.AddrPort().Addr().Unmap(), udp.AddrPort().Port())
	i := issuer{key: key, client: rand.Uint64(), server: server}
	t.addr, t.renew = server.String(), i.issue
	t.token, err = i.issue(ctx)
	return t, err
}

// issuer makes tokens for one client and server, as a backend does.
type issuer struct {
	key    token.IssuerKey
	client uint64
	server netip.AddrPort
}

func (i *issuer) issue(context.Context) (token.Token, error) {
	return token.Issue(i.key, token.Claims{ClientID: i.client, Expires: time.Now().Add(time.Minute), Servers: []netip.AddrPort{i.server}})
}

// readToken gives the token whose text a flag has, or the file that it names.
func readToken(flag string) (t token.Token, err error) {
	text := flag
	if text[0] == '@' {
		b, err := readFile(text[1:], 4096)
		if err != nil {
			return t, fmt.Errorf("--token: %w", err)
		}
		text = string(b)
	}
	if t, err = token.Parse(text); err != nil {
		return t, hintedError{fmt.Errorf("--token: %w", err), "want the whole line that uplink token prints, or @ and the name of a file with it"}
	}
	return t, nil
}

// loadIssuerKey reads the file of an issuer's key.
func loadIssuerKey(path string) (token.IssuerKey, error) {
	key, err := loadKey(path, token.ParseIssuerKey)
	if err != nil {
		err = hintedError{err, "want the file that uplink keygen wrote beside the server's, such as ds.key" + issuerSuffix}
	}
	return key, err
}

// clientHints say what to do on the command line when a client is not let in.
var clientHints = []struct {
	err  error
	hint string
}{
	{token.ErrNoToken, "give the file " + issuerSuffix + " of uplink keygen as --key, or a token as --token; --insecure at both ends does without, for tests"},
	{token.ErrExpired, "issue another one, that lives longer: uplink token --for 10m; or make tokens here, with --key"},
	{token.ErrUsed, "a token begins one session: issue another one, or make them here, with --key"},
	{token.ErrWrongKey, "the server has another key: --key has to be the file " + issuerSuffix + " that uplink keygen made with the server's, or --token one that was issued with it"},
	{token.ErrWrongServer, "the address that a token names has to be the server's --addr, by default the one it listens on"},
	{token.ErrStale, "the server was started after the token was issued: issue another one, or make them here, with --key"},
	{transport.ErrNoSuite, "--suite has to be the same at both ends"},
	{transport.ErrServerFull, "the server's --max-players lets in more"},
}

// hintFor adds what to do about an error of dialing.
func hintFor(err error) error {
	for _, h := range clientHints {
		if errors.Is(err, h.err) {
			return hintedError{err, h.hint}
		}
	}
	return err
}
