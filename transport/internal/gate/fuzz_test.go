package gate

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/token"
	"github.com/uplink-rpc/uplink/transport/internal/seal"
	"github.com/uplink-rpc/uplink/transport/internal/session"
	"github.com/uplink-rpc/uplink/transport/internal/wire"
)

var (
	start  = time.Unix(1_700_000_000, 0)
	server = netip.MustParseAddrPort("203.0.113.7:7000")
	client = netip.MustParseAddrPort("192.0.2.9:5000")
)

func newGate(key token.Key) *Gate {
	rate := PerSecond(1000, 1000)
	return New(Config{
		Key: key, Good: func(a netip.AddrPort) bool { return a == server }, Suites: []seal.Suite{seal.AES128GCM},
		Each: rate, All: rate, Started: start,
		Wall: func() time.Time { return start },
	})
}

// message makes a hello's, of any payload.
func message(tb testing.TB, key token.Key, payload []byte) []byte {
	tb.Helper()
	b, err := seal.NewInitiator(nil, key.Public(), session.Prologue).Hello(nil, payload)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func issue(tb testing.TB, key token.Key) token.Token {
	tb.Helper()
	t, err := token.Issue(key.Issuer(), token.Claims{ClientID: 1, Issued: start, Expires: start.Add(time.Minute), Servers: []netip.AddrPort{server}})
	if err != nil {
		tb.Fatal(err)
	}
	return t
}

// FuzzHello has a stranger say anything: as a hello, as a message of one, and as the payload of a good message.
func FuzzHello(f *testing.F) {
	key := token.Development()
	offer := wire.AppendOffer(nil, wire.Offer{Suites: 2, Token: issue(f, key).Sealed()})
	f.Add(offer)
	f.Add(offer[:1])
	f.Add(message(f, key, offer))
	f.Add(wire.AppendHello(nil, wire.Hello{Version: wire.Version, Nonce: 1}))
	f.Fuzz(func(t *testing.T, b []byte) {
		g := newGate(key)
		if h, err := wire.ParseHello(b); err == nil && NewCookies(start).Knows(start, client, h) {
			t.Fatal("a cookie was guessed")
		}
		messages := [][]byte{b}
		if len(b) <= session.MaxToken {
			messages = append(messages, message(t, key, b))
		}
		for _, m := range messages {
			guest, err := g.Read(start, wire.Hello{Message: m})
			if err != nil {
				if !errors.Is(err, ErrUnreadable) {
					t.Fatal(err)
				}
				continue
			}
			welcome, _, err := g.Answer(guest, 5)
			if err == nil && len(welcome) != wire.WelcomeSize {
				t.Fatalf("a welcome of %d bytes", len(welcome))
			}
		}
	})
}

// A refused guest's token can be used later: the server may have room then.
func TestRefusedTokenIsNotUsed(t *testing.T) {
	key := token.Development()
	g := newGate(key)
	offer := wire.AppendOffer(nil, wire.Offer{Suites: 2, Token: issue(t, key).Sealed()})
	for _, code := range []wire.Code{wire.ServerFull, wire.Granted} {
		guest, err := g.Read(start, wire.Hello{Message: message(t, key, offer)})
		if err != nil || guest.Code != wire.Granted {
			t.Fatalf("%+v, %v", guest, err)
		}
		guest.Code = code
		if _, _, err := g.Answer(guest, 5); err != nil {
			t.Fatal(err)
		}
	}
	if guest, err := g.Read(start, wire.Hello{Message: message(t, key, offer)}); err != nil || guest.Code != wire.TokenUsed {
		t.Errorf("%+v, %v", guest, err)
	}
}
