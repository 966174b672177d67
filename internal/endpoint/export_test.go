package endpoint

import (
	"context"
	"net/netip"
	"testing"
)

// SetAddresses makes each name have these addresses until the test ends.
func SetAddresses(t testing.TB, ips ...netip.Addr) {
	before := lookupIP
	lookupIP = func(context.Context, string, string) ([]netip.Addr, error) { return ips, nil }
	t.Cleanup(func() { lookupIP = before })
}
