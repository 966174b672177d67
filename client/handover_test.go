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
	"github.com/uplink-rpc/uplink/internal/control"
	"github.com/uplink-rpc/uplink/internal/streams"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/session"
	"github.com/uplink-rpc/uplink/token"
	"github.com/uplink-rpc/uplink/transport"
)

// bulkOwner is the owner of the streams of a rogue server.
type bulkOwner struct{ conn *transport.Conn }

func (o bulkOwner) Wake()                                            { o.conn.WakeBulk() }
func (bulkOwner) Accept(*streams.Reader) bool                        { return false }
func (bulkOwner) AcceptReserved(*streams.Reader) func([]byte, error) { return nil }
func (bulkOwner) Count(int, int)                                     {}

// TestForgedHandover hands a client over with data, a notice and a token that do not belong
// together. The client stays, and both ends learn why.
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
		"other data":             {[]byte("stats"), 5, state, false, session.ErrHandover, "the payload is not that of the notice"},
		"less data":              {[]byte("stat"), 5, state, false, session.ErrHandover, "the payload is not that of the notice"},
		"data without a notice":  {state, 0, state, false, session.ErrHandover, "the payload is not that of the notice"},
		"another token":          {state, 5, []byte("stats"), false, session.ErrProtocol, "the data of the handover is not that of the token"},
		"a token without a hash": {state, 5, nil, false, session.ErrUnhandled, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mux *streams.Mux
				r := newRogue(t, func(c *transport.Conn) {
					mux = streams.New(bulkOwner{c})
					c.SetBulk(1<<20, mux.Next, func(b []byte, at time.Time) { _ = mux.Deliver(at, b) })
				})
				var joined []string
				srv, err := ds.Listen(second, ds.Config{Network: r.network, Joined: func(p *ds.Player) { joined = append(joined, string(p.HandoverPayload())) }})
				uplinktest.Must(t, err)
				go func() { _ = srv.Serve(context.Background()) }()
				t.Cleanup(func() { uplinktest.Must(t, srv.Close()) })
				var events []session.Event
				conn := r.dial(client.Config{OnEvent: func(e session.Event) { events = append(events, e) }})
				at := netip.MustParseAddrPort(second)
				claims := token.Claims{ClientID: 7, Issued: time.Now(), Expires: time.Now().Add(time.Minute), Servers: []netip.AddrPort{at}}
				if c.promised != nil {
					claims.Handover = sha256.Sum256(c.promised)
				}
				tok, err := token.Issue(token.Development().Issuer(), claims)
				uplinktest.Must(t, err)
				over := make(chan error, 1)
				_, err = mux.SendReserved(time.Now(), control.HandoverStream, c.data, func(err error) { over <- err })
				uplinktest.Must(t, err)
				r.messages(control.AppendHandover(nil, &control.HandoverNotice{
					Stream: control.NoStream, Size: c.size, Hash: sha256.Sum256(state), Servers: claims.Servers, Token: tok,
				}))
				settle(5 * time.Second)
				if c.joins {
					if !slices.Equal(joined, []string{"state"}) || conn.State() != session.Connected {
						t.Errorf("%q joined, %v", joined, events)
					}
					return
				}
				e := events[len(events)-1]
				if e.Handover != session.HandoverFailed || e.State != session.Connected || !errors.Is(e.Err, c.err) || !strings.Contains(e.Err.Error(), c.text) {
					t.Errorf("the last event is %+v, want %v", e, c.err)
				}
				if conn.State() != session.Connected || r.counts().sessions != 1 || len(joined) > 0 && c.promised != nil {
					t.Errorf("%v, %d sessions, %q joined", conn.State(), r.counts().sessions, joined)
				}
				if err := <-over; !errors.Is(err, session.ErrStreamAborted) {
					t.Errorf("the server learns %v", err)
				}
			})
		})
	}
}
