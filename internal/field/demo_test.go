//go:build linux && field

package field

import (
	"bufio"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/transport/simnet"
)

const (
	playTime = 20 * time.Second
	// headersIPv4 and headersIPv6 are the bytes of the headers of IP and UDP.
	headersIPv4, headersIPv6 = 28, 48
	metricsAddr              = "127.0.0.1:9464" // in the namespace of the server
	// moveSchema is the schema file of the calls of both clients.
	moveSchema = `{"rpc": "Move", "rate_hz": 60, "fields": [
	{"name": "At", "kind": "vec2", "resolution": 0.01, "min": -100, "max": 100},
	{"name": "Player", "kind": "uint", "width": 8},
	{"name": "N", "kind": "uint", "width": 32}]}`
)

// scenario is a network on which the client in Go and that in C++ play the demo world.
type scenario struct {
	name    string
	network func(t *testing.T) *network // nil: newNetwork
	mtu     int                         // of the router; 0: 9,000
	told    bool                        // by ICMP
	listen  string                      // of the server
	dial    string                      // without a port
	// during, if set, disturbs the play until ctx is done.
	during func(ctx context.Context, g *demo) error
	// check, if set, checks what the scenario is about.
	check func(t *testing.T, g *demo)
	// share is the minimum share of calls that have to arrive; 0: 0.95.
	share float64
}

func scenarios() []scenario {
	list := []scenario{
		{name: "first IPv4 address", listen: "0.0.0.0", dial: routed1},
		{name: "second IPv4 address", listen: "0.0.0.0", dial: routed2},
		{name: "IPv4 to a server of both families", listen: "::", dial: routed2},
		{name: "first IPv6 address", listen: "::", dial: routed1v6},
		{name: "second IPv6 address", listen: "::", dial: routed2v6},
		{name: "name of both families with IPv4", listen: routed2, dial: routedName},
		{name: "name of both families with IPv6", listen: routed2v6, dial: routedName},
		{name: "NAT that forgets", listen: "0.0.0.0", dial: routed1, during: forgetMappings, check: checkMoved},
		{name: "bottleneck with a deep queue", network: bottleneck, listen: "0.0.0.0", dial: routed1, share: 0.9},
		{
			name: "loss bursts", listen: "0.0.0.0", dial: routed1, share: 0.9,
			network: tunnel(simnet.Config{Delay: 20 * time.Millisecond, Loss: 0.05, Burst: 3}),
		},
		{
			name: "delay and reordering", listen: "::", dial: routed1v6, share: 0.9,
			network: tunnel(simnet.Config{Delay: 60 * time.Millisecond, Jitter: 15 * time.Millisecond, Loss: 0.01, Duplicate: 0.01}),
		},
		{name: "server that stops", listen: "0.0.0.0", dial: routed1, share: 0.6, during: stopServer, check: checkInterrupted},
		{name: "server at half speed", listen: "0.0.0.0", dial: routed1, during: slowServer, check: checkSlow},
	}
	for _, told := range []bool{true, false} {
		for _, mtu := range []int{576, 1000, 1280, 1500, 9000} {
			list = append(list, scenario{
				name: fmt.Sprintf("IPv4 mtu=%d icmp=%v", mtu, told), listen: "0.0.0.0", dial: routed1, mtu: mtu, told: told,
				check: func(t *testing.T, g *demo) { g.checkPath(t, mtu-headersIPv4) },
			})
			if mtu >= 1280 {
				list = append(list, scenario{
					name: fmt.Sprintf("IPv6 mtu=%d icmp=%v", mtu, told), listen: "::", dial: routed1v6, mtu: mtu, told: told,
					check: func(t *testing.T, g *demo) { g.checkPath(t, mtu-headersIPv6) },
				})
			}
		}
	}
	return list
}

// TestDemo plays the demo world in each scenario.
func TestDemo(t *testing.T) {
	for _, s := range scenarios() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			network := newNetwork
			if s.network != nil {
				network = s.network
			}
			g := &demo{network: network(t), dir: t.TempDir()}
			if s.mtu != 0 {
				g.network.setMTU(t, s.mtu, s.told)
			}
			if s.share == 0 {
				s.share = 0.95
			}
			g.play(t, &s)
		})
	}
}

