package ds_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/schema"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/transport"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

const (
	bug        = "a bug in the game"
	bugReason  = "internal server error" // as the client gets it
	panicCalls = 100                     // of the honest player, in each RPC
)

// panicRow is a callback that panics once, for one of two players.
type panicRow struct {
	callback string
	poll     bool // it needs Config.Poll
	over     bool // the session is over already, or the callback is for no player
	nobody   bool // it is for no player
	floods   bool // the player has to send more than it may
}

var panicRows = []panicRow{
	{callback: "Joined"},
	{callback: "Left", over: true},
	{callback: "OnMessage"},
	{callback: "handler"},
	{callback: "reliable handler"},
	{callback: "schema handler"},
	{callback: "validator"},
	{callback: "buffered handler", poll: true},
	{callback: "repeated handler", poll: true},
	{callback: "Tap.Joined"},
	{callback: "Tap.Counted", over: true, nobody: true},
	{callback: "Tap.Resets", over: true, nobody: true},
	{callback: "PlayerTap.Carried, received"},
	{callback: "PlayerTap.Carried, sent"},
	{callback: "PlayerTap.Bound"},
	{callback: "PlayerTap.Decoded"},
	{callback: "PlayerTap.Dropped", floods: true},
	{callback: "PlayerTap.Withheld", floods: true},
	{callback: "PlayerTap.Left", over: true},
}

// TestPanics lets each callback of the game panic, or end its goroutine, for one player. That
// session ends, the panic is counted, logged and passed to PanicHandler, and all calls of the other
// player are delivered.
func TestPanics(t *testing.T) {
	for _, row := range panicRows {
		for _, poll := range []bool{false, true} {
			for _, exits := range []bool{false, true} {
				if row.poll && !poll {
					continue
				}
				bubble(t, fmt.Sprintf("%s/poll=%v/exits=%v", row.callback, poll, exits), func(t *testing.T) { newPanicScene(t, row, poll, exits).play() })
			}
		}
	}
}

// panicScene is a server whose callbacks all call at.
type panicScene struct {
	t     *testing.T
	row   panicRow
	poll  bool
	exits bool // by runtime.Goexit instead of a panic
	srv   *uplinktest.Server
	net   *uplinktest.Network
	log   bytes.Buffer

	mu       sync.Mutex
	culprit  *ds.Player // the first that joins
	panicked bool
	joined   int
	reported []string // by PanicHandler
	left     map[*ds.Player][]error
	got      map[string][]uint64 // frames of the other player, by RPC
}

func newPanicScene(t *testing.T, row panicRow, poll, exits bool) *panicScene {
	s := &panicScene{t: t, row: row, poll: poll, exits: exits, left: map[*ds.Player][]error{}, got: map[string][]uint64{}}
	s.net = uplinktest.NewNetwork(t, simnet.Config{Delay: 10 * ms, Seed: 70}, simnet.Config{Delay: 10 * ms, Seed: 71})
	records, err := schema.New("Schema", 60, []schema.Field{{Name: "N", Kind: schema.KindScalar, Resolution: 1}})
	uplinktest.Must(t, err)
	s.srv = uplinktest.Serve(t, s.net, ds.Config{
		Poll: poll, Tap: sceneTap{s}, Logger: slog.New(slog.NewTextHandler(&s.log, &slog.HandlerOptions{Level: slog.LevelError})),
		PanicHandler: s.report,
		Joined: func(p *ds.Player) {
			s.mu.Lock()
			s.joined++
			s.mu.Unlock()
			s.at("Joined", p)
		},
		Left: func(p *ds.Player, err error) {
			s.mu.Lock()
			s.left[p] = append(s.left[p], err)
			s.mu.Unlock()
			s.at("Left", p)
		},
		OnMessage: func(p *ds.Player, _ []byte) { s.at("OnMessage", p) },
	}, func(srv *ds.Server) error {
		errs := []error{
			ds.Handle(srv, "Move", s.handler("Move", "handler")),
			ds.Handle(srv, "Fire", s.handler("Fire", "reliable handler")),
			ds.Validate(srv, "Move", func(p *ds.Player, _ ds.Frame[uplinktest.Move]) error {
				s.at("validator", p)
				return nil
			}),
			ds.HandleSchema(srv, records, func(p *ds.Player, _ ds.Frame[*schema.Frame]) { s.at("schema handler", p) }),
		}
		if poll {
			errs = append(errs, ds.Handle(srv, "Buffered", s.handler("Buffered", "buffered handler")),
				srv.SetJitterBuffer("Buffered", &ds.JitterBuffer{Repeat: 5}))
		}
		return errors.Join(errs...)
	})
	return s
}

