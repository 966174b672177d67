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

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
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
	n := 0
	for _, row := range panicRows {
		for _, poll := range []bool{false, true} {
			for _, exits := range []bool{false, true} {
				if row.poll && !poll {
					continue
				}
				if n++; n%thin(3) != 0 {
					continue
				}
				bubble(t, fmt.Sprintf("%s/poll=%v/exits=%v", row.callback, poll, exits), func(t *testing.T) { newPanicScene(t, row, poll, exits).play() })
			}
		}
	}
}

// pressed are the arguments of the RPC that is registered by its schema.
type pressed struct{ Buttons uint16 }

// panicScene is a server whose callbacks all call at.
type panicScene struct {
	t     *testing.T
	row   panicRow
	poll  bool
	exits bool // by runtime.Goexit instead of a panic
	srv   *uplinktest.Server
	net   *uplinktest.Network
	log   uplinktest.Record

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
	s.net = linkedBy(t, 20*ms, simnet.Config{Seed: 70})
	setups := []setup{
		handles("Move", s.handler("Move", "handler")), handles("Fire", s.handler("Fire", "reliable handler")),
		validates("Move", func(p *ds.Player, _ frame) error {
			s.at("validator", p)
			return nil
		}),
		func(srv *ds.Server) error {
			typ, err := schema.Compile[pressed]("Buttons", 0)
			uplinktest.Must(t, err)
			return ds.HandleSchema(srv, typ.Schema(), func(p *ds.Player, _ ds.Frame[*schema.Frame]) { s.at("schema handler", p) })
		},
	}
	if poll {
		setups = append(setups, handles("Buffered", s.handler("Buffered", "buffered handler"), ds.JitterBuffer{Repeat: 5}))
	}
	s.srv = serve(t, s.net, ds.Config{
		Poll: poll, TickHz: 60, Hooks: ds.Hooks{Tap: sceneTap{s}, PanicHandler: s.report}, Logger: slog.New(slog.NewTextHandler(&s.log, &slog.HandlerOptions{Level: slog.LevelError})),
		Joined: func(p *ds.Player) {
			s.locked(func() { s.joined++ })
			s.at("Joined", p)
		},
		Left: func(p *ds.Player, err error) {
			s.locked(func() { s.left[p] = append(s.left[p], err) })
			s.at("Left", p)
		},
		OnMessage: func(p *ds.Player, _ []byte) { s.at("OnMessage", p) },
	}, setups...)
	return s
}

