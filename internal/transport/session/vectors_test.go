package session_test

import (
	"bytes"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/netip"
	"testing"

	"github.com/uplink-rpc/uplink/internal/transport/seal"
	"github.com/uplink-rpc/uplink/internal/transport/session"
	"github.com/uplink-rpc/uplink/internal/transport/wire"
	"github.com/uplink-rpc/uplink/internal/uplinktest/check"
	"github.com/uplink-rpc/uplink/internal/uplinktest/vectors"
	"github.com/uplink-rpc/uplink/token"
	"github.com/uplink-rpc/uplink/transport/relay"
)

// TestDatagramVectors writes or compares datagrams.json, and verifies that this implementation
// accepts and rejects its datagrams.
func TestDatagramVectors(t *testing.T) {
	keys, sealed := sealedVectors(t)
	facts, handshake := handshakeVectors(t)
	vectors.Check(
		t, "testdata/vectors/datagrams.json",
		vectors.Section{Name: "headers", Value: headerVectors(t)},
		vectors.Section{Name: "malformed_headers", Value: malformedVectors(t)},
		vectors.Section{Name: "numbers", Value: numberVectors()},
		vectors.Section{Name: "session", Value: facts},
		vectors.Section{Name: "handshakes", Value: handshake},
		vectors.Section{Name: "bodies", Value: bodyVectors()},
		vectors.Section{Name: "keys", Value: keys},
		vectors.Section{Name: "sealed", Value: sealed},
		vectors.Section{Name: "envelopes", Value: envelopeVectors(t)},
	)
}

type hexBytes []byte

func (b hexBytes) MarshalText() ([]byte, error) { return []byte(hex.EncodeToString(b)), nil }

// pattern returns n bytes from a start.
func pattern(n int, start byte) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = start + byte(i)
	}
	return b
}

const vectorID = 0x8877_6655_4433_2211

// vectorToken is the token of the development key in tokens.json.
const vectorToken = "uplink-token-1.Gqm0BY2EPy-U18GychT6cDEOO7TCr4UyrUhK6vPC23J7_" +
	"tuNoAEAAAK6prgLAAoNEBMWGRwfIiUoKy4xNDc6PUBDRklMT7Mph1-ZgH7Y9gOJNVd1Gvol9GlJ7g5W5gh2otVDGQeQVO_zU_qqx" +
	"TzJsk7HXtAiiY6wqaf9r0ArlJmvgz-Od2HlytO_5Jes8Eq9HA"

type headerVector struct {
	Form   string    `json:"form"`
	Kind   wire.Kind `json:"kind"`
	ID     string    `json:"connection_id,omitempty"`
	Number uint32    `json:"number_low"`
	Bytes  hexBytes  `json:"bytes"`
}

var forms = [...]string{wire.ShortForm: "short", wire.LongForm: "long", wire.DataForm: "data"}

// headerVectors returns a header of each kind in each form.
func headerVectors(t *testing.T) (all []headerVector) {
	headers := []wire.Header{{Kind: wire.DataKind, Report: true}}
	for kind := wire.DataKind; kind <= wire.PartKind; kind++ {
		headers = append(headers, wire.Header{Kind: kind}, wire.Header{Kind: kind, Long: true, ID: vectorID})
	}
	for _, h := range headers {
		h.Number = 0x5_1234
		v := headerVector{Kind: h.Kind}
		if h.Long {
			v.ID = fmt.Sprintf("%016x", h.ID)
		}
		h.Number &= 1<<h.NumberBits() - 1
		v.Form, v.Number, v.Bytes = forms[h.Form()], h.Number, wire.AppendHeader(nil, h)
		if got, err := wire.ParseHeader(v.Bytes); err != nil || got != h {
			t.Errorf("%x is %+v, %v", v.Bytes, got, err)
		}
		all = append(all, v)
	}
	return all
}

type namedBytes struct {
	Name  string   `json:"name"`
	Bytes hexBytes `json:"bytes"`
}

func malformedVectors(t *testing.T) []namedBytes {
	all := []namedBytes{
		{"empty", hexBytes{}},
		{"short header cut off", hexBytes{0x10, 0x34}},
		{"long header cut off", wire.AppendHeader(nil, wire.Header{Kind: wire.HeartbeatKind, Long: true, ID: vectorID})[:10]},
		{"data header cut off", hexBytes{0xc0}},
		{"unknown type of handshake datagrams", hexBytes{0x85, 0, 0}},
		{"record of a decrypted datagram", hexBytes{0xbe, 0, 0}},
	}
	for _, v := range all {
		_, err := wire.ParseHeader(v.Bytes)
		if _, bad := wire.ParseType(v.Bytes); err == nil || bad == nil {
			t.Errorf("%s: %x is accepted", v.Name, v.Bytes)
		}
	}
	return all
}

