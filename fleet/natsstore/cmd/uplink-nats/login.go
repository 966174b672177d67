package main

import (
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"

	"github.com/nats-io/nats.go"

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

// options returns the options of the connection to NATS. Files are read for each connection. No
// error contains a password.
func (l *login) options(log *slog.Logger) (options []nats.Option, err error) {
	if err := l.check(); err != nil {
		return nil, err
	}
	if l.user != "" {
		if _, err := l.password(log); err != nil {
			return nil, err
		}
		options = append(options, nats.UserInfoHandler(func() (string, string) {
			password, err := l.password(log)
			if err != nil {
				log.Error("no password for NATS", "error", err)
			}
			return l.user, password
		}))
	}
	if l.creds != "" {
		if _, err := readSecret("nats-creds", l.creds, log); err != nil {
			return nil, err
		}
		options = append(options, nats.UserCredentials(l.creds))
	}
	if l.ca != "" {
		options = append(options, nats.RootCAs(l.ca))
	}
	if l.cert != "" {
		if _, err := readSecret("nats-key", l.key, log); err != nil {
			return nil, err
		}
		options = append(options, nats.ClientCert(l.cert, l.key))
	}
	return options, nil
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
func (l *login) password(log *slog.Logger) (string, error) {
	if l.passwordFile != "" {
		return readSecret("nats-password-file", l.passwordFile, log)
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
func readSecret(name, path string, log *slog.Logger) (string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("-%s: %w", name, err)
	}
	if err := privatefile.Exposed(path); err != nil {
		log.Warn("secret readable by others", "file", path, "hint", fmt.Sprintf("-%s: chmod 600 %s; if others had access, replace it", name, path))
	}
	return strings.TrimSpace(string(text)), nil
}