// demo is a server and its two clients.
type demo struct {
	network *network
	dir     string
	server  *process
	players [2]*process
}

// process is a running program.
type process struct {
	name    string
	cmd     *exec.Cmd
	ready   chan struct{} // closed with the first line that contains mark
	ended   chan struct{} // closed after the last line
	mark    string
	mu      sync.Mutex
	lines   []string
	waitErr error // after ended
}

// start starts a program, whose lines of output are collected.
func start(t *testing.T, name, mark string, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{name: name, cmd: cmd, mark: mark, ready: make(chan struct{}), ended: make(chan struct{})}
	out, w := io.Pipe()
	cmd.Stdout, cmd.Stderr = w, w
	must(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	go p.read(out)
	go func() {
		p.waitErr = cmd.Wait()
		_ = w.Close()
	}()
	return p
}

func (p *process) read(out io.Reader) {
	defer close(p.ended)
	ready := false
	for lines := bufio.NewScanner(out); lines.Scan(); {
		line := lines.Text()
		p.mu.Lock()
		p.lines = append(p.lines, line)
		p.mu.Unlock()
		if !ready && strings.Contains(line, p.mark) {
			ready = true
			close(p.ready)
		}
	}
}

// output returns the lines so far.
func (p *process) output() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.lines...)
}

// await waits until the program has printed its mark.
func (p *process) await(t *testing.T) {
	t.Helper()
	select {
	case <-p.ready:
	case <-p.ended:
		t.Fatalf("%s ended: %v\n%s", p.name, p.waitErr, strings.Join(p.output(), "\n"))
	}
}

