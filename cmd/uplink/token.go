package main

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/netip"
	"os"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/uplink-rpc/uplink/token"
)

type tokenOptions struct {
	key, show string
	client    uint64
	servers   []string
	lifetime  time.Duration
	userData  string
	route     string
	json      bool
}

// issueFlags are the flags that --show excludes.
var issueFlags = []string{"client", "server", "for", "user-data", "route"}

func newTokenCommand() *cobra.Command {
	var o tokenOptions
	c := &cobra.Command{
		Use:   "token --key FILE --client ID --server ADDRESS:PORT",
		Short: "Issue or show a connect token",
		Long: `token issues a connect token with an issuer key from keygen, as a game's backend does: for tests, bots and private
servers. Anyone with the token can start one session as that client, until it expires.

--show prints the public part of a token: its id, the server's public key, and its expiry. With the server key as --key
it also prints the encrypted part.`,
		Example: `  uplink token --key ds.key.issuer --client 42 --server 203.0.113.7:7777 --for 2m
  uplink token --key ds.key.issuer --client 42 --server 203.0.113.7:7777 --server '[2001:db8::7]:7777' --user-data team=blue
  uplink token --key ds.key.issuer --client 42 --server 203.0.113.7:7777 --user-data @loadout.bin --json
  uplink token --show TOKEN --key ds.key`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(cmd); err != nil {
				return usageError{err}
			}
			log := (&logging{}).logger(cmd.ErrOrStderr())
			if cmd.Flags().Changed("show") {
				return o.runShow(cmd.OutOrStdout(), log, time.Now())
			}
			return o.runIssue(cmd.OutOrStdout(), log, time.Now())
		},
	}
	f := c.Flags()
	f.StringVar(&o.key, "key", "", "file with the issuer key; with --show, the server key")
	f.Uint64Var(&o.client, "client", 0, "client id of the player")
	f.StringArrayVar(&o.servers, "server", nil, fmt.Sprintf("server address that clients dial with the token; may be repeated, up to %d times", token.MaxServers))
	f.DurationVar(&o.lifetime, "for", time.Minute, "lifetime of the token")
	f.StringVar(&o.userData, "user-data", "", fmt.Sprintf("data for the game on the server, up to %d bytes; @FILE reads it from a file", token.MaxUserData))
	f.StringVar(&o.route, "route", "", fmt.Sprintf("route id for a proxy in front of servers, up to %d bytes", token.MaxRoute))
	f.StringVar(&o.show, "show", "", "show this token instead of issuing one")
	f.BoolVar(&o.json, "json", false, "print JSON, with client ids as strings, and user data and route ids in base64")
	return c
}

func (o *tokenOptions) check(cmd *cobra.Command) error {
	changed := cmd.Flags().Changed
	if changed("show") {
		for _, name := range issueFlags {
			if changed(name) {
				return fmt.Errorf("--%s: it is for issuing; leave it or --show out", name)
			}
		}
		return nil
	}
	switch {
	case o.key == "":
		return errors.New("--key: name the file with the issuer key; uplink keygen creates one")
	case !changed("client"):
		return errors.New("--client: want the client id")
	case len(o.servers) == 0:
		return errors.New("--server: want the address of a server")
	case o.lifetime < time.Millisecond || o.lifetime > token.MaxLifetime:
		return fmt.Errorf("--for %v: want %v to %v", o.lifetime, time.Millisecond, token.MaxLifetime)
	}
	_, err := parseServers("server", o.servers)
	return err
}

func parseServers(flag string, list []string) (servers []netip.AddrPort, err error) {
	for _, s := range list {
		a, err := netip.ParseAddrPort(s)
		if err != nil {
			return nil, fmt.Errorf("--%s %q: want an IP address and port such as 203.0.113.7:7777 or [2001:db8::7]:7777", flag, s)
		}
		servers = append(servers, a)
	}
	return servers, nil
}

