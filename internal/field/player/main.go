// Player is a client of the demo world of "uplink ds --world" for the tests of internal/field. It
// uses every kind of message, checks all received data, and prints events, errors and counters, in
// the format of native/examples/world.cpp.
//
//	player HOST:PORT SECONDS NUMBER
//
// NUMBER is the argument Player of each of its calls. After the play time, player waits until all
// reliable data has arrived. The exit code is 1 if data is wrong or does not arrive.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/interpolate"
	"github.com/uplink-rpc/uplink/transport"
)

// move is the argument of the calls: a position on a circle, the number of the player, and the
// number of the call.
type move struct {
	At     schema.Vec2 `uplink:"resolution=0.01,min=-100,max=100"`
	Player uint8
	N      uint32
}

// bot is an object of the world, and notice the argument of the calls of the server.
type (
	bot struct {
		Position schema.Vec3 `uplink:"resolution=0.01,min=-100,max=200,velocity=Velocity" interpolate:"position"`
		Velocity schema.Vec3 `uplink:"resolution=0.05,min=-20,max=20" interpolate:"velocity"`
		Firing   bool
	}
	notice struct {
		Tick    uint32
		Players uint8
	}
)

const (
	callHz      = 60
	worldHz     = 20
	uploadBytes = 100_000
	streamLines = 4096
	// settle is the time after which a client has measured the rate of the world's ticks.
	settle = 3 * time.Second
	// patience is the time after the play time for which the player waits for missing data.
	patience = time.Minute
)

// botAt returns where a bot is at a time in seconds.
func botAt(i int, t float64) (x, y float64) {
	const columns, rows, field = 12, 8, 80.0
	_, part := math.Modf(float64(i) / math.Phi)
	radius, speed := 4+16*part, 3+float64(i%4)
	sin, cos := math.Sincos(t*speed/radius + float64(i))
	return field*(float64(i%columns)+.5)/columns + radius*cos, field*(float64(i/columns)+.5)/rows + radius*sin
}

// player is the state of the program.
type player struct {
	number uint8
	conn   *client.Conn
	rpc    *client.Stream[move]
	view   *client.SnapshotView[bot]

	// The following fields are used by the main goroutine only. lowestRate is relative to the
	// nominal rate of ticks.
	calls, frames, starved int
	lowestRate             float64

	mu                                 sync.Mutex
	echoes, wantEchoes                 int
	uploads, wantUploads               int
	answers, wantAnswers               int
	notices, snapshots, objects, lines int
	lastNotice, firstTick, lastTick    uint64
	path                               int // bytes
	differences                        int
}

func main() {
	seconds, number := 0, 0
	if len(os.Args) == 4 {
		seconds, _ = strconv.Atoi(os.Args[2])
		number, _ = strconv.Atoi(os.Args[3])
	}
	if seconds <= 0 || number <= 0 || number > math.MaxUint8 {
		fmt.Fprintln(os.Stderr, "usage: player HOST:PORT SECONDS NUMBER")
		os.Exit(2)
	}
	p := &player{number: uint8(number), lowestRate: 1}
	if err := p.run(context.Background(), os.Args[1], time.Duration(seconds)*time.Second); err != nil {
		p.differ("%v", err)
	}
	if p.differences > 0 {
		os.Exit(1)
	}
}

// differ prints an error in the received data.
func (p *player) differ(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.differLocked(format, args...)
}

func (p *player) differLocked(format string, args ...any) {
	if p.differences++; p.differences <= 20 {
		fmt.Printf("differs: "+format+"\n", args...)
	}
}

