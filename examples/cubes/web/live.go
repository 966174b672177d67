// Package web runs a session in real time and serves a page that shows it. The server simulates, a
// player controls it through a real client, to which the world is replicated over the same
// connection, and viewers see both ends.
package web

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/examples/cubes/session"
	"github.com/uplink-rpc/uplink/examples/cubes/world"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// Live is a running world. Its methods are safe for concurrent use.
type Live struct {
	params world.Params
	seed   uint64

	mu       sync.Mutex
	session  *session.Session
	steering *steering
	script   *world.Script
	settings Settings
	keys     world.Input
	viewers  map[*Viewer]struct{}
	shown    picture
}

// NewLive returns a world that a script with that seed plays until a viewer does. The caller must
// call Close.
func NewLive(ctx context.Context, p world.Params, seed uint64, s Settings) (*Live, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	l := &Live{params: p, seed: seed, settings: s, viewers: map[*Viewer]struct{}{}}
	var err error
	if l.steering, err = newSteering(ctx, s.link()); err != nil {
		return nil, err
	}
	if err := l.restart(); err != nil {
		return nil, errors.Join(err, l.steering.close())
	}
	return l, nil
}

func (l *Live) restart() error {
	m, err := session.ParseMode(l.settings.Mode)
	if err != nil {
		return err
	}
	if l.session != nil {
		if err := l.session.Close(); err != nil {
			return err
		}
	}
	link := l.settings.link()
	link.Seed = l.seed
	l.session, err = session.New(session.Config{World: l.params, Mode: m, Options: l.settings.options(), Link: link, New: l.steering.endpoints.Make})
	if err != nil {
		return err
	}
	l.script = world.NewScript(l.seed, world.ScriptReach)
	l.shown = newPicture(len(l.session.Bodies()))
	return nil
}

// Restart restarts the world with the current settings.
func (l *Live) Restart() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.restart()
}

// Close closes the session, the connection and the server. Run must have returned.
func (l *Live) Close() error { return errors.Join(l.session.Close(), l.steering.close()) }

// Settings returns the current settings.
func (l *Live) Settings() Settings {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.settings
}

// Change calls change with a copy of the settings and applies the result. If change returns an
// error or the result is invalid, Change returns the error and the settings stay as they are.
func (l *Live) Change(change func(*Settings) error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	before, s := l.settings, l.settings
	if err := change(&s); err != nil {
		return err
	}
	if err := s.check(); err != nil {
		return err
	}
	l.settings = s
	err := errors.Join(l.session.SetLink(s.link()), l.steering.set(s.link()))
	if s.Mode != before.Mode || s.Rate != before.Rate || s.Sight != before.Sight || s.Round != before.Round || s.Smooth != before.Smooth {
		m, bad := session.ParseMode(s.Mode)
		return errors.Join(err, bad, l.session.Use(m, s.options()))
	}
	l.session.SetBudget(s.Budget * 1000)
	return err
}

// Steer sets the keys that the player holds. If there are any, the script stops.
func (l *Live) Steer(keys world.Input) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.keys = keys & world.Keys
	if l.keys != 0 {
		l.settings.Auto = false
	}
}

// Run ticks until the context is done or the session fails.
func (l *Live) Run(ctx context.Context) error {
	ticker := time.NewTicker(world.Tick)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			if err := l.tick(); err != nil {
				return err
			}
		}
	}
}

func (l *Live) tick() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	keys := l.keys
	if auto := l.script.Next(l.session.Bodies()[0].Position); l.settings.Auto {
		keys = auto
	}
	in, err := l.steering.tick(keys)
	if err != nil {
		return err
	}
	if err := l.session.Tick(in); err != nil {
		return err
	}
	l.broadcast()
	return nil
}

// Settings are the properties of the session and the link that viewers can change.
type Settings struct {
	Mode string `json:"mode"`
	// Rate is the maximum number of messages per second, Budget the maximum bandwidth in kbit/s. A
	// Budget of 0 means no limit.
	Rate   int `json:"rate"`
	Budget int `json:"budget"`
	// Sight is the distance in meters within which the client of compressed snapshots sees cubes. 0
	// means the whole world.
	Sight float64 `json:"sight"`
	// Loss is a fraction; RTT and Jitter are in milliseconds. See session.Link.
	Loss   float64 `json:"loss"`
	RTT    float64 `json:"rtt"`
	Jitter float64 `json:"jitter"`
	// Round and Smooth enable parts of state synchronization; see session.Options.
	Round  bool `json:"round"`
	Smooth bool `json:"smooth"`
	// Auto lets the script play.
	Auto bool `json:"auto"`
}

