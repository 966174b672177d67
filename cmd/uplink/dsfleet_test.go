package main

import (
	"strings"
	"testing"
)

// TestFleetOptions checks flags of a server in a fleet: several URLs, wrong ones, and labels that
// metrics have.
func TestFleetOptions(t *testing.T) {
	for _, c := range []struct{ url, label, want string }{
		{"http://127.0.0.1:8080/fleet/", "map", ""},
		{"http://10.0.0.6:8081/, https://10.0.0.7:8081/", "map", ""},
		{"http://10.0.0.6:8081/,10.0.0.7", "map", `--fleet "10.0.0.7": want a URL`},
		{"http://10.0.0.6:8081/,", "map", `--fleet "": want a URL`},
		{"http://u:s3cr3t@10.0.0.6:port/", "map", "--fleet: want a URL"},
		{"http:///fleet", "map", "want a URL"},
		{"http://127.0.0.1/", "rpc", "--label rpc: metrics have a label of this name"},
		{"http://127.0.0.1/", "Map", "--label Map: want a name of small letters"},
	} {
		o := fleetOptions{url: c.url, name: "eu-1", labels: map[string]string{c.label: "x"}}
		err := o.check()
		if err == nil {
			err = o.checkLabels()
		}
		if (err == nil) != (c.want == "") || err != nil && (!strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "s3cr3t")) {
			t.Errorf("%s, %s: %v, want %q", c.url, c.label, err, c.want)
		}
	}
	if got := (&fleetOptions{name: "eu-1", labels: map[string]string{"map": "dust"}}).metricLabels(); len(got) != 2 || got["server"] != "eu-1" || got["map"] != "dust" {
		t.Error(got)
	}
}