func (p *player) run(ctx context.Context, addr string, duration time.Duration) (err error) {
	var handlers client.Handlers
	if err := client.Handle(&handlers, "Notice", p.notice); err != nil {
		return err
	}
	p.conn, err = client.Dial(ctx, addr, client.Config{
		Transport: client.Transport{Insecure: true}, Handlers: &handlers, OnEvent: p.event, OnMessage: p.message, Hooks: client.Hooks{OnStream: p.stream},
		OnQuality: p.quality, Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
	if err != nil {
		return err
	}
	defer p.conn.Close() //nolint:errcheck // the program ends
	if p.rpc, err = client.Bind[move](ctx, p.conn, "Move", client.BindConfig{RateHz: callHz}); err != nil {
		return err
	}
	p.view, err = client.SubscribeSnapshots(ctx, p.conn, "bots", client.SnapshotConfig[bot]{
		Handle: p.snapshot, Interpolate: &interpolate.Config{},
	})
	if err != nil {
		return err
	}
	playing, stop := context.WithTimeout(ctx, duration)
	defer stop()
	var others sync.WaitGroup
	others.Go(func() { p.upload(ctx, playing) })
	others.Go(func() { p.request(ctx, playing) })
	p.play(playing)
	ended := make(chan struct{})
	go func() {
		others.Wait()
		close(ended)
	}()
	p.finish(ended)
	return p.conn.Err()
}

// play calls the server, sends messages, and shows the world.
func (p *player) play(ctx context.Context) {
	start := time.Now()
	ticker := time.NewTicker(time.Second / callHz)
	defer ticker.Stop()
	var s interpolate.Sample[bot]
	for ctx.Err() == nil {
		now := <-ticker.C
		sin, cos := math.Sincos(float64(p.calls) / callHz)
		_, err := p.rpc.Send(&move{At: schema.Vec2{X: 50 * cos, Y: 50 * sin}, Player: p.number, N: uint32(p.calls)})
		if err != nil {
			p.differ("call: %v", err)
			return
		}
		if p.calls%6 == 0 {
			p.mu.Lock()
			n := p.wantEchoes
			p.wantEchoes++
			p.mu.Unlock()
			if err := p.conn.SendReliable(fmt.Appendf(nil, "message %d", n)); err != nil {
				p.differ("message: %v", err)
				return
			}
		}
		p.calls++
		if p.view.Sample(now, &s) && now.Sub(start) > settle {
			p.frames++
			if s.Starved {
				p.starved++
			}
			if ticks, ok := p.view.Ticks(now); ok {
				p.lowestRate = min(p.lowestRate, ticks.Rate)
			}
		}
	}
}

// upload sends one stream after the other.
func (p *player) upload(ctx, playing context.Context) {
	for playing.Err() == nil {
		w, err := p.conn.OpenStream(ctx, "upload")
		if err == nil {
			p.count(&p.wantUploads)
			_, err = w.Write(make([]byte, uploadBytes))
		}
		if err == nil {
			err = w.Close()
		}
		if err != nil {
			p.differ("upload: %v", err)
			return
		}
	}
}

// request sends one request after the other.
func (p *player) request(ctx, playing context.Context) {
	for n := 0; playing.Err() == nil; n++ {
		p.count(&p.wantAnswers)
		question := fmt.Sprintf("request %d", n)
		answer, err := p.conn.Request(ctx, []byte(question))
		if err != nil || string(answer) != question {
			p.differ("%s: %q, %v", question, answer, err)
			return
		}
		p.count(&p.answers)
		select {
		case <-playing.Done():
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func (p *player) count(n *int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	*n++
}

// finish waits for reliable data in flight, and prints the counters. ended is closed when all
// uploads and requests have ended.
func (p *player) finish(ended <-chan struct{}) {
	deadline := time.After(patience)
	for wait := true; wait; {
		select {
		case <-ended:
			p.mu.Lock()
			wait = p.echoes < p.wantEchoes || p.uploads < p.wantUploads || p.lines < streamLines
			p.mu.Unlock()
			time.Sleep(10 * time.Millisecond)
		case <-deadline:
			p.differ("not everything that is reliable has arrived")
			wait = false
		}
		if p.conn.Err() != nil {
			wait = false
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range []struct {
		name  string
		value any
	}{
		{"calls", p.calls},
		{"echoes", p.echoes},
		{"echoes_sent", p.wantEchoes},
		{"uploads", p.uploads},
		{"uploads_sent", p.wantUploads},
		{"answers", p.answers},
		{"answers_wanted", p.wantAnswers},
		{"lines", p.lines},
		{"notices", p.notices},
		{"snapshots", p.snapshots},
		{"ticks", p.lastTick - p.firstTick + 1},
		{"objects", p.objects},
		{"frames", p.frames},
		{"starved", p.starved},
		{"lowest_rate", p.lowestRate},
		{"path", p.path},
		{"rtt_ms", p.conn.RTT().Milliseconds()},
	} {
		fmt.Printf("%s=%v\n", c.name, c.value)
	}
}

func (p *player) event(e client.Event) {
	switch {
	case e.Mismatch != nil:
		p.differ("mismatch: %v", e.Mismatch)
	case e.TickRate != 0:
		fmt.Printf("tick rate %.2f\n", e.TickRate)
	case e.State == client.Connected && e.New:
		fmt.Println("connected")
	case e.Err != nil:
		fmt.Printf("%v: %v\n", e.State, e.Err)
	case e.State == client.Connected:
		fmt.Println("continues")
	default:
		fmt.Println(e.State)
	}
}

func (p *player) quality(q client.Quality) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.path = q.PathSize
}

// message receives the welcome, echoes, and the sizes of uploads.
func (p *player) message(b []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch m := string(b); {
	case m == fmt.Sprintf("message %d", p.echoes):
		p.echoes++
	case m == fmt.Sprintf("stream %q: %d bytes", "upload", uploadBytes):
		p.uploads++
	case !strings.HasPrefix(m, "welcome"):
		p.differLocked("message %q after %d echoes", m, p.echoes)
	}
}

func (p *player) stream(r transport.StreamReader) {
	n := 0
	buf, text := make([]byte, 4096), ""
	for {
		k, err := r.Read(buf)
		text += string(buf[:k])
		for {
			line, rest, ok := strings.Cut(text, "\n")
			if !ok {
				break
			}
			if text = rest; line != fmt.Sprintf("line %d", n) {
				p.differ("line %d of the stream is %q", n, line)
			}
			n++
		}
		if err != nil {
			break
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lines += n
}

func (p *player) notice(c client.Call[notice]) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if tick := uint64(c.Value.Tick); p.notices > 0 && tick != p.lastNotice+worldHz {
		p.differLocked("notice of tick %d after that of %d", tick, p.lastNotice)
	}
	p.notices++
	p.lastNotice = uint64(c.Value.Tick)
}

func (p *player) snapshot(s *client.Snapshot[bot]) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.snapshots == 0 {
		p.firstTick = s.Tick
	}
	p.snapshots++
	p.lastTick = max(p.lastTick, s.Tick)
	for i, id := range s.IDs {
		tick := s.Tick
		if len(s.Ages) > 0 {
			tick -= s.Ages[i]
		}
		object, _ := client.SplitID(id)
		x, y := botAt(int(object), float64(tick)/worldHz)
		at := s.Objects[i].Position
		if math.Abs(at.X-x) > 0.0051 || math.Abs(at.Y-y) > 0.0051 {
			p.differLocked("tick %d, bot %d as of tick %d is at %.3f %.3f instead of %.3f %.3f", s.Tick, object, tick, at.X, at.Y, x, y)
		}
		p.objects++
	}
}
