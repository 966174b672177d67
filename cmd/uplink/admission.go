package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"

	"github.com/spf13/pflag"

	"github.com/uplink-rpc/uplink/cmd/uplink/internal/load"
	"github.com/uplink-rpc/uplink/token"
	"github.com/uplink-rpc/uplink/transport"
)

// admission is the source of a client's connect token: a given token, or the issuer key to issue
// tokens.
type admission struct{ token, key, route string }

func (a *admission) addFlags(f *pflag.FlagSet) {
	f.StringVar(&a.token, "token", "", "connect token from uplink token or a backend; @FILE reads it from a file")
	f.StringVar(&a.key, "key", "", "file with the issuer key; issues tokens, also for reconnects")
	f.StringVar(&a.route, "route", "", "with --key, route id of the server behind a proxy")
}

func (a *admission) check() error {
	if a.token != "" && a.key != "" {
		return errors.New("--token: --key issues tokens; leave one of them out")
	}
	if a.route != "" && a.key == "" {
		return errors.New("--route: it needs --key, which issues tokens")
	}
	return nil
}

// ticket is the address to dial and the token for it, if it needs one.
type ticket struct {
	addr  string
	token token.Token
	renew func(context.Context) (token.Token, error)
}

// ticket returns the token for a server and, if a key is given, a function that renews it. The
// client id is random.
func (a *admission) ticket(ctx context.Context, addr string, log *slog.Logger) (t ticket, err error) {
	t.addr = addr
	switch {
	case a.token != "":
		t.token, err = readToken(a.token)
		return t, err
	case a.key == "":
		return t, nil
	}
	key, err := loadIssuerKey(a.key, log)
	if err != nil {
		return t, err
	}
	server, err := load.Resolve(addr)
	if err != nil {
		return t, fmt.Errorf("--to: %w", err)
	}
	client := rand.Uint64()
	t.addr = server.String()
	t.renew = func(context.Context) (token.Token, error) { return load.Issue(key, client, a.route, server) }
	t.token, err = t.renew(ctx)
	return t, err
}

// readToken parses the token in a flag, or in the file that it names.
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

func loadIssuerKey(path string, log *slog.Logger) (token.IssuerKey, error) {
	key, err := loadKey(path, log, token.ParseIssuerKey)
	if err != nil {
		err = hintedError{err, "want the file that uplink keygen wrote next to the server key, such as ds.key" + issuerSuffix}
	}
	return key, err
}

var clientHints = []struct {
	err  error
	hint string
}{
	{token.ErrNoToken, "give the file " + issuerSuffix + " of uplink keygen as --key, or a token as --token; for tests, a server without --key needs none on loopback, or with --insecure at both ends"},
	{token.ErrExpired, "issue one with a longer lifetime: uplink token --for 10m; or use --key"},
	{token.ErrUsed, "a token starts one session: issue another one, or use --key"},
	{token.ErrWrongKey, "the server has another key: --key must be the file " + issuerSuffix + " that uplink keygen wrote with the server key, or --token a token issued with it"},
	{token.ErrWrongServer, "the token must name an address of the server's --addr, by default the one on which it listens"},
	{token.ErrStale, "the server started after the token was issued: issue another one, or use --key"},
	{token.ErrAhead, "set the clocks of both machines, for example by NTP"},
	{transport.ErrNoSuite, "use the same --suite at both ends"},
	{transport.ErrServerFull, "raise --max-players of the server"},
}

// dialHint adds a hint to the error of a client that could not connect to a server.
func dialHint(err error, to string) error {
	hint := "is a server there? uplink ds --listen " + to + " --schema FILE runs one"
	hinted := hintFor(err)
	switch {
	case errors.As(hinted, new(hintedError)):
	case errors.Is(err, transport.ErrNoServer):
		return hintedError{err, hint}
	case errors.Is(err, load.ErrSilence) || errors.Is(err, transport.ErrTimeout):
		return hintedError{err, hint + "; --wait waits longer"}
	}
	return hinted
}

func hintFor(err error) error {
	for _, h := range clientHints {
		if errors.Is(err, h.err) {
			return hintedError{err, h.hint}
		}
	}
	return err
}