// count returns the number of lines of output that contain a text.
func (p *process) count(text string) (n int) {
	for _, line := range p.output() {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}

// stop stops the process for a time.
func (p *process) stop(ctx context.Context, d time.Duration) error {
	if err := p.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	pause(ctx, d)
	return p.cmd.Process.Signal(syscall.SIGCONT)
}

// value returns a counter that a client has printed.
func (p *process) value(t *testing.T, name string) float64 {
	t.Helper()
	for _, line := range p.output() {
		if text, ok := strings.CutPrefix(line, name+"="); ok {
			v, err := strconv.ParseFloat(text, 64)
			must(t, err)
			return v
		}
	}
	t.Fatalf("%s has not printed %s", p.name, name)
	return 0
}

// play runs the server and both clients, and checks what they print and record.
func (g *demo) play(t *testing.T, s *scenario) {
	t.Helper()
	schema, record := filepath.Join(g.dir, "Move.schema.json"), filepath.Join(g.dir, "record.csv")
	must(t, os.WriteFile(schema, []byte(moveSchema), 0o600))
	g.server = start(t, "server", "msg=listening", g.network.server.command(programs+"/uplink", "ds", "--world", "--insecure",
		"--schema", schema, "--record", record, "--metrics", metricsAddr, "--listen", address(s.listen)))
	t.Cleanup(func() {
		if t.Failed() {
			for _, p := range []*process{g.server, g.players[0], g.players[1]} {
				if p != nil {
					t.Logf("%s:\n%s", p.name, strings.Join(p.output(), "\n"))
				}
			}
		}
	})
	g.server.await(t)
	for i, program := range []string{"player", "uplink_world"} {
		g.players[i] = start(t, program, "connected", g.network.client.command(programs+"/"+program,
			address(s.dial), fmt.Sprint(playTime.Seconds()), fmt.Sprint(i+1)))
	}
	for _, p := range g.players {
		p.await(t)
	}
	ctx, cancel := context.WithCancel(t.Context())
	disturbed := make(chan error, 1)
	go func() {
		if s.during != nil {
			disturbed <- s.during(ctx, g)
		}
		close(disturbed)
	}()
	for _, p := range g.players {
		<-p.ended
	}
	cancel()
	must(t, <-disturbed)
	if s.check != nil {
		s.check(t, g)
	}
	must(t, g.server.cmd.Process.Signal(syscall.SIGINT))
	<-g.server.ended
	if g.server.waitErr != nil {
		t.Errorf("server: %v", g.server.waitErr)
	}
	calls := g.recorded(t, record)
	for i, p := range g.players {
		p.checkPlayed(t, calls[i], s.share)
	}
}

func address(host string) string {
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return host + ":7777"
}

// recorded checks the calls that the server has recorded, and returns how many of each player.
func (g *demo) recorded(t *testing.T, record string) (calls [2]int) {
	t.Helper()
	f, err := os.Open(record)
	must(t, err)
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	must(t, err)
	next := [2]uint64{}
	for _, row := range rows[1:] { // player, sequence, missed, received_s, At_x, At_y, Player, N
		var v [8]float64
		for i := 4; i < len(v); i++ {
			v[i], err = strconv.ParseFloat(row[i], 64)
			must(t, err)
		}
		i, n := int(v[6])-1, v[7]
		if i < 0 || i >= len(calls) {
			t.Fatalf("a call of another player: %v", row)
		}
		sin, cos := math.Sincos(n / 60)
		if math.Abs(v[4]-50*cos) > 0.0051 || math.Abs(v[5]-50*sin) > 0.0051 || row[1] != row[7] || uint64(n) < next[i] {
			t.Errorf("call after %d: %v", next[i], row)
		}
		next[i] = uint64(n) + 1
		calls[i]++
	}
	return calls
}

// checkPlayed checks that a client has played in one session, and that what it has sent and what it
// should have received has arrived, of the calls at least a share.
func (p *process) checkPlayed(t *testing.T, calls int, share float64) {
	t.Helper()
	if n := p.count("differs: "); p.waitErr != nil || n > 0 {
		t.Errorf("%s: %v, and %d lines about differences", p.name, p.waitErr, n)
	}
	output := p.output()
	if again := output[slices.Index(output, "connected")+1:]; slices.ContainsFunc(again, func(line string) bool {
		return line == "connected" || strings.HasPrefix(line, "reconnecting")
	}) {
		t.Errorf("%s had several sessions", p.name)
	}
	sent := p.value(t, "calls")
	t.Logf("%s: %d of %.0f calls, %.0f of %.0f snapshots, %.0f of %.0f frames starved, rate %.2f, %.0f uploads, path %.0f bytes, RTT %.0f ms",
		p.name, calls, sent, p.value(t, "snapshots"), p.value(t, "ticks"), p.value(t, "starved"), p.value(t, "frames"),
		p.value(t, "lowest_rate"), p.value(t, "uploads"), p.value(t, "path"), p.value(t, "rtt_ms"))
	if float64(calls) < share*sent || sent == 0 {
		t.Errorf("%s: %d of %.0f calls have arrived", p.name, calls, sent)
	}
	if got, all := p.value(t, "snapshots"), p.value(t, "ticks"); got < 0.7*all || p.value(t, "objects") < got {
		t.Errorf("%s has received %.0f snapshots in %.0f ticks, with %.0f objects", p.name, got, all, p.value(t, "objects"))
	}
	for got, want := range map[string]string{"echoes": "echoes_sent", "uploads": "uploads_sent", "answers": "answers_wanted"} {
		if a, b := p.value(t, got), p.value(t, want); a != b || a == 0 {
			t.Errorf("%s: %s=%.0f, %s=%.0f", p.name, got, a, want, b)
		}
	}
	if p.value(t, "lines") != 4096 || p.value(t, "notices") == 0 {
		t.Errorf("%s has received %.0f lines of the stream and %.0f calls", p.name, p.value(t, "lines"), p.value(t, "notices"))
	}
}

func bottleneck(t *testing.T) *network {
	n := newNetwork(t)
	n.setRate(t, 1000, 2000)
	return n
}

func tunnel(link simnet.Config) func(*testing.T) *network {
	return func(t *testing.T) *network { return newTunnel(t, link) }
}

// pause waits, and reports whether ctx is not done.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// forgetMappings translates the addresses of the clients, and makes the router forget them every
// three seconds. Each other time its own address changes.
func forgetMappings(ctx context.Context, g *demo) error {
	if err := command("ip", "-n", string(g.network.router), "addr", "add", "10.88.1.253/24", "dev", "r1"); err != nil {
		return err
	}
	for i := 0; ; i++ {
		source := []string{"10.88.1.254", "10.88.1.253"}[i/2%2]
		if err := errors.Join(g.network.translate(source), g.network.forget()); err != nil || !pause(ctx, 3*time.Second) {
			return err
		}
	}
}

// checkMoved checks that both players had several addresses.
func checkMoved(t *testing.T, g *demo) {
	if n := g.metric(t, `uplink_ds_events_total{cause="",event="moved"}`); n < 6 {
		t.Errorf("the players had %.0f other addresses", n)
	}
}

// stopServer stops the process of the server for three seconds, and later for five.
func stopServer(ctx context.Context, g *demo) error {
	for _, d := range []time.Duration{3 * time.Second, 5 * time.Second} {
		if !pause(ctx, 4*time.Second) {
			break
		}
		if err := g.server.stop(ctx, d); err != nil {
			return err
		}
	}
	return nil
}

// checkInterrupted checks that both clients noticed that the server did not answer.
func checkInterrupted(t *testing.T, g *demo) {
	for _, p := range g.players {
		if p.count("interrupted") == 0 {
			t.Errorf("%s has not noticed that the server stopped", p.name)
		}
	}
	if p := g.players[0]; p.count("interrupted") != p.count("continues") {
		t.Errorf("%s has not noticed that the server continued", p.name)
	}
}

// slowServer stops the process of the server again and again, for ten seconds, so that its world
// has half of its ticks: of the ticks in a stop, one is left, which comes at its end.
func slowServer(ctx context.Context, g *demo) error {
	if !pause(ctx, 4*time.Second) {
		return nil
	}
	for start := time.Now(); time.Since(start) < 10*time.Second && ctx.Err() == nil; pause(ctx, 20*time.Millisecond) {
		if err := g.server.stop(ctx, 121*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// checkSlow checks that the clients followed the ticks, and rarely had nothing to show.
func checkSlow(t *testing.T, g *demo) {
	for _, p := range g.players {
		if r := p.value(t, "lowest_rate"); r > 0.75 {
			t.Errorf("%s has measured a tick rate of %.2f", p.name, r)
		}
		if s, n := p.value(t, "starved"), p.value(t, "frames"); s > 0.1*n {
			t.Errorf("%s: %.0f of %.0f frames starved", p.name, s, n)
		}
	}
	if g.players[0].count("tick rate") == 0 {
		t.Error("the client in Go has no event of the tick rate")
	}
	if g.metric(t, `uplink_ds_events_total{cause="off",event="tick_rate"}`) == 0 {
		t.Error("the server has no event of its tick rate")
	}
}

// checkPath checks the path size that both clients have found, in bytes of UDP: at most what the
// path carries, and not less than a client uses without a search. A busy machine may delay the rest
// of the search.
func (g *demo) checkPath(t *testing.T, carried int) {
	least := 1200
	if carried < least {
		least = 548
	}
	for _, p := range g.players {
		if size := int(p.value(t, "path")); size > carried || size < least {
			t.Errorf("%s has found a path of %d bytes, which carries %d", p.name, size, carried)
		}
	}
}

// metric returns the value of a metric of the server.
func (g *demo) metric(t *testing.T, name string) float64 {
	t.Helper()
	out, err := g.network.server.command("curl", "-s", "http://"+metricsAddr+"/metrics").Output()
	must(t, err)
	for line := range strings.Lines(string(out)) {
		if rest, ok := strings.CutPrefix(line, name+" "); ok {
			var v float64
			if _, err := fmt.Sscan(rest, &v); err != nil {
				t.Fatal(err)
			}
			return v
		}
	}
	t.Fatalf("no metric %s", name)
	return 0
}