func (s *panicScene) locked(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// at panics if it is the scene's callback, and for the scene's player.
func (s *panicScene) at(callback string, p *ds.Player) {
	now := false
	s.locked(func() {
		now = callback == s.row.callback && !s.panicked && (s.row.nobody || p == s.culprit)
		s.panicked = s.panicked || now
	})
	switch {
	case now && s.exits:
		runtime.Goexit()
	case now:
		panic(bug)
	}
}

func (s *panicScene) handler(rpc, callback string) func(*ds.Player, frame) {
	return func(p *ds.Player, f frame) {
		s.locked(func() {
			if p != s.culprit && !f.Repeated {
				s.got[rpc] = append(s.got[rpc], f.Seq)
			}
		})
		if f.Repeated {
			callback = "repeated handler"
		}
		s.at(callback, p)
	}
}

// report is the PanicHandler. It calls a method that takes the connection's lock, as a game may.
func (s *panicScene) report(p *ds.Player, v any, stack []byte) {
	who := "nobody"
	if p != nil {
		who = fmt.Sprint(p == s.culprit, " ", p.ID() != 0)
	}
	s.locked(func() {
		s.reported = append(s.reported, fmt.Sprint(who, " ", v, " ", bytes.Contains(stack, []byte("panics_test.go"))))
	})
}

// play makes calls of two players, and checks the outcome.
func (s *panicScene) play() {
	t := s.t
	poll := func() { interrupted(func() { s.srv.Poll() }) }
	stop := polling(t, time.Second/60, poll)
	ended := make(chan error)
	go func() { ended <- s.provoke() }()
	settle(50 * ms) // the other is the first to join
	good := uplinktest.Dial(t, s.net, client.Config{})
	rpcs := map[string]stream{"Move": uplinktest.Bind(t, good, "Move"), "Fire": uplinktest.Bind(t, good, "Fire", reliably)}
	if s.poll {
		rpcs["Buffered"] = uplinktest.Bind(t, good, "Buffered")
	}
	for i := range uint64(panicCalls) {
		for _, r := range rpcs {
			send(t, r, 1, i)
		}
		settle(time.Second / 60)
	}
	err := <-ended
	settle(3 * time.Second)
	uplinktest.Must(t, good.Err())
	stop()
	if got := len(slices.Collect(s.srv.Players())); got != 1 {
		t.Errorf("%d players are left, want 1", got)
	}
	uplinktest.Must(t, errors.Join(s.srv.Close(), <-s.srv.Served))
	poll()
	s.check(err, slices.Collect(maps.Keys(rpcs)))
}

// provoke is the player for whom a callback panics. It returns why its connection ended.
func (s *panicScene) provoke() error {
	ctx := s.t.Context()
	conn, err := client.Dial(ctx, uplinktest.Addr, client.Config{Network: s.net, NoReconnect: true, Tuning: client.Tuning{Redundancy: rpcdelta.RedundancyOff}})
	if err != nil {
		return err
	}
	defer conn.Close()
	move, _ := client.Bind[move](ctx, conn, "Move", client.BindConfig{})
	fire, _ := client.Bind[uplinktest.Move](ctx, conn, "Fire", reliably)
	buffered, _ := client.Bind[uplinktest.Move](ctx, conn, "Buffered", client.BindConfig{}) // fails without Poll
	buttons, _ := client.Bind[pressed](ctx, conn, "Buttons", client.BindConfig{})
	calls := 1
	if s.row.floods {
		calls = 1500
	}
	for i := range uint64(40) {
		m := uplinktest.MoveAt(1, i)
		for range calls {
			if move == nil || uplinktest.Sent(move.Send(&m)) != nil {
				return conn.Err()
			}
		}
		calls = 1
		if fire != nil {
			_, _ = fire.Send(&m)
		}
		if buffered != nil && i < 30 {
			_, _ = buffered.Send(&m)
		}
		if buttons != nil {
			_, _ = buttons.Send(&pressed{uint16(i)})
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
	if want := []string{fmt.Sprint(who, " ", value, " true")}; !slices.Equal(s.reported, want) || s.srv.Stats().Panics != 1 {
		t.Errorf("PanicHandler got %q, want %q; %d panics are counted", s.reported, want, s.srv.Stats().Panics)
	}
	if s.log.Count("handler panicked") != 1 || s.log.Count(text) == 0 || s.log.Count("panics_test.go") == 0 {
		t.Errorf("the log has:\n%s", s.log.String())
	}
	why := s.left[s.culprit]
	if len(why) != 1 || len(s.left) != 2 || s.joined != 2 {
		t.Errorf("%d players joined, Left was called with %v of %d players", s.joined, why, len(s.left))
	} else if got := errors.Is(why[0], transport.ErrPanic) && strings.Contains(why[0].Error(), text); got == s.row.over {
		t.Errorf("Left got %v", why[0])
	}
	if s.row.over {
		uplinktest.Must(t, ended)
	} else if ended == nil || !strings.Contains(ended.Error(), bugReason) {
		t.Errorf("the client got %v, want %q", ended, bugReason)
	}
	for _, rpc := range rpcs {
		if got := s.got[rpc]; len(got) != panicCalls || !slices.IsSorted(got) || got[len(got)-1] != panicCalls-1 {
			t.Errorf("%s: the other player's calls are %v", rpc, got)
		}
	}
}

// sceneTap is the server's tap.
type sceneTap struct{ *panicScene }

func (s sceneTap) Joined(p *ds.Player, _ transport.Suite) ds.PlayerTap {
	s.locked(func() {
		if s.culprit == nil {
			s.culprit = p
		}
	})
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
// counted as dropped: in the same datagram, in the queue of Poll and in jitter buffers. What the
// other player sent is delivered by the same Poll.
func TestPanicDrops(t *testing.T) {
	for name, poll := range map[string]bool{"serve": false, "poll": true} {
		bubble(t, name, func(t *testing.T) {
			network := perfect(t)
			got := map[*ds.Player]int{}
			var culprit *ds.Player
			setups := []setup{handles("Move", func(p *ds.Player, f frame) {
				if got[p]++; f.Seq == 3 && f.Value.Buttons == 1<<15 {
					culprit = p
					panic(bug)
				}
			})}
			if poll {
				setups = append(setups, handles("Buffered", func(*ds.Player, frame) { t.Error("a buffered frame came") },
					ds.JitterBuffer{Depth: time.Second}))
			}
			srv := serve(t, network, ds.Config{
				Poll: poll, TickHz: 60, Logger: slog.New(slog.DiscardHandler), OnMessage: func(*ds.Player, []byte) { t.Error("a message came") },
			}, setups...)
			bad := uplinktest.Dial(t, network, client.Config{Tuning: client.Tuning{FlushOnly: true}})
			streams := []stream{uplinktest.Bind(t, bad, "Move")}
			if poll {
				streams = append(streams, uplinktest.Bind(t, bad, "Buffered"))
			}
			fire := join(t, network, "Move", reliably)
			for i := range uint64(8) {
				send(t, fire, 1, i)
				for _, s := range streams { // without a payload, so that all fit a datagram
					m := uplinktest.MoveAt(1, 60+i)
					m.Buttons = 1 << 15
					uplinktest.Must(t, uplinktest.Sent(s.Send(&m)))
				}
			}
			uplinktest.Must(t, bad.Flush())
			settle(time.Second)
			if poll {
				uplinktest.Must(t, bad.SendReliable([]byte{1}))
				settle(time.Second)
				srv.Poll()
				settle(time.Second) // the buffer goes with the session
			}
			if n := got[culprit]; n != 4 || len(got) != 2 {
				t.Errorf("%d calls of the player came: %v", n, got)
			}
			for p, n := range got {
				if p != culprit && n != 8 {
					t.Errorf("%d calls of the other player came", n)
				}
			}
			st := srv.Stats()
			drops := map[string]uint64{"message": st.Drops[ds.Kicked], "player": culprit.Stats().Drops[ds.Kicked]}
			frames := uint64(0)
			for _, r := range st.RPCs {
				drops[fmt.Sprint(r.RPC, " ", r.Reliable)] = r.Drops[ds.Kicked]
				frames += r.Frames()
			}
			want := map[string]uint64{"message": 0, "Move false": 4, "Move true": 0, "player": 4}
			if poll {
				want = map[string]uint64{"message": 1, "Move false": 4, "Move true": 0, "Buffered false": 8, "player": 13}
			}
			if !maps.Equal(drops, want) || st.Panics != 1 || frames != uint64(8*len(streams)+8) {
				t.Errorf("%d panics, %d frames; dropped %v, want %v", st.Panics, frames, drops, want)
			}
		})
	}
}

// TestPanicHandlerKicks verifies that the client gets the reason with which PanicHandler kicks, and
// that without it and a logger a panic is logged to slog.Default.
func TestPanicHandlerKicks(t *testing.T) {
	var log uplinktest.Record
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	defer slog.SetDefault(before)
	for reason, cfg := range map[string]ds.Config{
		"no more": {Hooks: ds.Hooks{PanicHandler: func(p *ds.Player, _ any, _ []byte) { p.Kick("no more") }}},
		bugReason: {},
	} {
		synctest.Test(t, func(t *testing.T) {
			network := perfect(t)
			serve(t, network, cfg, handles("Move", func(*ds.Player, frame) { panic(bug) }))
			conn := uplinktest.Dial(t, network, client.Config{})
			send(t, uplinktest.Bind(t, conn, "Move"), 1, 0)
			settle(time.Second)
			if err := conn.Err(); !errors.Is(err, transport.ErrKicked) || !strings.Contains(err.Error(), reason) {
				t.Errorf("the client got %v", err)
			}
		})
	}
	if log.Count("handler panicked") != 1 || log.Count(bug) == 0 {
		t.Errorf("logged:\n%s", log.String())
	}
}

// TestPanicHandlerPanics verifies that a panic of PanicHandler ends the process without Poll, and
// that the output contains both panics.
func TestPanicHandlerPanics(t *testing.T) {
	const name, variable = "TestPanicHandlerPanics", "UPLINK_TEST_PANIC"
	if os.Getenv(variable) != "" {
		srv, err := ds.Listen("127.0.0.1:0", ds.Config{Hooks: ds.Hooks{PanicHandler: func(_ *ds.Player, v any, _ []byte) { panic(fmt.Sprint("no way on after ", v)) }}})
		uplinktest.Must(t, err)
		uplinktest.Must(t, handles("Move", func(*ds.Player, frame) { panic(bug) })(srv))
		go func() { _ = srv.Serve(context.Background()) }()
		conn, err := client.Dial(t.Context(), srv.Addr().String(), client.Config{})
		uplinktest.Must(t, err)
		send(t, uplinktest.Bind(t, conn, "Move", reliably), 1, 0)
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

// TestDecoderPanics lets the decoder of one player's calls panic. Its session ends as after a panic
// of a handler, and another player's continues.
func TestDecoderPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := perfect(t)
		moves := uplinktest.NewJournal(t, 1)
		var joined []*ds.Player
		var left []error
		srv := serve(t, network, ds.Config{
			Logger: slog.New(slog.DiscardHandler),
			Joined: func(p *ds.Player) { joined = append(joined, p) },
			Left:   func(_ *ds.Player, err error) { left = append(left, err) },
		}, handles("Move", moves.Handle))
		victim := uplinktest.Dial(t, network, client.Config{})
		settle(time.Second)
		other := uplinktest.Dial(t, network, client.Config{})
		broken, move := uplinktest.Bind(t, victim, "Move"), uplinktest.Bind(t, other, "Move")
		settle(time.Second)
		joined[0].BreakDecoder(0)
		send(t, broken, 1, 0)
		send(t, move, 1, 0)
		settle(time.Second)
		send(t, move, 1, 1)
		settle(time.Second)
		if err := victim.Err(); !errors.Is(err, transport.ErrKicked) || !strings.Contains(err.Error(), bugReason) || other.Err() != nil {
			t.Errorf("the clients have %v and %v", err, other.Err())
		}
		if len(left) != 1 || !errors.Is(left[0], transport.ErrPanic) || srv.Stats().Panics != 1 || moves.Only().Frames() != 2 {
			t.Errorf("left with %v, stats %+v", left, srv.Stats())
		}
	})
}
