package admission

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/internal/ratelimit"
	"github.com/uplink-rpc/uplink/internal/transport/seal"
	"github.com/uplink-rpc/uplink/internal/transport/session"
	"github.com/uplink-rpc/uplink/internal/transport/wire"
	"github.com/uplink-rpc/uplink/internal/uplinktest/check"
	"github.com/uplink-rpc/uplink/internal/uplinktest/corpus"
	"github.com/uplink-rpc/uplink/token"
)

var (
	start  = time.Unix(1_700_000_000, 0)
	server = netip.MustParseAddrPort("203.0.113.7:7000")
	client = netip.MustParseAddrPort("192.0.2.9:5000")
)

func rate(perSecond, burst float64) ratelimit.Rate {
	return ratelimit.Rate{PerSecond: perSecond, Burst: burst}
}

// message returns the message of a hello with any payload.
func message(tb testing.TB, key token.Key, payload []byte) []byte {
	tb.Helper()
	b := check.Value(seal.NewInitiator(nil, key.Public(), session.Prologue).Hello(nil, payload))(tb)
	return b
}

func issue(tb testing.TB, key token.Key) token.Token {
	tb.Helper()
	t := check.Value(token.Issue(key.Issuer(), token.Claims{ClientID: 1, Issued: start, Expires: start.Add(time.Minute), Servers: []netip.AddrPort{server}}))(tb)
	return t
}

// FuzzHello receives any bytes as a hello, as the message of one, and as the payload of a valid
// message.
func FuzzHello(f *testing.F) {
	key := token.Development()
	offer := wire.AppendOffer(nil, wire.Offer{Suites: 2, Token: issue(f, key).Sealed()})
	seeds := [][]byte{
		offer, offer[:1], message(f, key, offer),
		wire.AppendHello(nil, wire.Hello{Version: wire.Version, Nonce: 1}),
	}
	x := corpus.Target{Parser: "handshake", Seeds: seeds, Inputs: 500, Check: func(t testing.TB, b []byte) {
		g := newClocked()
		if h, err := wire.ParseHello(b); err == nil && NewCookies(start).Valid(start, client, h) {
			t.Fatal("a cookie was guessed")
		}
		messages := [][]byte{b}
		if len(b) <= session.MaxToken {
			messages = append(messages, message(t, key, b))
		}
		for _, m := range messages {
			request, err := g.Read(start, wire.Hello{Key: key.ID(), Message: m})
			if err != nil {
				if !errors.Is(err, ErrUnreadable) {
					t.Fatal(err)
				}
				continue
			}
			welcome, _, err := g.Welcome(request, 5)
			if err == nil && len(welcome) != wire.WelcomeSize {
				t.Fatalf("a welcome of %d bytes", len(welcome))
			}
		}
	}}
	x.Run(f)
}

// TestRefusedTokenIsNotUsed: the token of a refused request can be used later.
func TestRefusedTokenIsNotUsed(t *testing.T) {
	key := token.Development()
	g := newClocked()
	offer := wire.AppendOffer(nil, wire.Offer{Suites: 2, Token: issue(t, key).Sealed()})
	for _, code := range []wire.Code{wire.ServerFull, wire.Granted} {
		request, err := g.Read(start, wire.Hello{Key: key.ID(), Message: message(t, key, offer)})
		if err != nil || request.Code != wire.Granted {
			t.Fatalf("%+v, %v", request, err)
		}
		request.Code = code
		if _, _, err := g.Welcome(request, 5); err != nil {
			t.Fatal(err)
		}
	}
	if request, err := g.Read(start, wire.Hello{Key: key.ID(), Message: message(t, key, offer)}); err != nil || request.Code != wire.TokenUsed {
		t.Errorf("%+v, %v", request, err)
	}
}
