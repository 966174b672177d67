package client_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/endpoint"
	"github.com/uplink-rpc/uplink/internal/message"
	"github.com/uplink-rpc/uplink/internal/streams"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/token"
	"github.com/uplink-rpc/uplink/transport"
)

// bulkOwner is the owner of the streams of a rogue server.
type bulkOwner struct{ conn *endpoint.Conn }

func (o bulkOwner) Wake()                                            { o.conn.WakeBulk() }
func (bulkOwner) Accept(*streams.Reader) bool                        { return false }
func (bulkOwner) AcceptReserved(*streams.Reader) func([]byte, error) { return nil }
func (bulkOwner) Count(int, int)                                     {}

// TestForgedHandover hands a client over with data, a notice and a token that do not belong
// together. Nobody joins with other data, and both ends learn why. If the client notices, it stays.
func TestForgedHandover(t *testing.T) {
	const second = "127.0.0.1:7999"
	state := []byte("state")
	for name, c := range map[string]struct {
		data     []byte // that is sent
		size     int    // of the notice
		promised []byte // by the token
		joins    bool
		err      error // of the client's event
		text     string
	}{
		"as promised":            {state, 5, state, true, nil, ""},
		"other data":             {[]byte("stats"), 5, state, false, transport.ErrHandover, "the payload is not that of the notice"},
		"less data":              {[]byte("stat"), 5, state, false, transport.ErrHandover, "the payload is not that of the notice"},
		"data without a notice":  {state, 0, state, false, transport.ErrHandover, "the payload is not that of the notice"},
		"another token":          {state, 5, []byte("stats"), false, transport.ErrProtocol, "the release or the data of the handover is not that of the token"},
		"a token without a hash": {state, 5, nil, false, transport.ErrUnhandled, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newHandoverServer(t, uplinktest.Addr)
				secret := message.NewSecret()
				var joined []string
				srv, err := ds.Listen(second, ds.Config{Network: p.network, Joined: func(p *ds.Player) { joined = append(joined, string(p.HandoverPayload())) }})
				uplinktest.Must(t, err)
				go func() { _ = srv.Serve(context.Background()) }()
				t.Cleanup(func() { uplinktest.Must(t, srv.Close()) })
				var events []client.Event
				conn := p.dial(client.Config{OnEvent: func(e client.Event) { events = append(events, e) }})
				at := netip.MustParseAddrPort(second)
				claims := token.Claims{ClientID: 7, Issued: time.Now(), Expires: time.Now().Add(time.Minute), Servers: []netip.AddrPort{at}}
				if c.promised != nil {
					claims.Handover = secret.Hash(c.promised)
				}
				tok, err := token.Issue(token.Development().Issuer(), claims)
				uplinktest.Must(t, err)
				var over error
				_, err = p.mux.Load().SendReserved(time.Now(), message.HandoverStream, c.data, func(err error) { over = err })
				uplinktest.Must(t, err)
				p.messages(message.AppendHandover(nil, &message.HandoverNotice{
					Stream: message.NoStream, Size: c.size, Hash: sha256.Sum256(state), Servers: claims.Servers, Token: tok,
				}))
				settle(time.Second)
				switched := len(p.received(message.Handover)) > 0
				if switched {
					p.messages(message.AppendRelease(nil, secret))
					settle(100 * ms)
				}
				if len(joined) > 1 || c.joins != slices.Equal(joined, []string{"state"}) && c.promised != nil || switched != slices.Contains([]error{nil, transport.ErrProtocol}, c.err) {
					t.Errorf("%q joined, switched: %v", joined, switched)
				}
				e := events[len(events)-1]
				switch {
				case c.joins:
					if conn.State() != client.Connected {
						t.Errorf("%v", events)
					}
				case switched:
					if e.State != client.Disconnected || !strings.Contains(e.Err.Error(), c.text) {
						t.Errorf("the last event is %+v", e)
					}
				case e.Handover != client.HandoverFailed || e.State != client.Connected || !errors.Is(e.Err, c.err) || !strings.Contains(e.Err.Error(), c.text):
					t.Errorf("the last event is %+v, want %v", e, c.err)
				case p.counts().sessions != 1 || !errors.Is(over, transport.ErrStreamAborted):
					t.Errorf("%d sessions; the server learns %v", p.counts().sessions, over)
				}
			})
		})
	}
}