// numberVector is a packet number that is completed from its low bits. Next is the newest accepted
// number plus one; all numbers below it from Next-1,024 were accepted, except Next-2.
type numberVector struct {
	Next   uint64  `json:"next"`
	Bits   uint    `json:"bits"`
	Low    uint32  `json:"low"`
	Number *uint64 `json:"number"` // null: it is dropped
	Result string  `json:"result"`
}

func numberVectors() (all []numberVector) {
	for _, c := range []struct {
		next uint64
		bits uint
		low  uint32
	}{
		{0, 14, 0},
		{0, 14, 5},
		{0, 14, 8191},
		{0, 14, 8192},
		{0, 19, 262143},
		{0, 19, 262144},
		{100, 14, 100},
		{100, 14, 99},
		{100, 14, 98},
		{100, 14, 200},
		{100, 14, 8291},
		{100, 14, 8292},
		{5000, 14, 3976},
		{5000, 14, 3975},
		{5000, 14, 13191},
		{5000, 14, 13192},
		{16384, 14, 0},
		{16384, 14, 16383},
		{16384, 14, 16382},
		{20000, 14, 3615},
		{20000, 14, 3700},
		{20000, 14, 11807},
		{20000, 14, 11808},
		{1 << 20, 19, 0},
		{1 << 20, 19, 524286},
		{1 << 20, 19, 523264},
		{1 << 20, 19, 523263},
		{1 << 20, 19, 262143},
		{1 << 20, 19, 262144},
	} {
		var w seal.Window
		for n := c.next - min(c.next, seal.WindowSize); n < c.next; n++ {
			if n+2 != c.next {
				w.Mark(n)
			}
		}
		v := numberVector{Next: c.next, Bits: c.bits, Low: c.low}
		number, verdict := w.Check(c.low, c.bits)
		v.Result = [...]string{seal.New: "new", seal.Duplicate: "duplicate", seal.Late: "late, or below 0"}[verdict]
		if verdict != seal.Late {
			v.Number = &number
		}
		all = append(all, v)
	}
	return all
}

// sessionFacts are the keys of a handshake, and its result.
type sessionFacts struct {
	Token           string   `json:"token"`
	ClientEphemeral hexBytes `json:"client_ephemeral"`
	ServerEphemeral hexBytes `json:"server_ephemeral"`
	HelloPayload    hexBytes `json:"hello_payload"`
	WelcomePayload  hexBytes `json:"welcome_payload"`
	ID              string   `json:"connection_id"`
	Suite           uint8    `json:"suite"`
	ToServer        hexBytes `json:"to_server"`
	ToClient        hexBytes `json:"to_client"`
}

func handshakeVectors(t *testing.T) (facts sessionFacts, all []namedBytes) {
	key := token.Development()
	connect := check.Value(token.Parse(vectorToken))(t)
	facts = sessionFacts{Token: vectorToken, ClientEphemeral: pattern(32, 60), ServerEphemeral: pattern(32, 110), ID: fmt.Sprintf("%016x", uint64(vectorID)), Suite: uint8(seal.ChaCha20Poly1305)}
	nonce, cookie := uint64(0x0123456789abcdef), [wire.CookieSize]byte(pattern(wire.CookieSize, 1))
	add := func(name string, b []byte) { all = append(all, namedBytes{name, b}) }

	hello := wire.Hello{Version: wire.Version, Nonce: nonce, Key: connect.KeyID()}
	add("hello", wire.AppendHello(nil, hello))
	add("retry", wire.AppendRetry(nil, wire.Retry{Nonce: nonce, Cookie: cookie}))
	facts.HelloPayload = wire.AppendOffer(nil, wire.Offer{Suites: 1<<seal.AES128GCM | 1<<seal.ChaCha20Poly1305, Token: connect.Sealed()})
	i := seal.NewInitiator(bytes.NewReader(facts.ClientEphemeral), connect.ServerKey(), session.Prologue)
	hello.Cookie, hello.Message = cookie, check.Value(i.Hello(nil, facts.HelloPayload))(t)
	add("hello with a cookie", wire.AppendHello(nil, hello))

	r := seal.NewResponder(bytes.NewReader(facts.ServerEphemeral), seal.NewStaticKey(key.Private()), session.Prologue)
	offer := check.Value(wire.ParseOffer(check.Value(r.Hello(hello.Message))(t)))(t)
	if _, _, err := key.Open(offer.Token); err != nil {
		t.Error(err)
	}
	facts.WelcomePayload = wire.AppendGrant(nil, wire.Grant{ID: vectorID, Suite: facts.Suite})
	message, secrets, err := r.Welcome(nil, facts.WelcomePayload)
	check.Must(t, err)
	facts.ToServer, facts.ToClient = secrets.ToServer[:], secrets.ToClient[:]
	add("welcome", wire.AppendWelcome(nil, wire.Welcome{Nonce: nonce, Message: message}))

	hello.Route = []byte("eu-1")
	add("hello with a route id", wire.AppendHello(nil, hello))
	for reason := wire.RefuseVersion; reason <= wire.RefuseKey; reason++ {
		add(fmt.Sprintf("refuse, reason %d", reason), wire.AppendRefuse(nil, wire.Refuse{Nonce: nonce, Reason: reason}))
	}
	for _, h := range []wire.Header{{Number: 0x1234}, {Kind: wire.HeartbeatKind, Number: 0x5_1234}, {Kind: wire.DataKind, Long: true, ID: vectorID, Number: 0x5_1234}} {
		add("unknown, with a "+forms[h.Form()]+" header", wire.AppendUnknown(nil, wire.Unknown{Echo: h}))
	}
	return facts, all
}

