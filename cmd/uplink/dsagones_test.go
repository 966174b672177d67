package main

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/uplink-rpc/uplink/internal/sample"
	"github.com/uplink-rpc/uplink/internal/trace"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/internal/uplinktest/sidecar"
)

// TestAgones runs a server under the SDK server of a test. Players join at the address that it
// assigns, and it learns of them, of the server's health and of its end.
func TestAgones(t *testing.T) {
	s := sidecar.New(t, "")
	at, err := url.Parse(s.URL)
	must(t, err)
	t.Setenv("AGONES_SDK_HTTP_PORT", at.Port())
	source := slice(t, sample.Portal2(), 600, nil)
	server := start(t, "ds", "--listen", "127.0.0.1:0", "--agones", "--max-players", "5", "--schema", trace.SchemaPath(source.Name))
	addr := server.await(&server.stderr, `msg=listening addr=(\S+)\n`)[1]
	host, port, _ := strings.Cut(addr, ":")
	s.Update(fmt.Sprintf(`{"object_meta":{"name":"ds-1"},"status":{"state":"Ready","address":%q,"ports":[{"name":"default","port":%s}]}}`, host, port))
	server.await(&server.stderr, `msg=ready addr=`+addr+` server=ds-1`)
	bots := start(t, "bots", "--players", "2", "--for", "1m", "--to", addr, source.Name)
	called(t, s, `PUT /metadata/label {"key":"players","value":"2"}`)
	called(t, s, `PUT /metadata/label {"key":"capacity","value":"5"}`)
	server.interrupt()
	if code := server.wait(); code != 0 {
		t.Errorf("code %d\n%s", code, server.stderr.String())
	}
	bots.interrupt()
	bots.wait()
	calls := s.Called()
	for _, want := range []string{"POST /ready {}", "POST /health {}", "POST /allocate {}"} {
		if !slices.Contains(calls, want) {
			t.Errorf("no %s", want)
		}
	}
	if last := calls[len(calls)-1]; last != "POST /shutdown {}" {
		t.Errorf("the last call is %s", last)
	}
}

// called waits for a request.
func called(t *testing.T, s *sidecar.Server, want string) {
	t.Helper()
	uplinktest.Await(t, want, func() bool { return slices.Contains(s.Called(), want) }, func() any { return s.Called() })
}

// TestAgonesAddress ends a server that gets no IP address from the SDK server.
func TestAgonesAddress(t *testing.T) {
	s := sidecar.New(t, "")
	at, err := url.Parse(s.URL)
	must(t, err)
	t.Setenv("AGONES_SDK_HTTP_PORT", at.Port())
	source := slice(t, sample.Portal2(), 600, nil)
	s.Update(strings.Replace(sidecar.Ready, "203.0.113.7", "node.example", 1))
	server := start(t, "ds", "--listen", "127.0.0.1:0", "--agones", "--schema", trace.SchemaPath(source.Name))
	if server.wait() == 0 || !strings.Contains(server.stderr.String(), `the address is "node.example"`) {
		t.Errorf("code %d\n%s", server.code, server.stderr.String())
	}
}
