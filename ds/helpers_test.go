package ds_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/endpoint"
	"github.com/uplink-rpc/uplink/internal/message"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/internal/uplinktest/ignore"
	"github.com/uplink-rpc/uplink/transport"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

func TestMain(m *testing.M) { uplinktest.Main(m) }

const ms = time.Millisecond

// The arguments and streams of most tests.
type (
	move   = uplinktest.Move
	frame  = ds.Frame[move]
	stream = *client.Stream[move]
)

// bubble runs a subtest in virtual time.
func bubble(t *testing.T, name string, f func(*testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}

// settle waits in virtual time. Afterwards the test can read what other goroutines wrote.
func settle(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// wantErrors verifies the errors of functions by what each contains, and their prefix.
func wantErrors(t *testing.T, prefix string, errs map[string]error) {
	t.Helper()
	for want, err := range errs {
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), prefix) {
			t.Errorf("got %v, want an error that contains %q", err, want)
		}
	}
}

// thin returns the step by which a test goes through its cases: with -short it leaves out most of
// them. A step that is coprime to the numbers of combined parameters covers all values.
func thin(step int) int {
	if testing.Short() {
		return step
	}
	return 1
}

// measures skips a test with -short, if it measures what shorter tests run too.
func measures(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("it measures what other tests run too")
	}
}

// linkedBy returns a network whose links have a round-trip time and are otherwise as c.
func linkedBy(t testing.TB, rtt time.Duration, c simnet.Config) *uplinktest.Network {
	t.Helper()
	c.Delay = rtt / 2
	down := c
	down.Seed++
	return uplinktest.NewNetwork(t, c, down)
}

// perfect returns a network without delay and loss.
func perfect(t testing.TB) *uplinktest.Network {
	t.Helper()
	return linkedBy(t, 0, simnet.Config{})
}

// setup prepares a server.
type setup = func(*ds.Server) error

// serve starts a server after its setup.
func serve(t testing.TB, n transport.Network, cfg ds.Config, setups ...setup) *uplinktest.Server {
	t.Helper()
	return uplinktest.Serve(t, n, cfg, func(s *ds.Server) (err error) {
		for _, set := range setups {
			err = errors.Join(err, set(s))
		}
		return err
	})
}

// handles registers an RPC.
func handles[T any](rpc string, f func(*ds.Player, ds.Frame[T]), options ...ds.HandleOption) setup {
	return func(s *ds.Server) error { return ds.Handle(s, rpc, f, options...) }
}

// ignores registers an RPC whose frames no one needs.
func ignores(rpc string) setup { return handles(rpc, func(*ds.Player, frame) {}) }

// validates sets the validator of an RPC.
func validates(rpc string, f func(*ds.Player, frame) error) setup {
	return func(s *ds.Server) error { return ds.Validate(s, rpc, f) }
}

// join connects a client and binds an RPC.
func join(t testing.TB, n transport.Network, rpc string, cfg ...client.BindConfig) stream {
	t.Helper()
	return uplinktest.Bind(t, uplinktest.Dial(t, n, client.Config{}), rpc, cfg...)
}

var reliably = client.BindConfig{Reliable: true}

// send sends frame n.
func send(t testing.TB, s stream, salt, n uint64) {
	m := uplinktest.MoveAt(salt, n)
	if _, err := s.Send(&m); err != nil {
		t.Helper() // here, since it looks up its caller
		t.Fatal(err)
	}
}

// play sends frames first to first+n-1, none of which may be refused.
func play(t testing.TB, s stream, salt, first uint64, n int, hz time.Duration) {
	t.Helper()
	for i := range uint64(n) {
		send(t, s, salt, first+i)
		time.Sleep(time.Second / hz)
	}
}

// polling calls f, such as Poll, each period in the background until the returned function is
// called.
func polling(t testing.TB, every time.Duration, f func()) (end func()) {
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-stop:
				return
			case <-time.After(every):
				f()
			}
		}
	}()
	end = sync.OnceFunc(func() { close(stop); <-ended })
	t.Cleanup(end) // also after a failure: a bubble must not end before its goroutines
	return end
}

// numberedMessage returns message n: its number, and more bytes for some.
func numberedMessage(n uint32) []byte {
	b := binary.LittleEndian.AppendUint32(nil, n)
	return append(b, bytes.Repeat([]byte{byte(n)}, int(n*n%700))...)
}

// letters verifies that messages arrive in order and without gaps.
type letters struct {
	t    *testing.T
	mu   sync.Mutex
	next uint32
}

func (l *letters) take(b []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !bytes.Equal(b, numberedMessage(l.next)) {
		l.t.Errorf("message %d is %d bytes: %.4x", l.next, len(b), b)
	}
	l.next++
}

func (l *letters) count() uint32 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.next
}

// raw is a client that sends any messages within a valid session.
type raw struct {
	*endpoint.Conn
	ignore.Handler
	t       *testing.T
	wait    time.Duration // until an answer has arrived
	answers []message.BindAnswer
	acks    []rpcdelta.Ack
	leaves  int   // requests to leave
	closed  error // the end of the session
}

func dialRaw(t *testing.T, n transport.Network) *raw {
	t.Helper()
	return dialRawAt(t, uplinktest.Addr, endpoint.Config{Network: n}, time.Millisecond)
}

