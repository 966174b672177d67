package message_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/internal/message"
	"github.com/uplink-rpc/uplink/internal/replication"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/rpcdelta/inspect"
	"github.com/uplink-rpc/uplink/internal/rpcdelta/prior"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/seq"
	"github.com/uplink-rpc/uplink/internal/uplinktest/check"
	"github.com/uplink-rpc/uplink/internal/uplinktest/repo"
	"github.com/uplink-rpc/uplink/internal/uplinktest/vectors"
	"github.com/uplink-rpc/uplink/token"
)

// TestVectors writes or compares messages.json, with the messages of all packages.
func TestVectors(t *testing.T) {
	schemas, compiled := schemaVectors(t)
	requests := requestVectors(t, compiled)
	vectors.Check(
		t, "testdata/vectors/messages.json",
		vectors.Section{Name: "schemas", Value: schemas},
		vectors.Section{Name: "bind_requests", Value: requests},
		vectors.Section{Name: "bind_answers", Value: answerVectors(t)},
		vectors.Section{Name: "handovers", Value: handoverVectors(t)},
		vectors.Section{Name: "messages", Value: messageVectors(t, requests[0].Bytes)},
		vectors.Section{Name: "malformed", Value: malformedVectors(t)},
		vectors.Section{Name: "rpc_numbers", Value: numberVectors(t)},
		vectors.Section{Name: "streams", Value: streamVectors(t)},
	)
}

type hexBytes []byte

func (b hexBytes) MarshalText() ([]byte, error) { return []byte(hex.EncodeToString(b)), nil }

// schemaVector is a schema file with what follows from it.
type schemaVector struct {
	Schema       json.RawMessage `json:"schema"`
	Descriptions []string        `json:"descriptions"`
	Fingerprint  string          `json:"fingerprint"`
	FieldHashes  []uint16        `json:"field_hashes"`
	Factors      []int64         `json:"velocity_factors"`
}

// schemaFiles are schemas of every kind, with numbers in every form of a description.
var schemaFiles = []string{
	`{"rpc":"ServerMove","rate_hz":60,"fields":[{"name":"Location","kind":"vec3","resolution":0.1,"velocity":"Velocity"},{"name":"Velocity","kind":"vec3","resolution":0.1},{"name":"View","kind":"angle","count":3},{"name":"Buttons","kind":"bits","width":16}]}`,
	`{"rpc":"ServerDrive","rate_hz":30,"fields":[{"name":"Facing","kind":"quat","bits":15,"velocity":"Spin","velocity_scale":0.5},{"name":"Spin","kind":"vec3","resolution":0.0078125},{"name":"Throttle","kind":"scalar","resolution":0.3333333333333333,"min":-1,"max":1},{"name":"Odometer","kind":"scalar","resolution":123456,"min":-2000000,"max":12345675000},{"name":"Fine","kind":"vec2","count":2,"resolution":0.00001}]}`,
	`{"rpc":"Everything","rate_hz":0,"fields":[{"name":"Up","kind":"unitvec"},{"name":"Count","kind":"uint","width":40},{"name":"Offset","kind":"int","width":12,"count":2},{"name":"Flags","kind":"bool","count":5},{"name":"Id","kind":"fixed","size":16},{"name":"Text","kind":"bytes","max":100},{"name":"Urgent","kind":"bits","width":8,"urgent":true}]}`,
}

func schemaVectors(t *testing.T) (all []schemaVector, compiled []*schema.Schema) {
	for _, file := range schemaFiles {
		s := check.Value(schema.Parse([]byte(file)))(t)
		v := schemaVector{Schema: json.RawMessage(file), Fingerprint: fmt.Sprintf("%016x", s.Fingerprint()), FieldHashes: message.FieldHashes(s), Factors: s.PerTick()}
		for _, f := range s.Fields() {
			v.Descriptions = append(v.Descriptions, f.String())
		}
		all, compiled = append(all, v), append(compiled, s)
	}
	return all, compiled
}

type named[T any] struct {
	Name  string   `json:"name"`
	Value T        `json:"value"`
	Bytes hexBytes `json:"bytes"`
}

