package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/uplink-rpc/uplink/token"
)

type tokenOptions struct {
	key, show string
	client    uint64
	servers   []string
	lifetime  time.Duration
	userData  string
	json      bool
}

// issueFlags make no sense with --show.
var issueFlags = []string{"client", "server", "for", "user-data"}

func newTokenCommand() *cobra.Command {
	var o tokenOptions
	c := &cobra.Command{
		Use:   "token --key FILE --client ID --server ADDRESS:PORT",
		Short: "Issue a connect token, or show what one says",
		Long: `token issues a connect token with the issuer's key that keygen made, as a game's backend does: for trying things out, for
bots, for a server of friends. Whoever has the text can begin one session as that client, until it expires.

--show says what a token tells anybody: its id, the server's public key, when it expires. The rest is sealed;
with the server's key as --key it is shown too.`,
		Example: `  uplink token --key ds.key.issuer --client 42 --server 203.0.113.7:7777 --for 2m
  uplink token --key ds.key.issuer --client 42 --server 203.0.113.7:7777 --server '[2001:db8::7]:7777' --user-data team=blue
  uplink token --key ds.key.issuer --client 42 --server 203.0.113.7:7777 --user-data @loadout.bin --json
  uplink token --show TOKEN --key ds.key`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(cmd); err != nil {
				return usageError{err}
			}
			if cmd.Flags().Changed("show") {
				return o.runShow(cmd.OutOrStdout(), time.Now())
			}
			return o.runIssue(cmd.OutOrStdout(), time.Now())
		},
	}
	f := c.Flags()
	f.StringVar(&o.key, "key", "", "file of the issuer's key, or with --show of the server's")
	f.Uint64Var(&o.client, "client", 0, "client id: the player's number")
	f.StringArrayVar(&o.servers, "server", nil, fmt.Sprintf("address of a server that the token is good for, as clients dial it; may be repeated, up to %d times", token.MaxServers))
	f.DurationVar(&o.lifetime, "for", time.Minute, "how long the token can begin a session")
	f.StringVar(&o.userData, "user-data", "", fmt.Sprintf("what the game on the server is told, up to %d bytes; @FILE reads a file", token.MaxUserData))
	f.StringVar(&o.show, "show", "", "show this token instead of issuing one")
	f.BoolVar(&o.json, "json", false, "print JSON; client ids are strings, user data is base64")
	return c
}

func (o *tokenOptions) check(cmd *cobra.Command) error {
	changed := cmd.Flags().Changed
	if changed("show") {
		for _, name := range issueFlags {
			if changed(name) {
				return fmt.Errorf("--%s: it says what to issue; leave it or --show out", name)
			}
		}
		return nil
	}
	switch {
	case o.key == "":
		return errors.New("--key: which file has the issuer's key? uplink keygen makes one")
	case !changed("client"):
		return errors.New("--client: whom is the token for?")
	case len(o.servers) == 0:
		return errors.New("--server: which server is the token good for?")
	case o.lifetime < time.Millisecond || o.lifetime > token.MaxLifetime:
		return fmt.Errorf("--for %v: want %v to %v", o.lifetime, time.Millisecond, token.MaxLifetime)
	}
	_, err := parseServers("server", o.servers)
	return err
}

// parseServers gives the addresses that a flag has.
func parseServers(flag string, list []string) (servers []netip.AddrPort, err error) {
	for _, s := range list {
		a, err := netip.ParseAddrPort(s)
		if err != nil {
			return nil, fmt.Errorf("--%s %q: want numbers such as 203.0.113.7:7777 or [2001:db8::7]:7777", flag, s)
		}
		servers = append(servers, a)
	}
	return servers, nil
}

func (o *tokenOptions) runIssue(w io.Writer, now time.Time) error {
	key, err := loadIssuerKey(o.key)
	if err != nil {
		return err
	}
	servers, err := parseServers("server", o.servers)
	if err != nil {
		return err
	}
	data, err := readUserData(o.userData)
	if err != nil {
		return err
	}
	t, err := token.Issue(key, token.Claims{ClientID: o.client, Issued: now, Expires: now.Add(o.lifetime), Servers: servers, UserData: data})
	if err != nil {
		return err
	}
	if o.json {
		return encodeJSON(w, struct {
			Token   token.Token `json:"token"`
			ID      string      `json:"id"`
			Expires time.Time   `json:"expires"`
		}{t, t.ID().String(), t.Expires()})
	}
	_, err = fmt.Fprintln(w, t)
	return err
}

// readUserData gives the text of --user-data, or the file that it names. What is too long is for Issue to say.
func readUserData(text string) ([]byte, error) {
	if text == "" || text[0] != '@' {
		return []byte(text), nil
	}
	data, err := readFile(text[1:], token.MaxUserData)
	if err != nil {
		return nil, fmt.Errorf("--user-data: %w", err)
	}
	return data, nil
}

// loadKey reads a file with the text of a key.
func loadKey[K any](path string, parse func(string) (K, error)) (key K, err error) {
	text, err := readFile(path, 4096)
	if err != nil {
		return key, fmt.Errorf("--key: %w", err)
	}
	if key, err = parse(string(text)); err != nil {
		return key, fmt.Errorf("--key %s: %w", path, err)
	}
	return key, nil
}

// readFile reads a file of so many bytes at most.
func readFile(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(b)) > most {
		err = fmt.Errorf("%s: longer than %d bytes", path, most)
	}
	return b, err
}

func encodeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