func (o *tokenOptions) runIssue(w io.Writer, log *slog.Logger, now time.Time) error {
	key, err := loadIssuerKey(o.key, log)
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
	t, err := token.Issue(key, token.Claims{ClientID: o.client, Issued: now, Expires: now.Add(o.lifetime), Servers: servers, UserData: data, Route: []byte(o.route)})
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

// readUserData returns the text of --user-data, or the contents of the file that the text names.
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

func loadKey[K any](path string, log *slog.Logger, parse func(string) (K, error)) (key K, err error) {
	text, err := readSecretFile(path, 4096, log)
	if err != nil {
		return key, fmt.Errorf("--key: %w", err)
	}
	if key, err = parse(string(text)); err != nil {
		return key, fmt.Errorf("--key %s: %w", path, err)
	}
	return key, nil
}

// readFile reads a file of at most max bytes.
func readFile(path string, maxSize int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // opened for reading only
	b, err := io.ReadAll(io.LimitReader(f, maxSize+1))
	if err == nil && int64(len(b)) > maxSize {
		err = fmt.Errorf("%s: longer than %d bytes", path, maxSize)
	}
	return b, err
}

func encodeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// shownToken is the output of --show. Claims needs the server key.
type shownToken struct {
	ID        string       `json:"id"`
	KeyID     string       `json:"key_id"`
	ServerKey string       `json:"server_key"`
	Route     []byte       `json:"route,omitempty"`
	Expires   time.Time    `json:"expires"`
	Expired   bool         `json:"expired"`
	AEADBytes int          `json:"aead_bytes"`
	Claims    *shownClaims `json:"claims,omitempty"`
}

type shownClaims struct {
	ClientID uint64           `json:"client_id,string"`
	Issued   time.Time        `json:"issued"`
	Servers  []netip.AddrPort `json:"servers"`
	UserData []byte           `json:"user_data"`
	Handover string           `json:"handover_sha256,omitempty"`
}

func (o *tokenOptions) runShow(w io.Writer, log *slog.Logger, now time.Time) error {
	t, err := token.Parse(o.show)
	if err != nil {
		return usageError{fmt.Errorf("--show: %w", err)}
	}
	shown := &shownToken{ID: t.ID().String(), KeyID: t.KeyID().String(), Route: t.Route(), ServerKey: keyText(t.ServerKey()), Expires: t.Expires(), AEADBytes: len(t.Sealed())}
	if o.key != "" {
		if err := shown.open(t, o.key, log); err != nil {
			return err
		}
	}
	shown.Expired = !now.Before(shown.Expires)
	if o.json {
		return encodeJSON(w, shown)
	}
	_, err = io.WriteString(w, shown.text(now))
	return err
}

// open adds the decrypted claims. Their expiry replaces the public one.
func (s *shownToken) open(t token.Token, path string, log *slog.Logger) error {
	key, err := loadKey(path, log, token.ParseKey)
	if err != nil {
		return hintedError{err, "only the server key decrypts a token; leave --key out to see the rest"}
	}
	c, _, err := key.Open(t.Sealed())
	switch {
	case err != nil && t.ServerKey() != key.Public():
		return fmt.Errorf("--key %s: the token is for the server with public key %s, but this key's is %s", path, s.ServerKey, keyText(key.Public()))
	case err != nil:
		return fmt.Errorf("--key %s: %w", path, err)
	}
	s.Expires = c.Expires
	s.Claims = &shownClaims{c.ClientID, c.Issued, c.Servers, c.UserData, ""}
	if c.Handover != ([len(c.Handover)]byte{}) {
		s.Claims.Handover = hex.EncodeToString(c.Handover[:])
	}
	return nil
}

func (s *shownToken) text(now time.Time) string {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-11s "+format+"\n", append([]any{name}, args...)...)
	}
	line("id", "%s", s.ID)
	line("key id", "%s", s.KeyID)
	line("server key", "%s", s.ServerKey)
	line("expires", "%s, %s", timeText(s.Expires), untilText(s.Expires.Sub(now)))
	if len(s.Route) > 0 {
		line("route", "%s", dataText(s.Route))
	}
	if s.Claims == nil {
		line("encrypted", "%d bytes; --key with the server key decrypts them", s.AEADBytes)
		return b.String()
	}
	line("client", "%d", s.Claims.ClientID)
	line("issued", "%s, lifetime %v", timeText(s.Claims.Issued), s.Expires.Sub(s.Claims.Issued))
	for _, server := range s.Claims.Servers {
		line("server", "%v", server)
	}
	line("user data", "%s", dataText(s.Claims.UserData))
	if s.Claims.Handover != "" {
		line("handover", "SHA-256 %s", s.Claims.Handover)
	}
	return b.String()
}