func requestVectors(t *testing.T, schemas []*schema.Schema) (all []named[message.BindRequest]) {
	of := func(s *schema.Schema, rpc uint8) message.BindRequest {
		return message.BindRequest{
			RPC: rpc, Name: s.RPC(), Fingerprint: s.Fingerprint(), Fields: message.FieldHashes(s), RateHz: s.RateHz(), Ring: 64,
			Codec: "adaptive", Frames: 1, Prior: prior.Generic().Hash(), PerTick: s.PerTick(),
		}
	}
	move, drive, every := of(schemas[0], 0), of(schemas[1], 11), of(schemas[2], 255)
	move.Codec, move.Prior = "rle", 0
	drive.Ring, drive.Frames, drive.Batch, drive.Deadline = 256, 3, 2, 12
	every.Reliable, every.Ring, every.Frames = true, 0, 0
	for _, i := range []int{1, 6} {
		every.Described = append(every.Described, message.Described{Field: i, Description: schemas[2].Fields()[i].String()})
	}
	server := of(schemas[2], 0)
	server.Fields = nil
	for i, f := range schemas[2].Fields() {
		server.Described = append(server.Described, message.Described{Field: i, Description: f.String()})
	}
	add := func(name string, r message.BindRequest) {
		b := check.Value(r.Append(nil))(t)
		if got, err := message.ParseBindRequest(b[1:]); err != nil || !reflect.DeepEqual(got, r) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		all = append(all, named[message.BindRequest]{name, r, b})
	}
	add("rle", move)
	add("adaptive, with delay and repetition", drive)
	add("reliable, with two fields described", every)
	add("of a server", server)
	return all
}

func answerVectors(t *testing.T) (all []named[message.BindAnswer]) {
	generic := prior.Generic().Hash()
	for _, a := range []message.BindAnswer{
		{RPC: 0, Ring: 64},
		{RPC: 11, Ring: 256, Prior: generic},
		{RPC: 255, Reason: message.ReasonUnknown, Known: []string{"ServerMove", "ServerDrive"}},
		{RPC: 1, Ring: 64, Reason: message.ReasonSchema, Field: 2, Theirs: "Throttle vec2 resolution=0.1"},
		{RPC: 1, Ring: 64, Reason: message.ReasonCodec, Known: message.Codecs()},
		{RPC: 1, Ring: 64, Reason: message.ReasonNumber},
		{RPC: 1, Ring: 64, Reason: message.ReasonInvalid},
		{RPC: 1, Ring: 64, Reason: message.ReasonRate, LimitHz: 250},
		{RPC: 1, Ring: 64, Reason: message.ReasonFixedRate, LimitHz: 66.67},
		{RPC: 1, Ring: 64, Reason: message.ReasonReliable},
		{RPC: 255, Reason: message.ReasonDescribe, Ask: []int{1, 6}},
		{RPC: 3, Ring: 64, Prior: generic, Asking: []string{"Loc", "Boost"}, Answering: []string{"Location"}},
		{RPC: 2, Reason: message.ReasonSchema, Theirs: "no field in common", Answering: []string{"Location"}},
	} {
		b := check.Value(a.Append(nil))(t)
		if got, err := message.ParseBindAnswer(b[1:]); err != nil || !reflect.DeepEqual(got, a) {
			t.Errorf("%+v, %v, want %+v", got, err, a)
		}
		all = append(all, named[message.BindAnswer]{a.Reason.String(), a, b})
	}
	return all
}

// handoverValue has the members of a handover.
type handoverValue struct {
	Stream  uint8            `json:"stream"`
	Tick    uint64           `json:"tick"`
	Size    int              `json:"size"`
	Hash    hexBytes         `json:"hash"`
	Servers []netip.AddrPort `json:"servers"`
	Token   string           `json:"token"`
}

func handoverVectors(t *testing.T) (all []named[handoverValue]) {
	tokens := tokensByName(t)
	data := []byte("uplink handover")
	servers := []netip.AddrPort{netip.MustParseAddrPort("203.0.113.7:7777"), netip.MustParseAddrPort("[2001:db8::7]:7778")}
	for name, h := range []message.HandoverNotice{
		{Stream: message.NoStream, Servers: servers[:1], Token: tokens["one server"]},
		{Stream: 3, Tick: 1<<53 - 1, Size: len(data), Hash: sha256.Sum256(data), Servers: servers, Token: tokens["handover"]},
	} {
		b := message.AppendHandover(nil, &h)
		if got, err := message.ParseHandover(b[1:]); err != nil || !reflect.DeepEqual(got, h) {
			t.Errorf("%+v, %v, want %+v", got, err, h)
		}
		v := handoverValue{h.Stream, h.Tick, h.Size, hexBytes{}, h.Servers, h.Token.String()}
		if h.Size > 0 {
			v.Hash = h.Hash[:]
		}
		all = append(all, named[handoverValue]{[]string{"without data", "with data, from a tick on"}[name], v, b})
	}
	return all
}

