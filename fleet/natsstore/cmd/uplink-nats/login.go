package main

import (
	"errors"
	"flag"
	"fmt"
	"log"
	"net/url"
	"os"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/uplink-rpc/uplink/fleet/natsstore"
	"github.com/uplink-rpc/uplink/internal/privatefile"
)

// passwordVariable is the environment variable with the password of -nats-user.
const passwordVariable = "UPLINK_NATS_PASSWORD"

// login holds the credentials with which the program authenticates to NATS.
type login struct {
	urls               string
	user, passwordFile string
	creds              string
	ca, cert, key      string
}

func (l *login) addFlags() {
	flag.StringVar(&l.urls, "nats", nats.DefaultURL, "URLs of the NATS servers, separated by commas")
	flag.StringVar(&l.user, "nats-user", "", "user of NATS, whose password is in -nats-password-file or in the environment variable "+passwordVariable)
	flag.StringVar(&l.passwordFile, "nats-password-file", "", "file with the password of -nats-user")
	flag.StringVar(&l.creds, "nats-creds", "", "file with the credentials of a NATS user, a JWT and a seed")
	flag.StringVar(&l.ca, "nats-ca", "", "file with the certificates of the authorities that sign those of the NATS servers; requires TLS")
	flag.StringVar(&l.cert, "nats-cert", "", "file with the certificate of this client for NATS; requires TLS")
	flag.StringVar(&l.key, "nats-key", "", "file with the key of -nats-cert")
}

// connect connects to NATS. No error contains a password.
func (l *login) connect() (*nats.Conn, error) {
	if err := l.check(); err != nil {
		return nil, err
	}
	options := natsstore.Options()
	if l.user != "" {
		password, err := l.password()
		if err != nil {
			return nil, err
		}
		options = append(options, nats.UserInfo(l.user, password))
	}
	if l.creds != "" {
		if _, err := readSecret("nats-creds", l.creds); err != nil {
			return nil, err
		}
		options = append(options, nats.UserCredentials(l.creds))
	}
	if l.ca != "" {
		options = append(options, nats.RootCAs(l.ca))
	}
	if l.cert != "" {
		if _, err := readSecret("nats-key", l.key); err != nil {
			return nil, err
		}
		options = append(options, nats.ClientCert(l.cert, l.key))
	}
	nc, err := nats.Connect(l.urls, options...)
	if err != nil {
		return nil, fmt.Errorf("-nats %s: %w", l.redacted(), err)
	}
	return nc, nil
}

// check returns an error unless the flags are compatible and the URLs are valid.
func (l *login) check() error {
	switch {
	case l.user == "" && l.passwordFile != "":
		return errors.New("-nats-password-file: it needs -nats-user")
	case l.user != "" && l.creds != "":
		return errors.New("-nats-creds: leave it or -nats-user out")
	case (l.cert == "") != (l.key == ""):
		return errors.New("-nats-cert, -nats-key: they need each other")
	}
	for i, text := range strings.Split(l.urls, ",") {
		if parse(text) == nil {
			return fmt.Errorf("-nats: URL %d: want one such as nats://10.0.0.1:4222", i+1)
		}
	}
	return nil
}

// password returns the password of the user.
func (l *login) password() (string, error) {
	if l.passwordFile != "" {
		return readSecret("nats-password-file", l.passwordFile)
	}
	if password := os.Getenv(passwordVariable); password != "" {
		return password, nil
	}
	return "", errors.New("-nats-user: its password is missing: set -nats-password-file, or " + passwordVariable)
}

// parse returns a URL of -nats, nil if it is invalid. The scheme may be missing, as package nats
// permits.
func parse(text string) *url.URL {
	text = strings.TrimSpace(text)
	if !strings.Contains(text, "://") {
		text = "nats://" + text
	}
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" {
		return nil
	}
	return u
}

// redacted returns the URLs without passwords and tokens, for logs and errors.
func (l *login) redacted() string {
	var all []string
	for text := range strings.SplitSeq(l.urls, ",") {
		u := parse(text)
		if u == nil {
			all = append(all, "(invalid)")
			continue
		}
		if _, ok := u.User.Password(); !ok && u.User != nil {
			u.User = url.User("xxxxx") // the user is a token
		}
		all = append(all, u.Redacted())
	}
	return strings.Join(all, ",")
}

// readSecret returns the contents of a file with a secret, without surrounding white space. It logs
// a warning if the file is readable by everybody.
func readSecret(name, path string) (string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("-%s: %w", name, err)
	}
	if err := privatefile.Exposed(path); err != nil {
		log.Printf("-%s: %v; chmod 600 %s", name, err, path)
	}
	return strings.TrimSpace(string(text)), nil
}
