package playground

import (
	"context"
	"errors"
	"math"
	"sync"
	"time"

	"github.com/uplink-rpc/uplink/area"
	"github.com/uplink-rpc/uplink/cmd/uplink/internal/sleep"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/schema"
)

const (
	WorldName = "bots"
	worldHz   = 20
	botCount  = 96
	// field is the size of the field on which the bots walk, and cell the size of an area, in
	// meters.
	field, cell = 80.0, 20.0
	// sight is the distance at which players see bots, in meters.
	sight = 15.0
	// MaxWatchers is the maximum number of clients that receive the world. The limit ensures that a
	// demo with many clients measures mainly their calls.
	MaxWatchers = 64
)

// Bot is an object of the world.
type Bot struct {
	Position schema.Vec3 `uplink:"resolution=0.01,min=-100,max=200,velocity=Velocity" interpolate:"position"`
	Velocity schema.Vec3 `uplink:"resolution=0.05,min=-20,max=20" interpolate:"velocity"`
	Firing   bool
}

// botAt returns bot i at a time in seconds. The bot walks in a circle.
func botAt(i int, t float64) Bot {
	_, part := math.Modf(float64(i) / math.Phi)
	radius := 4 + 16*part
	speed := 3 + float64(i%4)
	sin, cos := math.Sincos(t*speed/radius + float64(i))
	columns := 12
	x, y := (float64(i%columns)+.5)/float64(columns), (float64(i/columns)+.5)/float64(botCount/columns)
	return Bot{
		Position: schema.Vec3{X: field*x + radius*cos, Y: field*y + radius*sin},
		Velocity: schema.Vec3{X: -speed * sin, Y: speed * cos},
		Firing:   (int(t)+i)%7 == 0,
	}
}

// World is a world of bots. Each player sees the areas around one of the bots.
type World struct {
	world *ds.World[Bot]
	grid  *area.Grid

	mu       sync.Mutex
	watchers map[*ds.Player]*watcher
}

type watcher struct {
	stream *ds.SnapshotStream
	watch  *area.Watch
	bot    int
}

// NewWorld returns the world. It sends snapshots to players that join.
func NewWorld() (w *World, err error) {
	w = &World{watchers: map[*ds.Player]*watcher{}}
	if w.grid, err = area.NewGrid(1, 0, 0, cell, field/cell, field/cell); err != nil {
		return nil, err
	}
	w.world, err = ds.NewWorld(nil, WorldName, ds.WorldConfig[Bot]{TickHz: worldHz, Areas: true, EnterBytes: 200})
	return w, err
}

// Join offers the world to a player, unless MaxWatchers have joined before. index selects the
// player's bot.
func (w *World) Join(p *ds.Player, index int) {
	if index >= MaxWatchers {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	watch, err := area.NewWatch(w.grid, sight, sight+cell/4)
	if err != nil {
		return
	}
	stream, err := w.world.Offer(p)
	if err == nil { // otherwise the session has ended
		w.watchers[p] = &watcher{stream, watch, 7 * index % botCount}
	}
}

// Leave removes a player.
func (w *World) Leave(p *ds.Player) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.watchers, p)
}

// Run moves the bots and sends the world until the context is done. After every tick it calls each,
// if not nil.
func (w *World) Run(ctx context.Context, each func(tick uint64)) error {
	tick := uint64(0)
	for range sleep.Every(ctx, time.Second/worldHz) {
		tick++
		if err := w.step(tick); err != nil {
			return err
		}
		if each != nil {
			each(tick)
		}
	}
	return nil
}

func (w *World) step(tick uint64) error {
	t := float64(tick) / worldHz
	w.mu.Lock()
	for _, o := range w.watchers {
		at := botAt(o.bot, t).Position
		o.stream.See(o.watch.Move(at.X, at.Y)...)
	}
	w.mu.Unlock()
	err := w.world.Begin(tick)
	for i := range botCount {
		b := botAt(i, t)
		err = errors.Join(err, w.world.Put(uint16(i), 0, &b, w.grid.At(b.Position.X, b.Position.Y)))
	}
	_, sent := w.world.Send()
	return errors.Join(err, sent)
}