// DefaultSettings returns the initial settings: the link and the budget of the articles.
func DefaultSettings() Settings {
	return Settings{Mode: session.ModeSnapshots.String(), Rate: 60, Budget: 256, Loss: 0.05, RTT: 100, Jitter: 33, Round: true, Smooth: true, Auto: true}
}

// Maximum values of settings, in the units of Settings.
const (
	MaxBudget = 4096
	MaxSight  = 64
	MaxLoss   = 0.5
	MaxRTT    = 1000
	MaxJitter = 200
)

// check returns an error that names each invalid setting and its range.
func (s *Settings) check() error {
	_, err := session.ParseMode(s.Mode)
	if s.Rate < 1 || world.TickRate%s.Rate != 0 {
		err = errors.Join(err, fmt.Errorf("rate is %d: want a divisor of %d", s.Rate, world.TickRate))
	}
	return errors.Join(err, within("budget", float64(s.Budget), MaxBudget), within("sight", s.Sight, MaxSight), within("loss", s.Loss, MaxLoss),
		within("rtt", s.RTT, MaxRTT), within("jitter", s.Jitter, MaxJitter))
}

func within(name string, v, limit float64) error {
	if !(v >= 0 && v <= limit) {
		return fmt.Errorf("%s is %g: want 0 to %g", name, v, limit)
	}
	return nil
}

func (s *Settings) link() session.Link {
	ms := func(v float64) time.Duration { return time.Duration(v * float64(time.Millisecond)) }
	return session.Link{RTT: ms(s.RTT), Jitter: ms(s.Jitter), Loss: s.Loss}
}

func (s *Settings) options() session.Options {
	return session.Options{
		Rate: s.Rate, Budget: s.Budget * 1000, Sight: s.Sight, Jitter: s.link().Jitter, Loss: s.Loss,
		NoRound: !s.Round, NoSmooth: !s.Smooth,
	}
}

// Move is the RPC that controls the player. The client calls it each tick.
type Move struct {
	// Keys are the keys held: a [world.Input].
	Keys uint8 `uplink:"kind=bits,width=6"`
}

// steering is a real server and client, connected over UDP on loopback with a simulated link in
// between. It carries the keys to the server and replicates the world to the client.
type steering struct {
	network   *simnet.WrappedNetwork
	server    *ds.Server
	conn      *client.Conn
	move      *client.Stream[Move]
	endpoints *session.Endpoints
	joining   error       // errors of Endpoints.Joined
	held      world.Input // keys that the server received last
}

func newSteering(ctx context.Context, l session.Link) (s *steering, err error) {
	s = &steering{}
	if s.network, err = simnet.WrapNetwork(nil, half(l), half(l)); err != nil {
		return nil, err
	}
	joined := func(p *ds.Player) { s.joining = errors.Join(s.joining, s.endpoints.Joined(p)) }
	if s.server, err = ds.Listen("127.0.0.1:0", ds.Config{Poll: true, Joined: joined}); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = s.close()
		}
	}()
	if err = ds.Handle(s.server, "Move", func(_ *ds.Player, f ds.Frame[Move]) { s.held = world.Input(f.Value.Keys) & world.Keys }); err != nil {
		return nil, err
	}
	if s.endpoints, err = session.NewEndpoints(s.server); err != nil {
		return nil, err
	}
	go func() { _ = s.server.Serve(context.WithoutCancel(ctx)) }() // returns after Close
	dial, stop := context.WithTimeout(ctx, 10*time.Second)
	defer stop()
	// Without a preset: presets affect calls, and this example compares worlds.
	if s.conn, err = client.Dial(dial, s.server.Addr().String(), client.Config{Network: s.network}); err != nil {
		return nil, err
	}
	s.endpoints.Connected(s.conn)
	s.move, err = client.Bind[Move](ctx, s.conn, "Move", client.BindConfig{RateHz: world.TickRate})
	return s, err
}

// half returns the configuration of one direction of the link.
func half(l session.Link) simnet.Config {
	return simnet.Config{Delay: l.RTT / 2, Jitter: l.Jitter / 4, Loss: l.Loss}
}

func (s *steering) set(l session.Link) error { return s.network.Set(half(l), half(l)) }

// tick sends the keys that the player holds and returns the keys that the server received last.
func (s *steering) tick(keys world.Input) (world.Input, error) {
	_, err := s.move.Send(&Move{Keys: uint8(keys)})
	if errors.Is(err, client.ErrReconnecting) {
		err = nil // the client reconnects
	}
	s.server.Poll()
	return s.held, errors.Join(err, s.joining)
}

func (s *steering) close() error {
	var err error
	if s.conn != nil {
		err = s.conn.Close()
		s.endpoints.Wait()
	}
	return errors.Join(err, s.server.Close())
}
