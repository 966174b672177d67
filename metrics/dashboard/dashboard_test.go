package dashboard

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// watched is a server that records calls of Profile.
type watched struct {
	*ds.Server
	mu    sync.Mutex
	every []int
}

func (w *watched) Profile(every int) {
	w.mu.Lock()
	w.every = append(w.every, every)
	w.mu.Unlock()
	w.Server.Profile(every)
}

func (w *watched) measured() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return fmt.Sprint(w.every)
}

// game is a server with players that call an RPC 60 times a second, and its dashboard.
type game struct {
	*Dashboard
	src   *watched
	conns []*client.Conn
	stop  func() // ends Run and the players
}

func newGame(t *testing.T, players int, cfg Config) *game {
	t.Helper()
	link := simnet.Config{Delay: 30 * time.Millisecond, Loss: 0.05, Burst: 2, Seed: 11}
	network := uplinktest.NewNetwork(t, link, simnet.Config{Delay: 30 * time.Millisecond, Seed: 12})
	srv := uplinktest.Serve(t, network, ds.Config{}, func(s *ds.Server) error {
		return ds.Handle(s, "Move", func(*ds.Player, ds.Frame[uplinktest.Move]) {})
	})
	g := &game{src: &watched{Server: srv.Server}}
	cfg.Open = true
	g.Dashboard = newDashboard(g.src, cfg)
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { g.Run(ctx) })
	for i := range players {
		conn := uplinktest.Dial(t, network, client.Config{})
		g.conns = append(g.conns, conn)
		stream := uplinktest.Bind(t, conn, "Move")
		running.Go(func() {
			tick := time.NewTicker(time.Second / 60)
			defer tick.Stop()
			for n := uint64(0); ; n++ {
				select {
				case <-ctx.Done():
					return
				case <-tick.C:
				}
				m := uplinktest.MoveAt(uint64(i), n)
				_, _ = stream.Send(&m) // fails after the player has left
			}
		})
	}
	g.stop = func() {
		stop()
		running.Wait()
	}
	t.Cleanup(g.stop)
	return g
}

// visitor is an open page.
type visitor struct {
	close context.CancelFunc
	done  chan struct{}
	code  int

	mu   sync.Mutex
	text strings.Builder
	head http.Header
}

func (v *visitor) Header() http.Header  { return v.head }
func (v *visitor) WriteHeader(code int) { v.code = code }
func (v *visitor) Flush()               {}

func (v *visitor) Write(b []byte) (int, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.text.Write(b)
}

func (g *game) visit() *visitor {
	ctx, cancel := context.WithCancel(context.Background())
	v := &visitor{close: cancel, done: make(chan struct{}), head: http.Header{}}
	go func() {
		defer close(v.done)
		g.ServeHTTP(v, httptest.NewRequestWithContext(ctx, "GET", "/events", nil))
	}()
	return v
}

func (v *visitor) leave() {
	v.close()
	<-v.done
}

// events returns the data of all events with this name so far.
func events[T any](t *testing.T, v *visitor, name string) (all []T) {
	t.Helper()
	v.mu.Lock()
	defer v.mu.Unlock()
	for e := range strings.SplitSeq(strings.TrimSuffix(v.text.String(), "\n\n"), "\n\n") {
		head, data, ok := strings.Cut(e, "\ndata: ")
		if !ok || !strings.HasPrefix(head, "event: ") {
			t.Fatalf("event %q", e)
		}
		if head == "event: "+name {
			var one T
			uplinktest.Must(t, json.Unmarshal([]byte(data), &one))
			all = append(all, one)
		}
	}
	return all
}

// state is the event of the same name.
type state struct {
	RPCs     []flow
	Profiles []profile
}

func last[T any](all []T) T { return all[len(all)-1] }

// get returns the JSON at a path of the dashboard.
func get[T any](t *testing.T, g *game, path string, code int) (v T) {
	t.Helper()
	w := ask(g, "GET", path, "localhost")
	if w.Code != code {
		t.Fatalf("%s: code %d, %s; want %d", path, w.Code, w.Body, code)
	}
	if code == http.StatusOK {
		uplinktest.Must(t, json.Unmarshal(w.Body.Bytes(), &v))
	}
	return v
}