// at panics if it is the scene's callback, and for the scene's player.
func (s *panicScene) at(callback string, p *ds.Player) {
	s.mu.Lock()
	now := callback == s.row.callback && !s.panicked && (s.row.nobody || p == s.culprit)
	s.panicked = s.panicked || now
	s.mu.Unlock()
	switch {
	case now && s.exits:
		runtime.Goexit()
	case now:
		panic(bug)
	}
}

func (s *panicScene) handler(rpc, callback string) func(*ds.Player, ds.Frame[uplinktest.Move]) {
	return func(p *ds.Player, f ds.Frame[uplinktest.Move]) {
		s.mu.Lock()
		if p != s.culprit && !f.Repeated {
			s.got[rpc] = append(s.got[rpc], f.Seq)
		}
		s.mu.Unlock()
		if f.Repeated {
			callback = "repeated handler"
		}
		s.at(callback, p)
	}
}

// report is the PanicHandler. It calls a method that takes the connection's lock, as a game may.
func (s *panicScene) report(p *ds.Player, v any, stack []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	who := "nobody"
	if p != nil {
		who = fmt.Sprint(p == s.culprit, " ", p.ID() != 0)
	}
	s.reported = append(s.reported, fmt.Sprint(who, " ", v, " ", bytes.Contains(stack, []byte("panics_test.go"))))
}

// polled calls Poll, on a goroutine that a handler may end.
func (s *panicScene) polled() {
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.srv.Poll()
	}()
	<-done
}

// play makes calls of two players, and checks the outcome.
func (s *panicScene) play() {
	t, stop, stopped := s.t, make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			case <-time.After(time.Second / 60):
				if s.poll {
					s.polled()
				}
			}
		}
	}()
	ended := make(chan error)
	go func() { ended <- s.misfortune() }()
	settle(50 * ms) // the other is the first to join
	good := uplinktest.Dial(t, s.net, client.Config{})
	rpcs := map[string]*client.Stream[uplinktest.Move]{"Move": uplinktest.Bind(t, good, "Move"), "Fire": uplinktest.Bind(t, good, "Fire", client.BindConfig{Reliable: true})}
	if s.poll {
		rpcs["Buffered"] = uplinktest.Bind(t, good, "Buffered")
	}
	for i := range uint64(panicCalls) {
		m := uplinktest.MoveAt(1, i)
		for _, r := range rpcs {
			uplinktest.Must(t, r.Send(&m))
		}
		settle(time.Second / 60)
	}
	err := <-ended
	settle(3 * time.Second)
	uplinktest.Must(t, good.Err())
	close(stop)
	<-stopped
	if got := len(slices.Collect(s.srv.Players())); got != 1 {
		t.Errorf("%d players are left, want 1", got)
	}
	uplinktest.Must(t, s.srv.Close())
	uplinktest.Must(t, <-s.srv.Served)
	if s.poll {
		s.polled()
	}
	s.check(err, slices.Sorted(maps.Keys(rpcs)))
}

