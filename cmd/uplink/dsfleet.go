package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/uplink-rpc/uplink/fleet"
	"github.com/uplink-rpc/uplink/fleet/httpstore"
)

// fleetOptions are the flags of a server in a fleet.
type fleetOptions struct {
	url, name, secret string
	outage            time.Duration
	labels            map[string]string
}

func (o *fleetOptions) addFlags(f *pflag.FlagSet) {
	f.StringVar(&o.url, "fleet", "", "URL of the fleet's state, such as http://127.0.0.1:8080/fleet/ of uplink backend; empty: no fleet")
	f.StringVar(&o.name, "fleet-name", "", "unique name of this server in the fleet")
	f.StringVar(&o.secret, "fleet-secret", "", "file with the secret of the fleet's servers")
	f.DurationVar(&o.outage, "fleet-outage", 0, "how long players may join while the fleet's state cannot be reached")
	f.StringToStringVar(&o.labels, "label", nil, "label of this server, NAME=VALUE, in the fleet and in metrics; may be repeated")
}

func (o *fleetOptions) check() error {
	u, err := url.Parse(o.url)
	switch {
	case o.url == "" && (o.name != "" || o.secret != "" || o.outage != 0):
		return errors.New("--fleet-name, --fleet-secret, --fleet-outage: they need --fleet")
	case o.url == "":
		return nil
	case err != nil: // err contains the password, if there is one
		return errors.New("--fleet: want a URL such as http://127.0.0.1:8080/fleet/")
	case u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("--fleet %q: want a URL such as http://127.0.0.1:8080/fleet/", u.Redacted())
	case o.outage < 0:
		return fmt.Errorf("--fleet-outage %v: want 0s or more", o.outage)
	}
	if err := fleet.CheckName(o.name); err != nil {
		return fmt.Errorf("--fleet-name: %w", err)
	}
	return nil
}

// checkLabels returns an error unless the labels are valid labels of Prometheus.
func (o *fleetOptions) checkLabels() error {
	for name := range o.labels {
		if name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" || name[0] <= '9' {
			return fmt.Errorf("--label %s: want a name of small letters, digits and underscores", name)
		}
	}
	return nil
}

// config returns the configuration of the server's fleet, nil for none.
func (o *fleetOptions) config(log *slog.Logger) (*fleet.Config, error) {
	if o.url == "" {
		return nil, nil
	}
	secret, err := readSecret("fleet-secret", o.secret, log)
	if err != nil {
		return nil, err
	}
	return &fleet.Config{Store: httpstore.New(o.url, secret, nil), Name: o.name, Outage: o.outage, Labels: o.labels}, nil
}