// TestPage opens a page after half a minute, and checks its events.
func TestPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGame(t, 3, Config{Title: "arena", Hint: "come", Extension: "demo", Metrics: "metrics", ReadOnly: true, Name: func(*ds.Player) string { return hostile[0] }})
		time.Sleep(30*time.Second + 10*time.Millisecond)
		if g.src.measured() != "[]" || len(g.players.players) != 0 {
			t.Errorf("no page is open, but measured %s, %d players", g.src.measured(), len(g.players.players))
		}
		v := g.visit()
		time.Sleep(20 * time.Second)
		got := events[hello](t, v, "hello")[0]
		got.Begun = ""
		if want := (hello{"", "arena", "come", "demo", "metrics", true, false, 600, 10}); got != want {
			t.Errorf("hello %+v, want %+v", got, want)
		}
		past := events[[]sample](t, v, "history")[0]
		samples := events[sample](t, v, "sample")
		if len(past) != 30 || len(samples) != 20 || past[9].Link != nil {
			t.Errorf("%d samples of the past, %d since; the tenth is %+v", len(past), len(samples), past[9])
		}
		calls := uint64(0)
		for _, s := range past {
			calls += s.RPCs[0].Calls
		}
		var lost, bursts float64
		for _, s := range samples {
			calls += s.RPCs[0].Calls
			lost += float64(s.Link.Lost)
			bursts += float64(s.Link.Bursts)
			if rtt := s.Link.Median; rtt < 600 || rtt > 800 {
				t.Errorf("RTT %v tenths of a millisecond, the link's is 600", rtt)
			}
		}
		if lost < 20*3*60*0.02 || lost/bursts < 1.3 || lost/bursts > 3 {
			t.Errorf("%v datagrams lost in %v bursts, the link loses 5 %% in bursts of 2", lost, bursts)
		}
		states := events[state](t, v, "state")
		if n := last(states).RPCs[0].Calls; n != calls || len(states) != 21 {
			t.Errorf("%v calls in all, the samples have %v; %d states", n, calls, len(states))
		}
		list := get[players](t, g, "/players?n=2&sort=calls", 200)
		if len(list.Rows) != 2 || list.Found != 3 || list.Rows[0].Name != hostile[0] || list.Rows[0].Calls < 50 || list.Rows[0].Calls < list.Rows[1].Calls {
			t.Errorf("players: %+v", list)
		}
		line := get[timeline](t, g, "/player?id="+list.Rows[0].ID, 200)
		if len(line.Calls) != 20 || line.ID != list.Rows[0].ID {
			t.Errorf("%d seconds of player %v", len(line.Calls), line.ID)
		}
		v.leave()
		if code := v.code; code != 0 && code != 200 {
			t.Errorf("code %d", code)
		}
	})
}

// TestBits compares the bits of fields in samples with those of the server's profile.
func TestBits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGame(t, 2, Config{})
		time.Sleep(2500 * time.Millisecond)
		v := g.visit()
		time.Sleep(10 * time.Second)
		states := events[state](t, v, "state")
		p := last(states).Profiles[0]
		sum := p.rest()
		for _, f := range p.Fields {
			sum += f.Bits
		}
		frames, bits := uint64(0), 0.0
		for _, s := range events[sample](t, v, "sample") {
			frames += s.Bits[0].Frames
			bits += s.Bits[0].Rest
			for _, n := range s.Bits[0].Fields {
				bits += n
			}
		}
		if want := p.Frames - states[0].Profiles[0].Frames; frames != want || frames < 500 || bits < 0.99*sum || bits > 1.01*sum {
			t.Errorf("%v frames with %v bits in the samples, %v with %v in all", frames, bits, want, sum)
		}
		d := get[fieldDetail](t, g, "/field?rpc=Move&field=0", 200)
		if d.Name != "Location" || d.Schema != "Location vec3 resolution=0.1 velocity=Velocity" || len(d.Components) != 3 || len(d.Components[0].Residuals) < 2 {
			t.Errorf("%+v", d)
		}
		v.leave()
	})
}