// misfortune is the player for whom a callback panics. It returns why its connection ended.
func (s *panicScene) misfortune() error {
	ctx := s.t.Context()
	conn, err := client.Dial(ctx, uplinktest.Addr, client.Config{Network: s.net, NoReconnect: true, Redundancy: rpcdelta.RedundancyOff})
	if err != nil {
		return err
	}
	defer conn.Close()
	move, _ := client.Bind[uplinktest.Move](ctx, conn, "Move", client.BindConfig{})
	fire, _ := client.Bind[uplinktest.Move](ctx, conn, "Fire", client.BindConfig{Reliable: true})
	var buffered *client.Stream[uplinktest.Move]
	if s.poll {
		buffered, _ = client.Bind[uplinktest.Move](ctx, conn, "Buffered", client.BindConfig{})
	}
	type number struct {
		N float64 `uplink:"resolution=1"`
	}
	records, _ := client.Bind[number](ctx, conn, "Schema", client.BindConfig{})
	calls := 1
	if s.row.floods {
		calls = 1500
	}
	for i := range uint64(40) {
		for range calls {
			m := uplinktest.MoveAt(1, i)
			if move == nil || move.Send(&m) != nil {
				return conn.Err()
			}
		}
		calls = 1
		m := uplinktest.MoveAt(1, i)
		if fire != nil {
			_ = fire.Send(&m)
		}
		if buffered != nil && i < 30 {
			_ = buffered.Send(&m)
		}
		if records != nil {
			_ = records.Send(&number{float64(i)})
		}
		_ = conn.SendReliable([]byte{1})
		time.Sleep(time.Second / 60)
	}
	time.Sleep(time.Second)
	return conn.Err()
}

func (s *panicScene) check(ended error, rpcs []string) {
	t := s.t
	who, value, text := "true true", any(bug), bug
	if s.row.nobody {
		who = "nobody"
	}
	if s.exits {
		value, text = nil, "runtime.Goexit"
	}
	if want := []string{fmt.Sprint(who, " ", value, " true")}; !slices.Equal(s.reported, want) {
		t.Errorf("PanicHandler got %q, want %q", s.reported, want)
	}
	if n := s.srv.Stats().Panics; n != 1 {
		t.Errorf("%d panics are counted", n)
	}
	if got := s.log.String(); strings.Count(got, "handler panicked") != 1 || !strings.Contains(got, text) || !strings.Contains(got, "panics_test.go") {
		t.Errorf("the log has:\n%s", got)
	}
	why := s.left[s.culprit]
	if len(why) != 1 || len(s.left) != 2 || s.joined != 2 {
		t.Errorf("%d players joined, Left was called with %v of %d players", s.joined, why, len(s.left))
	} else if got := errors.Is(why[0], ds.ErrPanic) && strings.Contains(why[0].Error(), text); got == s.row.over {
		t.Errorf("Left got %v", why[0])
	}
	if s.row.over {
		uplinktest.Must(t, ended)
	} else if ended == nil || !strings.Contains(ended.Error(), bugReason) {
		t.Errorf("the client got %v, want %q", ended, bugReason)
	}
	for _, rpc := range rpcs {
		got := s.got[rpc]
		if len(got) != panicCalls || !slices.IsSorted(got) || got[len(got)-1] != panicCalls-1 {
			t.Errorf("%s: the other player's calls are %v", rpc, got)
		}
	}
}

// sceneTap is the server's tap.
type sceneTap struct{ *panicScene }

func (s sceneTap) Joined(p *ds.Player, _ transport.Suite) ds.PlayerTap {
	s.mu.Lock()
	if s.culprit == nil {
		s.culprit = p
	}
	s.mu.Unlock()
	s.at("Tap.Joined", p)
	return scenePlayerTap{s.panicScene, p}
}

func (s sceneTap) Counted(transport.ListenerStats) { s.at("Tap.Counted", nil) }

func (s sceneTap) Resets() uint64 {
	s.at("Tap.Resets", nil)
	return 0
}

type scenePlayerTap struct {
	*panicScene
	player *ds.Player
}

func (s scenePlayerTap) Carried(c transport.TapEvent) {
	s.call(map[bool]string{true: "Carried, sent", false: "Carried, received"}[c.Sent])
}

