// Package live runs a session in real time for whoever looks: the server simulates, a player steers it through a real
// client, which gets the world the same way, and viewers get both sides of it.
package live

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/uplink-rpc/uplink/examples/cubes/game"
	"github.com/uplink-rpc/uplink/examples/cubes/script"
	"github.com/uplink-rpc/uplink/examples/cubes/session"
	"github.com/uplink-rpc/uplink/examples/cubes/way"
	"github.com/uplink-rpc/uplink/examples/cubes/world"
)

// Live is a running world. Its methods are safe for concurrent use.
type Live struct {
	params world.Params
	seed   uint64

	mu       sync.Mutex
	session  *session.Session
	steering *steering
	script   *script.Script
	settings Settings
	keys     world.Input
	viewers  map[*Viewer]struct{}
	shown    picture
}

// New makes a world that a script of that seed plays until somebody else does. Close it.
func New(ctx context.Context, p world.Params, seed uint64, s Settings) (*Live, error) {
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

// restart begins the world anew.
func (l *Live) restart() error {
	k, err := way.Parse(l.settings.Way)
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
	l.session, err = session.New(session.Config{World: l.params, Way: k, Options: l.settings.options(), Link: link, New: l.steering.ends.Make})
	if err != nil {
		return err
	}
	l.script = script.New(l.seed, script.Reach)
	l.shown = newPicture(len(l.session.Bodies()))
	return nil
}

// Restart begins the world anew, with the settings as they are.
func (l *Live) Restart() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.restart()
}

// Close ends the connection. Run has returned before.
func (l *Live) Close() error { return errors.Join(l.session.Close(), l.steering.close()) }

// Settings are those in force.
func (l *Live) Settings() Settings {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.settings
}

// Change changes settings, unless change says that it cannot, or says what is wrong with what became of them.
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
	if s.Way != before.Way || s.Rate != before.Rate || s.Delta != before.Delta || s.Round != before.Round || s.Smooth != before.Smooth {
		k, bad := way.Parse(s.Way)
		return errors.Join(err, bad, l.session.Use(k, s.options()))
	}
	l.session.SetBudget(s.Budget * 1000)
	return err
}

// Steer has the player hold keys. From the first one on no script plays.
func (l *Live) Steer(keys world.Input) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.keys = keys & world.Keys
	if l.keys != 0 {
		l.settings.Auto = false
	}
}

// Run ticks until the context is done, or the game has an error.
func (l *Live) Run(ctx context.Context) error {
	ticker := time.NewTicker(game.Tick)
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
	l.show()
	return nil
}