// TestLinger checks that timelines survive a reload of the page, and are discarded later, those of
// players who have left at once. The end of Run closes pages, and later ones are refused.
func TestLinger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGame(t, 3, Config{})
		v := g.visit()
		time.Sleep(5*time.Second + 10*time.Millisecond)
		v.leave()
		time.Sleep(linger - 3*time.Second)
		v = g.visit()
		time.Sleep(2 * time.Second)
		path := "/player?id=" + strconv.FormatUint(g.conns[0].ID(), 10)
		if n := len(get[timeline](t, g, path, 200).Calls); n < 15 {
			t.Errorf("after the page was loaded again its player has %d seconds", n)
		}
		if g.src.measured() != "[1]" {
			t.Errorf("measured %s", g.src.measured())
		}
		gone := "/player?id=" + strconv.FormatUint(g.conns[1].ID(), 10)
		get[any](t, g, gone, 200)
		uplinktest.Must(t, g.conns[1].Close())
		time.Sleep(3 * time.Second)
		get[any](t, g, gone, 404)
		if list := get[players](t, g, "/players?n=10", 200); len(list.Rows) != 2 || list.Tracked != 2 {
			t.Errorf("%+v", list)
		}
		happened := get[happenings](t, g, "/happened?n=2", 200)
		if e := happened.Rows[0]; len(happened.Rows) != 2 || happened.Kept != 4 || e.Kind != "left" || e.Cause != "quit" || "/player?id="+e.Player != gone || e.Count != 1 {
			t.Errorf("%+v", happened)
		}
		v.leave()
		time.Sleep(linger + 3*time.Second)
		get[any](t, g, path, 404)
		get[any](t, g, "/field?rpc=Move&field=0", 404)
		if g.src.measured() != "[1 0]" {
			t.Errorf("measured %s", g.src.measured())
		}
		v = g.visit()
		time.Sleep(time.Second)
		g.stop()
		<-v.done
		v = g.visit()
		v.leave()
		if v.code != http.StatusServiceUnavailable {
			t.Errorf("code %d after the end", v.code)
		}
	})
}

// TestHistory checks that the history has ten minutes, the oldest sample first.
func TestHistory(t *testing.T) {
	var d Dashboard
	for i := range 2*span + 7 {
		d.keep([]byte(strconv.Itoa(i)))
	}
	if n := len(d.history); n != span || string(d.history[0]) != strconv.Itoa(span+7) || string(d.history[span-1]) != strconv.Itoa(2*span+6) {
		t.Errorf("%d samples, from %s to %s", n, d.history[0], d.history[n-1])
	}
}

// TestFiles checks the files of the page and their security headers.
func TestFiles(t *testing.T) {
	d := New(nil, Config{Open: true})
	for path, want := range map[string]string{
		"/":                                "text/html",
		"/assets/main.js":                  "text/javascript",
		"/assets/style.css":                "text/css",
		"/assets/icon.svg":                 "image/svg",
		"/assets/vendor/uPlot.iife.min.js": "text/javascript",
		"/assets/vendor/uPlot.min.css":     "text/css",
		"/assets/vendor/uPlot.LICENSE":     "text/plain",
	} {
		w := ask(d, "GET", path, "localhost")
		h := w.Header()
		if w.Code != http.StatusOK || !strings.HasPrefix(h.Get("Content-Type"), want) || w.Body.Len() == 0 {
			t.Errorf("%s: code %d, %s, %d bytes", path, w.Code, h.Get("Content-Type"), w.Body.Len())
		}
		for name, want := range map[string]string{
			"Content-Security-Policy": "default-src 'self';", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
			"Cross-Origin-Resource-Policy": "same-origin", "Cache-Control": "no-",
		} {
			if !strings.HasPrefix(h.Get(name), want) {
				t.Errorf("%s: %s is %q", path, name, h.Get(name))
			}
		}
		if strings.Contains(h.Get("Content-Security-Policy"), "unsafe") {
			t.Errorf("%s: %s", path, h.Get("Content-Security-Policy"))
		}
	}
	for path, code := range map[string]int{
		"/assets/": 404, "/assets": 404, "/assets/vendor/": 404, "/assets/../handler.go": 307, "/index.html": 404,
		"/player": 400, "/player?id=-1": 400, "/player?id=18446744073709551616": 400, "/player?id=1": 404,
		"/players": 400, "/players?n=0": 400, "/players?n=201": 400, "/players?n=1&sort=x": 400, "/players?n=1&sort=": 200, "/happened": 400, "/happened?n=0": 400,
		"/field": 400, "/field?rpc=Move&field=x": 400, "/field?rpc=Move&field=0": 404, "/field?rpc=Move&field=-1": 404,
	} {
		if w := ask(d, "GET", path, "localhost"); w.Code != code {
			t.Errorf("%s: code %d, want %d", path, w.Code, code)
		}
	}
	if w := ask(d, "POST", "/events", "localhost"); w.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST: code %d", w.Code)
	}
}