// dialRawAt dials an address, over links with a round-trip time below wait.
func dialRawAt(t *testing.T, addr string, cfg endpoint.Config, wait time.Duration) *raw {
	t.Helper()
	r := &raw{t: t, wait: wait}
	conn, err := endpoint.Dial(t.Context(), addr, cfg, r)
	uplinktest.Must(t, err)
	r.Conn = conn
	t.Cleanup(func() { uplinktest.Must(t, conn.Close()) })
	return r
}

func (r *raw) Closed(_ *endpoint.Conn, err error) { r.closed = err }

func (r *raw) Datagram(_ *endpoint.Conn, b []byte, _ time.Time) {
	kind, body, err := message.Split(b)
	switch {
	case err != nil || kind == message.Frame || kind == message.Bind:
		r.t.Errorf("the server sent %x: %v", b, err)
	case kind == message.Leaving:
		r.leaves++
	case kind == message.Bound:
		a, err := message.ParseBindAnswer(body)
		if err != nil {
			r.t.Error(err)
		}
		r.answers = append(r.answers, a)
	case kind == message.Acks:
		for len(body) > 0 {
			a, rest, err := rpcdelta.ParseAck(body)
			if err != nil {
				r.t.Error(err)
				return
			}
			r.acks, body = append(r.acks, a), rest
		}
	}
}

// say sends a message and waits until it has arrived.
func (r *raw) say(b []byte) {
	r.t.Helper()
	uplinktest.Must(r.t, r.Send(b))
	settle(r.wait)
}

// sayReliably sends a message over the reliable channel until the session ends, at most count
// times, and verifies that it ends for a reason.
func (r *raw) sayReliably(b []byte, count int, every time.Duration, reason string) (sent int) {
	r.t.Helper()
	for sent < count && r.SendReliable(b) == nil {
		sent++
		settle(every)
	}
	settle(100 * ms)
	if err := r.Send([]byte{0}); !errors.Is(err, transport.ErrProtocol) && !errors.Is(err, transport.ErrLimit) || !strings.Contains(fmt.Sprint(err), reason) {
		r.t.Errorf("after %d messages: %v, want %q", sent, err, reason)
	}
	return sent
}

// request returns a valid request to bind an RPC.
func request(number int, s *schema.Schema, reliable bool) message.BindRequest {
	return message.BindRequest{
		RPC: uint8(number), Name: s.RPC(), Fingerprint: s.Fingerprint(), Fields: message.FieldHashes(s),
		RateHz: 60, Ring: rpcdelta.DefaultRing, Codec: rpcdelta.DefaultCodec.String(), Reliable: reliable,
		PerTick: s.PerTick(),
	}
}

// bind sends a request and returns the answer.
func (r *raw) bind(req message.BindRequest) message.BindAnswer {
	r.t.Helper()
	b, err := req.Append(nil)
	uplinktest.Must(r.t, err)
	before := len(r.answers)
	r.say(b)
	if len(r.answers) != before+1 {
		r.t.Fatalf("%d answers", len(r.answers)-before)
	}
	return r.answers[before]
}

// mustBind sends a request that the server must grant.
func (r *raw) mustBind(req message.BindRequest) {
	r.t.Helper()
	if a := r.bind(req); a.Reason != message.ReasonNone {
		r.t.Fatalf("%+v", a)
	}
}

func buttonsSchema(t *testing.T) *schema.Schema {
	t.Helper()
	s, err := schema.New("Buttons", 60, []schema.Field{{Name: "Buttons", Kind: schema.KindBits, Width: 16}})
	uplinktest.Must(t, err)
	return s
}

// besides runs attack against a server of the RPCs Move and Buttons while an honest player calls
// Move. The player must not notice.
func besides(t *testing.T, cfg ds.Config, attack func(*testing.T, *uplinktest.Server, *raw, *schema.Schema)) {
	synctest.Test(t, func(t *testing.T) {
		network := perfect(t)
		journal, buttons := uplinktest.NewJournal(t, 1), buttonsSchema(t)
		srv := serve(t, network, cfg, handles("Move", journal.Handle), func(s *ds.Server) error {
			return ds.HandleSchema(s, buttons, func(*ds.Player, ds.Frame[*schema.Frame]) {})
		})
		moves, sent := join(t, network, "Move"), uint64(0)
		stop := polling(t, time.Second/60, func() {
			m := uplinktest.MoveAt(1, sent)
			if _, err := moves.Send(&m); err != nil {
				t.Error(err)
			}
			sent++
		})
		attack(t, srv, dialRaw(t, network), buttons)
		settle(time.Second)
		stop()
		settle(time.Second)
		if l := journal.Only(); l.Frames() != sent || l.Missed != 0 {
			t.Errorf("%d of the honest player's %d frames were delivered", l.Frames(), sent)
		}
		if st := moves.Stats(); sent > 100 && st.Delta < sent*9/10 {
			t.Errorf("%d of the honest player's %d frames are deltas", st.Delta, sent)
		}
	})
}

// dropped returns the counts of messages that belong to no RPC.
func dropped(srv *uplinktest.Server) (malformed, unknown uint64) {
	st := srv.Stats()
	return st.Drops[ds.Malformed], st.Drops[ds.UnknownRPC]
}