func tokensByName(t *testing.T) map[string]token.Token {
	t.Helper()
	var file struct {
		Tokens []struct {
			Name  string
			Token token.Token
		}
	}
	check.Must(t, json.Unmarshal(check.Value(os.ReadFile(filepath.Join(repo.Root(t), "testdata/vectors/tokens.json")))(t), &file))
	all := map[string]token.Token{}
	for _, v := range file.Tokens {
		all[v.Name] = v.Token
	}
	return all
}

type messageVector struct {
	Type     string   `json:"type"`
	Name     string   `json:"name"`
	From     string   `json:"from"`
	Reliable bool     `json:"reliable"`
	Bytes    hexBytes `json:"bytes"`
}

// messageVectors returns messages of each type but 0xc2, 0xc3 and the notice of a handover, which
// have vectors of their own, and payloads.
func messageVectors(t *testing.T, request []byte) (all []messageVector) {
	add := func(name, from string, reliable bool, b []byte) {
		if _, _, err := message.Split(b); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		all = append(all, messageVector{fmt.Sprintf("%02x", b[0]), name, from, reliable, b})
	}
	ack := seq.Ack{Newest: 700, Len: 3, Window: 7}
	acks := ack.Append(nil)
	slack := message.AppendSlack(nil, 1)
	slack = (&message.Buffered{RPC: 3, Slack: -1500 * time.Microsecond, Target: 4 * time.Millisecond, Rate: 0.95, Missing: 2, Late: 1}).Append(slack)
	whole := []byte{byte(message.Down) | 2, 1, 2, 3}
	add("acks", "both", false, append([]byte{byte(message.Acks)}, acks...))
	add("message of the game", "both", true, message.AppendMessage(nil, []byte("hello")))
	add("shutdown", "server", false, []byte{byte(message.Leaving)})
	offer := replication.Offer{Number: 2, Name: "world", Codec: replication.SnapshotCodec, Fields: []string{"Place vec3 resolution=0.1"}, RateHz: 20, TickHz: 60, Processed: true}
	add("offer", "server", true, check.Value(offer.Append(nil))(t))
	for a := replication.Answer(0); a <= 2; a++ {
		add(fmt.Sprintf("answer %d to an offer", a), "client", true, replication.AppendReply(nil, 2, a))
	}
	differ := message.BindAnswer{Asking: []string{"Height", "goals/"}}
	add("answer 2 to an offer, with what only the server has", "client", true, check.Value(replication.AppendExplained(nil, 2, replication.Ready, &differ))(t))
	refused := message.BindAnswer{Reason: message.ReasonSchema, Theirs: "Place vec2 resolution=0.1"}
	add("answer 0 to an offer, with a reason", "client", true, check.Value(replication.AppendExplained(nil, 2, replication.Refused, &refused))(t))
	unknown := message.BindAnswer{Reason: message.ReasonUnknown, Theirs: "wrold"}
	add("a world that was not offered", "client", true, check.Value(replication.AppendExplained(nil, replication.NoOffer, replication.Refused, &unknown))(t))
	add("piece of an initial state", "server", true, []byte{byte(message.Piece), 2, 9, 9, 9})
	add("end of a replication stream", "server", true, []byte{byte(message.Stop), 2})
	downAck := append([]byte{byte(message.DownAck), 2}, acks...)
	add("ack of a replication stream", "client", false, downAck)
	add("ack of a replication stream, and a payload", "client", false, append(append([]byte(nil), downAck...), 0x80, 7, 0, 0, 0))
	add("report on a jitter buffer, and an ack", "server", false, append(append([]byte(nil), slack...), acks...))
	add("acks and a message of a replication stream", "server", false, append(append([]byte{byte(message.WithAcks), byte(len(acks))}, acks...), whole...))
	add("report, ack and a message of a replication stream", "server", false, append(append(append([]byte{byte(message.WithSlack), byte(len(slack) - 1 + len(acks))}, slack[1:]...), acks...), whole...))
	add("message of the game for tick 300", "server", true, append([]byte{byte(message.GameMessage), 2, 0xac, 0x02}, "goal"...))
	for k, from := range []string{"client", "client", "server", "server", "server"} {
		kind, body := message.RequestKind(k), []byte("body")
		if kind == message.Cancel || kind == message.Unhandled {
			body = nil
		}
		add("request: "+kind.String(), from, true, message.AppendRequest(nil, kind, 0x01020304, body))
	}
	add("fragment of a message of a replication stream", "server", false, []byte{byte(message.DownFragment) | 2, 5, 0, 1, 2, 9, 9})
	add("message of a replication stream", "server", false, whole)
	bundler := message.NewBundler(1173)
	for _, payload := range [][]byte{{0x80, 0, 0, 0, 0}, {0x80, 1, 0, 0, 0, 1}} {
		bundler.Add(payload)
	}
	var secret message.Secret
	for i := range secret {
		secret[i] = byte(i)
	}
	add("handover: the client has switched", "client", true, message.AppendSwitch(nil))
	add("handover: the server has released the player, and the client passes it on", "both", true, message.AppendRelease(nil, secret))
	add("bundle of two payloads", "client", false, append([]byte(nil), bundler.Take()...))
	add("request to bind, as in bind_requests", "client", false, request)
	return all
}

