package main

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"slices"
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
	f.StringVar(&o.url, "fleet", "", "URL of the fleet's state, such as http://127.0.0.1:8080/fleet/ of uplink backend, or several with the same state, separated by commas; empty: no fleet")
	f.StringVar(&o.name, "fleet-name", "", "unique name of this server in the fleet")
	f.StringVar(&o.secret, "fleet-secret", "", "file with the secret of the fleet's servers")
	f.DurationVar(&o.outage, "fleet-outage", 0, "how long players may join while the fleet's state cannot be reached")
	f.StringToStringVar(&o.labels, "label", nil, "label of this server, NAME=VALUE, in the fleet and in metrics; may be repeated")
}

func (o *fleetOptions) check() error {
	switch {
	case o.url == "" && (o.name != "" || o.secret != "" || o.outage != 0):
		return errors.New("--fleet-name, --fleet-secret, --fleet-outage: they need --fleet")
	case o.url == "":
		return nil
	case o.outage < 0:
		return fmt.Errorf("--fleet-outage %v: want 0s or more", o.outage)
	}
	if err := checkURLs("fleet", o.url); err != nil {
		return err
	}
	if err := fleet.CheckName(o.name); err != nil {
		return fmt.Errorf("--fleet-name: %w", err)
	}
	return nil
}

// checkURLs returns an error unless the value of a flag is a URL, or several, separated by commas.
func checkURLs(flag, urls string) error {
	for text := range strings.SplitSeq(urls, ",") {
		switch u, err := url.Parse(strings.TrimSpace(text)); {
		case err != nil: // err contains the password, if there is one
			return fmt.Errorf("--%s: want a URL such as http://127.0.0.1:8080/fleet/", flag)
		case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
			return fmt.Errorf("--%s %q: want a URL such as http://127.0.0.1:8080/fleet/", flag, u.Redacted())
		}
	}
	return nil
}

// taken are the labels of the metrics themselves, and those of Prometheus.
var taken = []string{
	"cause", "channel", "direction", "event", "file", "instance", "job", "kind", "le", "quantile", "reason", "result", "rpc", "server", "stage", "state", "version", "world",
}

// metricLabels returns the labels of all metrics: those of --label, and the name in the fleet.
func (o *fleetOptions) metricLabels() map[string]string {
	labels := map[string]string{}
	if o.name != "" {
		labels["server"] = o.name
	}
	maps.Copy(labels, o.labels)
	return labels
}

// checkLabels returns an error unless the labels are valid labels of Prometheus.
func (o *fleetOptions) checkLabels() error {
	for name := range o.labels {
		if name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" || name[0] <= '9' {
			return fmt.Errorf("--label %s: want a name of small letters, digits and underscores", name)
		}
		if slices.Contains(taken, name) {
			return fmt.Errorf("--label %s: metrics have a label of this name: choose another one", name)
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