type bodyVector struct {
	Kind   wire.Kind      `json:"kind"`
	Name   string         `json:"name"`
	Fields map[string]any `json:"fields"`
	Body   hexBytes       `json:"body"`
}

func bodyVectors() []bodyVector {
	type fields = map[string]any
	challenge := [wire.ChallengeSize]byte(pattern(wire.ChallengeSize, 1))
	return []bodyVector{
		{wire.DataKind, "report and a message, after a short header", fields{"newest": 65534, "arrived": 4660, "count": 43981}, append(wire.AppendReport(nil, wire.Report{Newest: 65534, Arrived: 4660, Count: 43981}), "message"...)},
		{wire.DataKind, "report alone, after a short header", fields{"newest": 0, "arrived": 65535, "count": 1}, wire.AppendReport(nil, wire.Report{Arrived: 65535, Count: 1})},
		{wire.HeartbeatKind, "the first heartbeat", fields{"ask": 1000, "echo": 0, "hold": 0, "answer": true}, wire.AppendHeartbeat(nil, wire.Heartbeat{Ask: 1000, Answer: true})},
		{wire.HeartbeatKind, "heartbeat", fields{"ask": uint32(0xfffffff0), "echo": 0x01020304, "hold": 0x050607, "answer": false}, wire.AppendHeartbeat(nil, wire.Heartbeat{Ask: 0xfffffff0, Echo: 0x01020304, Hold: 0x050607})},
		{wire.HeartbeatKind, "heartbeat after a datagram of 1,200 bytes", fields{"ask": 7, "echo": 8, "hold": 9, "answer": true, "largest": 82}, wire.AppendHeartbeat(nil, wire.Heartbeat{Ask: 7, Echo: 8, Hold: 9, Answer: true, Largest: wire.Excess(1200)})},
		{wire.CloseKind, "close", fields{"code": 1, "text": "bye"}, wire.AppendClose(nil, wire.Close{Code: wire.CloseShutdown, Text: []byte("bye")})},
		{wire.ChallengeKind, "challenge", fields{}, challenge[:]},
		{wire.ResponseKind, "response", fields{"generation": 255}, wire.AppendResponse(nil, wire.Response{Data: challenge, Generation: 255})},
		{wire.ProbeKind, "probe", fields{}, make([]byte, 5)},
		{wire.ProbeKind, "probe answer", fields{"size": 1472}, wire.AppendProbeAnswer(nil, 1472)},
		{wire.PartKind, "part of a payload", fields{"reliable": false, "count": 2, "index": 0, "offset": 0}, append(wire.AppendPart(nil, wire.Part{Count: 2}), "first"...)},
		{wire.PartKind, "part of segments", fields{"reliable": true, "count": 3, "index": 2, "offset": 1038}, append(wire.AppendPart(nil, wire.Part{Reliable: true, Count: 3, Index: 2, Offset: 1038}), "last"...)},
	}
}

type keyVector struct {
	Suite   seal.Suite `json:"suite"`
	Name    string     `json:"name"`
	SFrame  uint16     `json:"sframe"`
	Secret  hexBytes   `json:"secret"`
	Epoch   uint64     `json:"epoch"`
	BaseKey hexBytes   `json:"base_key"`
	Key     hexBytes   `json:"key"`
	Salt    hexBytes   `json:"salt"`
}

type sealedVector struct {
	Suite    seal.Suite `json:"suite"`
	Number   uint64     `json:"number"`
	Form     string     `json:"form"`
	Kind     wire.Kind  `json:"kind"`
	Header   hexBytes   `json:"header"`
	Nonce    hexBytes   `json:"nonce"`
	Body     hexBytes   `json:"body"`
	Datagram hexBytes   `json:"datagram"`
}