func (s scenePlayerTap) call(method string) { s.at("PlayerTap."+method, s.player) }

func (s scenePlayerTap) Bound(ds.Binding)                            { s.call("Bound") }
func (s scenePlayerTap) Decoded(time.Time, int, []rpcdelta.Delivery) { s.call("Decoded") }
func (s scenePlayerTap) Dropped(time.Time, int, ds.Drop, bool)       { s.call("Dropped") }
func (s scenePlayerTap) Withheld(time.Time, int, uint64, ds.Drop)    { s.call("Withheld") }
func (s scenePlayerTap) Left(error)                                  { s.call("Left") }

// TestPanicDrops verifies that waiting frames and messages of a player whose handler panicked are
// counted as dropped, in the queue of Poll and in jitter buffers. What the other player sent is
// delivered by the same Poll.
func TestPanicDrops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := perfect(t)
		got := map[*ds.Player][]uint64{}
		var culprit *ds.Player
		srv := uplinktest.Serve(t, network, ds.Config{
			Poll: true, Logger: slog.New(slog.DiscardHandler), OnMessage: func(*ds.Player, []byte) { t.Error("a message came") },
		}, func(s *ds.Server) error {
			return errors.Join(
				ds.Handle(s, "Move", func(p *ds.Player, f ds.Frame[uplinktest.Move]) {
					got[p] = append(got[p], f.Seq)
					if len(f.Value.Payload) == 7 {
						culprit = p
						panic(bug)
					}
				}),
				ds.Handle(s, "Buffered", func(*ds.Player, ds.Frame[uplinktest.Move]) { t.Error("a buffered frame came") }),
				s.SetJitterBuffer("Buffered", &ds.JitterBuffer{Depth: time.Second}))
		})
		bad, good := uplinktest.Dial(t, network, client.Config{}), uplinktest.Dial(t, network, client.Config{})
		move, buffered, fire := uplinktest.Bind(t, bad, "Move"), uplinktest.Bind(t, bad, "Buffered"), uplinktest.Bind(t, good, "Move", client.BindConfig{Reliable: true})
		for i := range uint64(panicCalls) {
			m := uplinktest.MoveAt(1, i)
			uplinktest.Must(t, fire.Send(&m))
			if i < 10 {
				m.Payload = nil
				if i == 3 {
					m.Payload = make([]byte, 7)
				}
				uplinktest.Must(t, move.Send(&m))
				uplinktest.Must(t, buffered.Send(&m))
			}
			if i == 10 {
				uplinktest.Must(t, bad.SendReliable([]byte{1}))
			}
			settle(time.Second / 60)
		}
		srv.Poll()
		if n := len(got[culprit]); n != 4 || len(got) != 2 {
			t.Errorf("%d calls of the player came, of %d players", n, len(got))
		}
		for p, seqs := range got {
			if p != culprit && (len(seqs) != panicCalls || seqs[panicCalls-1] != panicCalls-1) {
				t.Errorf("the other player's calls are %v", seqs)
			}
		}
		settle(time.Second) // the buffer goes with the session
		st := srv.Stats()
		drops := map[string]uint64{"message": st.Drops[ds.Kicked], "player": culprit.Stats().Drops[ds.Kicked]}
		for _, r := range st.RPCs {
			drops[fmt.Sprint(r.RPC, " ", r.Reliable)] = r.Drops[ds.Kicked]
		}
		want := map[string]uint64{"message": 1, "Move false": 6, "Move true": 0, "Buffered false": 10, "player": 17}
		if fmt.Sprint(drops) != fmt.Sprint(want) || st.Panics != 1 {
			t.Errorf("%d panics; dropped %v, want %v", st.Panics, drops, want)
		}
	})
}