// malformedVectors returns messages that a receiver drops, or for which it ends the session.
func malformedVectors(t *testing.T) []named[string] {
	r := message.BindRequest{Name: "ServerMove"}
	request := check.Value(r.Append(nil))(t)
	after := bytes.Index(request, []byte("\xaaServerMove"))
	over := append([]byte{request[0], request[1], 0xcd, 0x01, 0x2c}, request[after:]...) // the number 300
	all := []named[string]{
		{"request to bind RPC 300", "bind", over},
		{"request to bind with a count above its size", "bind", []byte{byte(message.Bind), 0xdd, 0xff, 0xff, 0xff, 0xff}},
		{"acks that are longer than the message", "with acks", []byte{byte(message.WithAcks), 9, 1, 2}},
		{"reports on 25 jitter buffers", "slack", message.AppendSlack(nil, message.MaxBuffered+1)},
		{"request of an unknown kind", "request", []byte{byte(message.Request), 5, 0, 0, 0, 0}},
		{"cancel with a body", "request", []byte{byte(message.Request), 1, 0, 0, 0, 0, 1}},
		{"handover of a client with 31 bytes", "release", append([]byte{byte(message.Handover)}, make([]byte, 31)...)},
		{"handover without a server", "handover", []byte{byte(message.Handover), 255, 0, 0, 0, 0, 0, 0}},
	}
	for _, v := range all {
		var err error
		switch body := []byte(v.Bytes[1:]); v.Value {
		case "bind":
			_, err = message.ParseBindRequest(body)
		case "with acks":
			_, _, err = message.ParseWithAcks(body)
		case "slack":
			_, _, err = message.ParseSlack(nil, body)
		case "request":
			_, _, _, err = message.ParseRequest(body)
		case "release":
			_, _, err = message.ParseRelease(body)
		case "handover":
			_, err = message.ParseHandover(body)
		}
		if err == nil {
			t.Errorf("%s is accepted", v.Name)
		}
	}
	return all
}

// numberVector is the header of a payload of an RPC.
type numberVector struct {
	RPC      int      `json:"rpc"`
	Form     string   `json:"form"`
	Hash     bool     `json:"hash"`
	Distance int      `json:"distance"` // 0: no baseline
	Sequence int      `json:"sequence"` // its low bits
	Bits     int      `json:"header_bits"`
	Payload  hexBytes `json:"payload"`
}

// numberVectors returns payloads of RPCs with headers of each form: the first one has no baseline,
// the others refer to the frame before, which was acked. The third one has a hash.
func numberVectors(t *testing.T) (all []numberVector) {
	s := check.Value(schema.Parse([]byte(`{"rpc":"Press","rate_hz":2,"fields":[{"name":"Buttons","kind":"bits","width":8}]}`)))(t)
	for _, rpc := range []int{0, 1, 3, 4, 10, 11, 44, 255} {
		enc := check.Value(rpcdelta.NewEncoder(s, rpcdelta.EncoderConfig{Codec: rpcdelta.RLE, RPC: rpc}))(t)
		dec := check.Value(rpcdelta.NewDecoder(s, rpcdelta.DecoderConfig{Codec: rpcdelta.RLE, RPC: rpc}))(t)
		for i := range 3 {
			f := s.NewFrame()
			f.Ints[0] = int32(17 * i)
			payload, _, err := enc.AppendFrame(nil, f)
			check.Must(t, err)
			h := check.Value(inspect.ParseHeader(payload))(t)
			v := numberVector{RPC: h.RPC, Form: map[bool]string{false: "short", true: "long"}[h.Long], Hash: h.Checked, Distance: h.Distance, Sequence: int(h.Seq), Bits: h.Bits, Payload: payload}
			if h.RPC != rpc || (v.Distance == 0) != (i == 0) || v.Hash != (i == 2) {
				t.Errorf("RPC %d, payload %d: %+v", rpc, i, h)
			}
			all = append(all, v)
			check.Value(dec.Decode(payload))(t)
			a, _, err := rpcdelta.ParseAck(dec.AppendAck(nil))
			check.Must(t, err)
			check.Must(t, enc.Ack(a))
		}
	}
	return all
}
