package conformance

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"github.com/uplink-rpc/uplink/cmd/uplink/internal/conformance/protocol"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/token"
	"github.com/uplink-rpc/uplink/transport"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// testSession plays sessions of each suite and codec, with one unreliable RPC and a reliable one.
func testSession(ctx context.Context, t *tester) error {
	for suite := transport.AES128GCM; suite.Valid(); suite++ {
		for _, codec := range []string{protocol.RLE, protocol.Adaptive} {
			t.where = fmt.Sprintf("%v, %s", suite, codec)
			if err := t.session(ctx, suite, codec); err != nil && !errors.Is(err, errGiveUp) {
				return err
			}
		}
	}
	return nil
}

// received is a frame as the server received it.
type received struct {
	rpc   int
	seq   uint64
	frame *schema.Frame
}

// sessionFrames is the number of calls of each RPC in a session. There are no pauses between the
// calls, so a larger number would exceed the server's limit.
const sessionFrames = 100

func (t *tester) session(ctx context.Context, suite transport.Suite, codec string) (err error) {
	schemas := [2]*schema.Schema{t.randomSchema(0), t.pick.Schema()}
	arrived := make(chan received, 4*sessionFrames)
	key, err := token.NewKey()
	if err != nil {
		return err
	}
	srv, err := t.listen(key, suite, schemas, arrived)
	if err != nil {
		return err
	}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(ctx) }()
	defer func() { err = errors.Join(err, srv.Close(), <-served) }()
	admission, err := token.Issue(key.Issuer(), token.Claims{ClientID: 7, Expires: time.Now().Add(time.Minute), Servers: []netip.AddrPort{srv.Addr()}})
	if err != nil {
		return err
	}
	h := t.handle()
	if _, err := t.must("connect", h, srv.Addr().String(), suite.String(), codec, admission.String()); err != nil {
		return err
	}
	sent, err := t.sends(h, schemas)
	if err != nil {
		return err
	}
	t.awaits(ctx, sent, arrived)
	_, err = t.must("close", h)
	return err
}

// listen starts a server behind a link with losses and damaged datagrams.
func (t *tester) listen(key token.Key, suite transport.Suite, schemas [2]*schema.Schema, arrived chan<- received) (*ds.Server, error) {
	link := simnet.Config{Delay: 15 * time.Millisecond, Loss: 0.1, Duplicate: 0.05, Seed: t.rng.Uint64()}
	lossy, err := simnet.WrapNetwork(nil, link, link)
	if err != nil {
		return nil, err
	}
	srv, err := ds.Listen("127.0.0.1:0", ds.Config{Key: key, Transport: ds.Transport{Suites: []transport.Suite{suite}}, Network: &hostileNetwork{Network: lossy, seed: t.rng.Uint64()}})
	if err != nil {
		return nil, err
	}
	for i, s := range schemas {
		err = errors.Join(err, ds.HandleSchema(srv, s, func(_ *ds.Player, f ds.Frame[*schema.Frame]) {
			copied := s.NewFrame()
			copied.CopyFrom(f.Value)
			arrived <- received{i, f.Seq, copied}
		}))
	}
	if err != nil {
		return nil, errors.Join(err, srv.Close())
	}
	return srv, nil
}

// sends binds the RPCs, the second one on the reliable channel, and calls them.
func (t *tester) sends(h string, schemas [2]*schema.Schema) (sent [2][]*schema.Frame, err error) {
	var rpcs [2]string
	var next [2]func() *schema.Frame
	for i, channel := range []string{"unreliable", "reliable"} {
		described, err := t.schema(schemas[i])
		if err != nil {
			return sent, err
		}
		if rpcs[i], err = t.must("bind", h, described, channel); err != nil {
			return sent, err
		}
		next[i] = t.motion(schemas[i])
	}
	for n := range sessionFrames {
		for i, rpc := range rpcs {
			f := next[i]()
			sent[i] = append(sent[i], f)
			seq, err := t.must("send", h, rpc, protocol.Frame(f))
			if err != nil {
				return sent, err
			}
			t.check(seq == strconv.Itoa(n), "sequence number %s, want %d", seq, n)
		}
	}
	return sent, nil
}

// awaits compares the frames that the server receives with the frames sent, until all reliable ones
// and half of the unreliable ones have arrived.
func (t *tester) awaits(ctx context.Context, sent [2][]*schema.Frame, arrived <-chan received) {
	var count [2]int
	deadline := time.NewTimer(Patience)
	defer deadline.Stop()
	for count[0] < sessionFrames/2 || count[1] < sessionFrames {
		select {
		case r := <-arrived:
			ok := r.seq < sessionFrames && r.frame.Equal(sent[r.rpc][r.seq]) && (r.rpc == 0 || r.seq == uint64(count[1]))
			t.check(ok, "RPC %d: frame %d arrives as %s", r.rpc, r.seq, protocol.Frame(r.frame))
			count[r.rpc]++
		case <-deadline.C:
			t.check(false, "within %v the server received %d of %d unreliable and %d of %d reliable calls", Patience, count[0], sessionFrames, count[1], sessionFrames)
			return
		case <-ctx.Done():
			return
		}
	}
}

// hostileNetwork sends damaged copies of some datagrams, before the datagrams themselves.
type hostileNetwork struct {
	transport.Network
	seed uint64
}

func (n *hostileNetwork) ListenPacket(addr string) (transport.PacketConn, error) {
	pc, err := n.Network.ListenPacket(addr)
	return &hostileConn{PacketConn: pc, rng: rand.New(rand.NewPCG(n.seed, 1))}, err
}

type hostileConn struct {
	transport.PacketConn

	mu  sync.Mutex
	rng *rand.Rand
}

// WriteTo implements transport.PacketConn.
func (c *hostileConn) WriteTo(p []byte, to netip.AddrPort) (int, error) {
	if b := c.damaged(p); b != nil {
		if _, err := c.PacketConn.WriteTo(b, to); err != nil {
			return 0, err
		}
	}
	return c.PacketConn.WriteTo(p, to)
}

// damaged returns a damaged copy of p in a fifth of the cases, and otherwise nil.
func (c *hostileConn) damaged(p []byte) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.rng.IntN(5) != 0 {
		return nil
	}
	t := tester{rng: c.rng}
	return t.damaged(p)
}