// TestPanicInBundle verifies that, without Poll, frames in the datagram of the one whose handler
// panicked are counted as dropped, and that frame itself as delivered.
func TestPanicInBundle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := perfect(t)
		srv := uplinktest.Serve(t, network, ds.Config{Logger: slog.New(slog.DiscardHandler)}, handles("Move", func(_ *ds.Player, f ds.Frame[uplinktest.Move]) {
			if f.Seq == 4 {
				panic(bug)
			}
		}))
		conn := uplinktest.Dial(t, network, client.Config{FlushOnly: true})
		move := uplinktest.Bind(t, conn, "Move")
		for i := range uint64(8) {
			m := uplinktest.MoveAt(1, 60+i) // without a payload, so that all fit a datagram
			uplinktest.Must(t, move.Send(&m))
		}
		uplinktest.Must(t, conn.Flush())
		settle(time.Second)
		if got := srv.Stats().RPCs[0]; got.Frames() != 8 || got.Drops[ds.Kicked] != 3 {
			t.Errorf("%d frames, of which %d dropped: %v", got.Frames(), got.Drops[ds.Kicked], got.Drops)
		}
	})
}

// TestPanicHandlerKicks verifies that the client gets the reason with which PanicHandler kicks.
func TestPanicHandlerKicks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := perfect(t)
		uplinktest.Serve(t, network, ds.Config{PanicHandler: func(p *ds.Player, _ any, _ []byte) { p.Kick("no more") }}, handles("Move", func(*ds.Player, ds.Frame[uplinktest.Move]) { panic(bug) }))
		conn := uplinktest.Dial(t, network, client.Config{})
		play(t, uplinktest.Bind(t, conn, "Move"), 1, 0, 1, 60)
		settle(time.Second)
		if err := conn.Err(); !errors.Is(err, client.ErrKicked) || !strings.Contains(err.Error(), "no more") {
			t.Errorf("the client got %v", err)
		}
	})
}

// TestPanicIsNotSilent verifies that a panic is logged to slog.Default if there is neither a logger
// nor a PanicHandler.
func TestPanicIsNotSilent(t *testing.T) {
	var log bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	defer slog.SetDefault(before)
	synctest.Test(t, func(t *testing.T) {
		network := perfect(t)
		uplinktest.Serve(t, network, ds.Config{}, handles("Move", func(*ds.Player, ds.Frame[uplinktest.Move]) { panic(bug) }))
		play(t, uplinktest.Bind(t, uplinktest.Dial(t, network, client.Config{}), "Move"), 1, 0, 1, 60)
		settle(time.Second)
	})
	if got := log.String(); strings.Count(got, "handler panicked") != 1 || !strings.Contains(got, bug) {
		t.Errorf("logged:\n%s", got)
	}
}

// TestPanicHandlerPanics verifies that a panic of PanicHandler ends the process without Poll, and
// that the output contains both panics.
func TestPanicHandlerPanics(t *testing.T) {
	const name, variable = "TestPanicHandlerPanics", "UPLINK_TEST_PANIC"
	if os.Getenv(variable) != "" {
		srv, err := ds.Listen("127.0.0.1:0", ds.Config{PanicHandler: func(_ *ds.Player, v any, _ []byte) { panic(fmt.Sprint("no way on after ", v)) }})
		uplinktest.Must(t, err)
		uplinktest.Must(t, ds.Handle(srv, "Move", func(*ds.Player, ds.Frame[uplinktest.Move]) { panic(bug) }))
		go func() { _ = srv.Serve(context.Background()) }()
		conn, err := client.Dial(t.Context(), srv.Addr().String(), client.Config{})
		uplinktest.Must(t, err)
		move := uplinktest.Bind(t, conn, "Move", client.BindConfig{Reliable: true})
		m := uplinktest.MoveAt(1, 0)
		uplinktest.Must(t, move.Send(&m))
		select {} // until the process ends
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+name+"$")
	cmd.Env = append(os.Environ(), variable+"=1")
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || !bytes.Contains(out, []byte("no way on after "+bug)) {
		t.Errorf("the process ended with %v:\n%s", err, out)
	}
}