// suiteFacts are the number and the size of the key of each suite, by the specification.
var suiteFacts = map[seal.Suite]struct {
	sframe uint16
	size   int
}{
	seal.AES128GCM: {4, 16}, seal.AES128CTRHMAC8: {2, 48}, seal.ChaCha20Poly1305: {0xf001, 32}, seal.ChaCha20SipHash8: {0xf002, 32},
}

// keysOf derives the keys of an epoch step by step.
func keysOf(t *testing.T, suite seal.Suite, secret []byte, epoch uint64) keyVector {
	t.Helper()
	expand := func(secret []byte, info string, size int) []byte {
		return check.Value(hkdf.Expand(sha256.New, check.Value(hkdf.Extract(sha256.New, secret, nil))(t), info, size))(t)
	}
	base := secret
	for range epoch {
		base = expand(base, "SFrame 1.0 Ratchet", 32)
	}
	f := suiteFacts[suite]
	suffix := string(binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint64(nil, epoch), f.sframe))
	return keyVector{
		suite, suite.String(), f.sframe, secret, epoch, base,
		expand(base, "SFrame 1.0 Secret key "+suffix, f.size), expand(base, "SFrame 1.0 Secret salt "+suffix, 12),
	}
}

// sealedVectors returns keys and datagrams of each suite, across two changes of the epoch, which a
// receiver opens in this order.
func sealedVectors(t *testing.T) (keys []keyVector, sealed []sealedVector) {
	headers := []wire.Header{{Kind: wire.HeartbeatKind, Long: true, ID: vectorID}, {Kind: wire.DataKind}, {Kind: wire.ReliableKind}, {Kind: wire.DataKind, Long: true, ID: vectorID}}
	for suite := seal.None; suite.Valid(); suite++ {
		secret := [32]byte(pattern(32, byte(100+suite)))
		if suite != seal.None {
			for epoch := range uint64(3) {
				keys = append(keys, keysOf(t, suite, secret[:], epoch))
			}
		}
		sealer, opener := seal.NewSealer(suite, secret), seal.NewOpener(suite, secret)
		for i, number := range []uint64{0, 1, 0xf_ffff, 0x10_0000, 0x10_0001, 0x1f_ffff, 0x20_0000, 0x20_0401} {
			h := headers[i%len(headers)]
			h.Number = uint32(number) & (1<<h.NumberBits() - 1)
			header, body := wire.AppendHeader(nil, h), pattern(3+9*i, byte(number))
			v := sealedVector{Suite: suite, Number: number, Form: forms[h.Form()], Kind: h.Kind, Header: header, Body: body}
			v.Datagram = sealer.Seal(bytes.Clone(header), header, body, number)
			if suite != seal.None {
				v.Nonce = bytes.Clone(keys[len(keys)-3+int(number>>seal.EpochBits)].Salt)
				binary.BigEndian.PutUint64(v.Nonce[4:], binary.BigEndian.Uint64(v.Nonce[4:])^number)
			}
			if got, ok := opener.Open(nil, header, v.Datagram[len(header):], number); !ok || !bytes.Equal(got, body) {
				t.Errorf("%v, number %#x: %x, %v", suite, number, got, ok)
			}
			sealed = append(sealed, v)
		}
	}
	return keys, sealed
}

type envelopeVector struct {
	Key       hexBytes       `json:"key"`
	Direction uint8          `json:"direction"`
	Proxy     netip.AddrPort `json:"proxy"`
	Client    netip.AddrPort `json:"client"`
	Mark      uint64         `json:"mark"`
	Datagram  hexBytes       `json:"datagram"`
	Envelope  hexBytes       `json:"envelope"`
}

func envelopeVectors(t *testing.T) (all []envelopeVector) {
	key := [32]byte(pattern(32, 7))
	for _, addrs := range [][2]string{{"10.0.0.1:7000", "203.0.113.7:40000"}, {"[fd00::1]:7000", "[2001:db8::7]:40001"}} {
		for d := relay.ToServer; d <= relay.ToClient; d++ {
			e := relay.Envelope{Proxy: netip.MustParseAddrPort(addrs[0]), Client: netip.MustParseAddrPort(addrs[1]), Mark: 0x8877_6655, Datagram: pattern(20, 0xc0)}
			v := envelopeVector{Key: key[:], Direction: uint8(d), Proxy: e.Proxy, Client: e.Client, Mark: e.Mark, Datagram: e.Datagram}
			v.Envelope = relay.NewLink(key).Append(nil, d, e)
			if got, ok := relay.NewLink(key).Open(d, e.Proxy, v.Envelope); !ok || got.Client != e.Client || got.Mark != e.Mark || !bytes.Equal(got.Datagram, e.Datagram) {
				t.Errorf("%x is %+v, %v", v.Envelope, got, ok)
			}
			all = append(all, v)
		}
	}
	return all
}