func timeText(t time.Time) string { return t.Format("2006-01-02T15:04:05.000Z07:00") }

func untilText(d time.Duration) string {
	if d <= 0 {
		return fmt.Sprintf("expired %v ago", -d.Round(time.Second))
	}
	return fmt.Sprintf("in %v", d.Round(time.Second))
}

func dataText(data []byte) string {
	switch {
	case len(data) == 0:
		return "none"
	case utf8.Valid(data) && !strings.ContainsFunc(string(data), unicode.IsControl):
		return fmt.Sprintf("%q", data)
	}
	return fmt.Sprintf("%d bytes, in hex %x", len(data), data)
}

// issuerSuffix is the suffix of the issuer key's file, after the name of the server key's file.
const issuerSuffix = ".issuer"

// keyFiles is the output of keygen.
type keyFiles struct {
	Key       string `json:"key"`
	IssuerKey string `json:"issuer_key"`
	KeyID     string `json:"key_id"`
	PublicKey string `json:"public_key"`
}

func newKeygenCommand() *cobra.Command {
	var out string
	var asJSON bool
	c := &cobra.Command{
		Use:   "keygen -o FILE",
		Short: "Create the keys of a dedicated server and of the backend that issues tokens",
		Long: `keygen writes a new server key to FILE, and its issuer key to FILE.issuer. The server key is for dedicated servers; the
issuer key is for the backend, which issues connect tokens with it. Both are secret: only those programs may read them.
The output is not secret.

keygen does not overwrite files. To change keys, create new ones, give servers both (ds --key, twice), install the new
issuer key on the backend, and remove the old server key when the last token that it issued has expired.`,
		Example: `  uplink keygen -o ds.key
  uplink keygen -o ds.key --json`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if out == "" {
				return usageError{errors.New("--output: name the file for the key")}
			}
			files, err := makeKeys(out)
			if err != nil {
				return err
			}
			if asJSON {
				return encodeJSON(cmd.OutOrStdout(), files)
			}
			const format = "server key  %s\nissuer key  %s\nkey id      %s\npublic key  %s\n"
			_, err = fmt.Fprintf(cmd.OutOrStdout(), format, files.Key, files.IssuerKey, files.KeyID, files.PublicKey)
			return err
		},
	}
	f := c.Flags()
	f.StringVarP(&out, "output", "o", "", "file for the server key; the issuer key goes to this name with "+issuerSuffix)
	f.BoolVar(&asJSON, "json", false, "print the names of the files and the public key as JSON")
	return c
}

// makeKeys writes both files, or neither if one fails.
func makeKeys(path string) (*keyFiles, error) {
	key, err := token.NewKey()
	if err != nil {
		return nil, err
	}
	files := &keyFiles{Key: path, IssuerKey: path + issuerSuffix, KeyID: key.ID().String(), PublicKey: keyText(key.Public())}
	if err := writeSecret(files.Key, key.Secret()); err != nil {
		return nil, err
	}
	if err := writeSecret(files.IssuerKey, key.Issuer().Secret()); err != nil {
		return nil, errors.Join(err, os.Remove(files.Key))
	}
	return files, nil
}

// writeSecret writes a line to a new file that only its owner can read.
func writeSecret(path, line string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		err = fmt.Errorf("--output: %w", err)
		if errors.Is(err, fs.ErrExist) {
			return hintedError{err, "keys are not overwritten; choose another name, or move the old files"}
		}
		return err
	}
	_, err = f.WriteString(line + "\n")
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("--output: %w", errors.Join(err, os.Remove(path)))
	}
	return nil
}

func keyText(public [32]byte) string { return base64.RawURLEncoding.EncodeToString(public[:]) }
