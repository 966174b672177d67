// Package playground is the world of bots that uplink demo and uplink ds serve, so that clients in
// any language can try all features.
package playground

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"

	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/transport"
)

// Notice contains the arguments of the server call Notice, which every player receives once per
// second.
type Notice struct {
	Tick    uint32 // tick of the world
	Players uint8
}

const (
	noticeName  = "Notice"
	noticeEvery = worldHz // ticks
	// StreamName is the name of the stream that every player receives. It has StreamLines lines of
	// text.
	StreamName  = "lines.txt"
	StreamLines = 4096
	// maxRead is the maximum size of a stream of a player, in bytes.
	maxRead = 1 << 20
)

// Playground uses each way of sending: the world, calls of the server, reliable messages and
// streams. It answers players' messages, requests and streams.
type Playground struct {
	bots *World
	log  *slog.Logger

	mu      sync.Mutex
	notices map[*ds.Player]*ds.Stream[Notice]
	joins   int
	streams sync.WaitGroup
}

// New returns a playground.
func New(log *slog.Logger) (*Playground, error) {
	g := &Playground{log: log, notices: map[*ds.Player]*ds.Stream[Notice]{}}
	var err error
	g.bots, err = NewWorld()
	return g, err
}

// Configure sets the callbacks of a server.
func (g *Playground) Configure(c *ds.Config) {
	c.Joined, c.Left = g.joined, g.left
	c.OnMessage = func(p *ds.Player, b []byte) { g.check("echo", p, p.SendReliable(b)) }
	c.Hooks.OnRequest = func(r *ds.Request) { g.check("answer", r.Player, r.Reply(r.Message)) }
	c.Hooks.OnStream = g.read
}

// Run moves the bots and calls the players until the context is done.
func (g *Playground) Run(ctx context.Context) error {
	return g.bots.Run(ctx, func(tick uint64) {
		if tick%noticeEvery == 0 {
			g.notify(tick)
		}
	})
}

// Wait waits until the streams of players have ended. Close the server before, which ends them.
func (g *Playground) Wait() { g.streams.Wait() }

func (g *Playground) joined(p *ds.Player) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.bots.Join(p, g.joins%MaxWatchers)
	g.joins++
	g.check("welcome", p, p.SendReliable(fmt.Appendf(nil, "welcome, client %d", p.ClientID())))
	calls, err := ds.Bind[Notice](p, noticeName, ds.BindConfig{RateHz: 1, Reliable: true})
	if g.check("bind", p, err) {
		g.notices[p] = calls
	}
	stream, err := p.OpenStream(context.Background(), StreamName)
	if g.check("open a stream", p, err) {
		g.streams.Go(func() {
			_, err := io.WriteString(stream, lines())
			if err == nil {
				err = stream.Close()
			}
			g.check("stream", p, err)
		})
	}
}

// lines returns the text of the stream.
func lines() string {
	var b strings.Builder
	for n := range StreamLines {
		fmt.Fprintf(&b, "line %d\n", n)
	}
	return b.String()
}

func (g *Playground) left(p *ds.Player, _ error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.notices, p)
	g.bots.Leave(p)
}

// notify calls Notice at all players.
func (g *Playground) notify(tick uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := Notice{Tick: uint32(tick), Players: uint8(min(len(g.notices), 255))}
	for p, s := range g.notices {
		_, err := s.Send(&n)
		if !g.check("call", p, err) {
			delete(g.notices, p) // the client does not handle the call
		}
	}
}

// read reads a stream of a player and answers with its size.
func (g *Playground) read(p *ds.Player, s transport.StreamReader) {
	n, err := io.Copy(io.Discard, io.LimitReader(s, maxRead))
	if g.check("read a stream", p, err) {
		g.check("answer", p, p.SendReliable(fmt.Appendf(nil, "stream %q: %d bytes", s.Name(), n)))
	}
}

// check logs err unless it is nil, and reports whether it is nil.
func (g *Playground) check(what string, p *ds.Player, err error) bool {
	if err != nil {
		g.log.Debug("demo world", "what", what, "player", p.ID(), "error", err)
	}
	return err == nil
}
