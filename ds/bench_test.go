package ds

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/internal/endpoint"
	"github.com/uplink-rpc/uplink/internal/message"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/streams"
	"github.com/uplink-rpc/uplink/internal/uplinktest/ignore"
	"github.com/uplink-rpc/uplink/transport"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// testCall is what the tests in here receive: fixed numbers and a byte string.
type testCall struct {
	Location schema.Vec3 `uplink:"resolution=0.1"`
	Buttons  uint16
	Payload  []byte `uplink:"max=16"`
}

// set sets the arguments of call n.
func (c *testCall) set(n uint64) {
	c.Location = schema.Vec3{X: float64(n % 10_000), Y: 1000 - float64(n%100)}
	c.Buttons = uint16(n / 30)
	c.Payload = c.Payload[:0]
	if n%10 < 3 {
		c.Payload = append(c.Payload, 1, byte(n), 3)
	}
}

// bench is a server without goroutines: tests pass messages to its players.
type bench struct {
	t   testing.TB
	srv *Server
	typ *schema.Type[testCall]
}

// newBench returns a server of the RPC Call.
func newBench(t testing.TB, cfg Config, f func(*Player, Frame[testCall]), options ...HandleOption) *bench {
	t.Helper()
	network, err := simnet.NewNetwork(simnet.Config{}, simnet.Config{})
	must(t, err)
	cfg.Network = network
	if cfg.Limits.RateSlack == 0 {
		cfg.Limits.RateSlack = maxRateSlack // no time passes
	}
	srv, err := Listen("127.0.0.1:7777", cfg)
	must(t, err)
	t.Cleanup(func() { must(t, srv.Close()) })
	must(t, Handle(srv, "Call", f, options...))
	typ, err := schema.Compile[testCall]("Call", 0)
	must(t, err)
	return &bench{t: t, srv: srv, typ: typ}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// closedConn returns a closed connection, for players that receive from the test.
var closedConn = sync.OnceValues(func() (*endpoint.Conn, error) {
	network, err := simnet.NewNetwork(simnet.Config{}, simnet.Config{})
	if err != nil {
		return nil, err
	}
	cfg := endpoint.Config{Network: network}
	l, err := endpoint.Listen("127.0.0.1:7777", cfg)
	if err != nil {
		return nil, err
	}
	served := make(chan error, 1)
	go func() { served <- l.Serve(context.Background(), ignore.Handler{}) }()
	conn, err := endpoint.Dial(context.Background(), "127.0.0.1:7777", cfg, ignore.Handler{})
	if err != nil {
		return nil, err
	}
	return conn, errors.Join(conn.Close(), l.Close(), <-served)
})

// sender is the client's end of one RPC of a player, without a network.
type sender struct {
	*bench
	player *Player
	enc    *rpcdelta.Encoder
	value  testCall
	frame  *schema.Frame
	buf    []byte
	next   uint64
}

// join adds a player that has bound the RPC under a number.
func (b *bench) join(number int) *sender {
	b.t.Helper()
	return b.joinShard(number, 0)
}

func (b *bench) joinShard(number, shard int) *sender {
	b.t.Helper()
	conn, err := closedConn()
	must(b.t, err)
	p := newPlayer(b.srv.shards[shard], conn)
	p.bulk = streams.New(nil)
	s := &sender{bench: b, player: p, frame: b.typ.Schema().NewFrame()}
	b.srv.queue.addPlayers(1)
	if a := b.srv.bind(s.player, b.request(number)); a.Reason != message.ReasonNone {
		b.t.Fatalf("not bound: %+v", a)
	}
	s.enc, err = rpcdelta.NewEncoder(b.typ.Schema(), rpcdelta.EncoderConfig{RPC: number})
	must(b.t, err)
	return s
}

// stats returns the counts of the server, published.
func (b *bench) stats() Stats {
	for _, h := range b.srv.shards {
		h.Handled()
	}
	return b.srv.Stats()
}

func (b *bench) request(number int) *message.BindRequest {
	s := b.typ.Schema()
	return &message.BindRequest{
		RPC: uint8(number), Name: s.RPC(), Fingerprint: s.Fingerprint(), Fields: message.FieldHashes(s),
		RateHz: s.RateHz(), Ring: rpcdelta.DefaultRing, Codec: rpcdelta.DefaultCodec.String(), PerTick: s.PerTick(),
	}
}

// payload returns the payload of the next frame.
func (s *sender) payload() []byte {
	s.value.set(s.next)
	must(s.t, s.typ.Quantize(s.frame, &s.value))
	var err error
	s.buf, _, err = s.enc.AppendFrame(s.buf[:0], s.frame)
	must(s.t, err)
	s.next++
	return s.buf
}

// call passes the payload of the next call to the player.
func (s *sender) call() { s.player.receive(s.payload(), time.Time{}, false) }

// ack passes the due acks to the encoder.
func (s *sender) ack(buf []byte) []byte {
	buf = s.player.bindings.appendAcks(buf[:0], transport.MaxPayload, time.Time{})
	for rest := buf[1:]; len(rest) > 0; {
		var a rpcdelta.Ack
		var err error
		a, rest, err = rpcdelta.ParseAck(rest)
		must(s.t, err)
		must(s.t, s.enc.Ack(a))
	}
	return buf
}
