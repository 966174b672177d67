//go:build linux

package natsstore_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/internal/trace"
	"github.com/uplink-rpc/uplink/token"
)

var (
	chaosFor     = flag.Duration("chaos", 0, "how long TestChaos runs; 0: not at all")
	chaosHold    = flag.Duration("hold", 6*time.Second, "how long each fault of TestChaos lasts")
	chaosPlayers = flag.Int("players", 30, "players of TestChaos")
	chaosAlerts  = flag.Bool("alerts", false, "run Prometheus with the alerts in deploy; faults then last until theirs fires, up to 2 minutes")
	chaosOnly    = flag.String("fault", "", "regular expression of the names of the faults of TestChaos")
	chaosSeed    = flag.Uint64("seed", 0, "seed of the faults of TestChaos; 0: a random one, which is printed")
)

// program is a program of a fleet, which can be killed and started again with the same arguments.
type program struct {
	t    *testing.T
	name string
	args []string
	cmd  *exec.Cmd
	log  *record
}

func (p *program) start() {
	p.t.Helper()
	p.cmd = exec.Command(p.args[0], p.args[1:]...)
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
}

// end sends a signal and waits for the end.
func (p *program) end(s os.Signal) {
	if p.cmd != nil {
		_ = p.cmd.Process.Signal(s)
		_ = p.cmd.Wait()
		p.cmd = nil
	}
}

// chaosFleet is a fleet of programs: three NATS servers, two uplink-nats, a backend and three
// servers.
type chaosFleet struct {
	t                *testing.T
	dir              string
	nats, stores, ds []*program
	backend          *program
	backendURL       string
	prometheus       string   // URL; empty: none
	addrs            []string // of the servers
	trace            *trace.Trace
	schema           string
	targets          map[string][]string // of Prometheus, by job
	players          []*chaosPlayer
	next             uint64 // client id
}

// chaosPlayer is a player with an account of its interruptions.
type chaosPlayer struct {
	conn *client.Conn
	stop func()

	mu    sync.Mutex
	lost  []string // interruptions since the last look
	sent  uint64
	ended error
}

func newChaosFleet(t *testing.T) *chaosFleet {
	t.Helper()
	f := &chaosFleet{t: t, dir: t.TempDir()}
	for pkg, dir := range map[string]string{"./cmd/uplink": "../..", "./cmd/uplink-nats": ".", "github.com/nats-io/nats-server/v2": "."} {
		c := exec.Command("go", "build", "-o", filepath.Join(f.dir, strings.TrimSuffix(filepath.Base(pkg), "v2")+map[bool]string{true: "nats-server"}[strings.HasSuffix(pkg, "v2")]), pkg)
		c.Dir = dir
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	f.schema = "../../testdata/traces/portal2_coop_60hz.schema.json"
	schema, err := trace.LoadSchema(f.schema)
	if err != nil {
		t.Fatal(err)
	}
	if f.trace, err = trace.Load("../../testdata/traces/portal2_coop_60hz.csv.gz", schema); err != nil {
		t.Fatal(err)
	}
	f.keygen("ds.key")
	f.keygen("other.key")
	ports := freePorts(t, 3+3+2+1+3+3)
	at := func(i int) string { return fmt.Sprintf("127.0.0.1:%d", ports[i]) }
	var urls, storeURLs []string
	for i := range 3 {
		urls = append(urls, "nats://"+at(i))
		config := fmt.Sprintf("listen: %q\nserver_name: n%d\njetstream { store_dir: %q }\ncluster { name: chaos, listen: %q, routes: [nats-route://%s, nats-route://%s] }\n",
			at(i), i, f.path(fmt.Sprintf("nats-%d", i)), at(3+i), at(3+(i+1)%3), at(3+(i+2)%3))
		f.write(fmt.Sprintf("nats-%d.conf", i), config)
		f.nats = append(f.nats, f.program(fmt.Sprintf("nats-%d", i), "nats-server", "-c", f.path(fmt.Sprintf("nats-%d.conf", i))))
	}
	for i := range 2 {
		storeURLs = append(storeURLs, "http://"+at(6+i)+"/")
		f.stores = append(f.stores, f.program(fmt.Sprintf("store-%d", i), "uplink-nats", "-nats", strings.Join(urls, ","), "-replicas", "3", "-listen", at(6+i)))
	}
	f.backendURL = "http://" + at(8) + "/"
	f.backend = f.program("backend", "uplink", "backend", "--listen", at(8), "--store", strings.Join(storeURLs, ","), "--key", f.path("ds.key.issuer"))
	for i := range 3 {
		f.addrs = append(f.addrs, at(9+i))
		key := fmt.Sprintf("ds-%d.key", i)
		f.copy("ds.key", key)
		f.ds = append(f.ds, f.program(fmt.Sprintf("ds-%d", i), "uplink", "ds", "--listen", at(9+i), "--schema", f.schema, "--key", f.path(key),
			"--fleet", strings.Join(storeURLs, ","), "--fleet-name", fmt.Sprintf("ds-%d", i), "--metrics", at(12+i), "--record", f.path(fmt.Sprintf("moves-%d.csv", i)), "--overwrite"))
	}
	f.targets = map[string][]string{"uplink": {at(12), at(13), at(14)}, "uplink-backend": {at(8)}, "uplink-nats": {at(6), at(7)}}
	return f
}

// startPrometheus starts Prometheus with the rules in deploy.
func (f *chaosFleet) startPrometheus() {
	f.t.Helper()
	rules, err := filepath.Abs("../../deploy/prometheus")
	if err != nil {
		f.t.Fatal(err)
	}
	config := fmt.Sprintf("global: {scrape_interval: 1s, evaluation_interval: 1s}\nrule_files: [%[1]s/recording.yml, %[1]s/alerts.yml]\nscrape_configs:\n", rules)
	for job, targets := range f.targets {
		config += fmt.Sprintf("  - {job_name: %s, static_configs: [{targets: [%s]}]}\n", job, strings.Join(targets, ", "))
	}
	f.write("prometheus.yml", config)
	binary, err := exec.LookPath("prometheus")
	if err != nil {
		f.t.Fatal(err)
	}
	p := f.program("prometheus", binary, "--config.file="+f.path("prometheus.yml"), "--storage.tsdb.path="+f.path("metrics"), "--web.listen-address=127.0.0.1:0")
	address := regexp.MustCompile(`msg="Listening on" address=(\S+)`)
	eventually(f.t, "Prometheus listens", func() bool {
		m := address.FindStringSubmatch(p.log.tail(1 << 20))
		if m != nil {
			f.prometheus = "http://" + m[1]
		}
		return m != nil
	})
	eventually(f.t, "it is ready", func() bool {
		res, err := http.Get(f.prometheus + "/-/ready")
		if err != nil {
			return false
		}
		_ = res.Body.Close()
		return res.StatusCode == http.StatusOK
	})
}

// firing returns the alerts that fire and page somebody, or have the name.
func (f *chaosFleet) firing(name string) (names []string) {
	if f.prometheus == "" {
		return nil
	}
	res, err := http.Get(f.prometheus + "/api/v1/alerts")
	if err != nil {
		f.t.Error(err)
		return nil
	}
	defer res.Body.Close()
	var out struct {
		Data struct {
			Alerts []struct {
				Labels map[string]string
				State  string
			}
		}
	}
	if err := json.NewDecoder(res.Body).Decode(&out); err != nil {
		f.t.Error(err)
	}
	for _, a := range out.Data.Alerts {
		if n := a.Labels["alertname"]; a.State == "firing" && (a.Labels["severity"] == "page" || n == name) && !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	slices.Sort(names)
	return names
}

func (f *chaosFleet) path(name string) string { return filepath.Join(f.dir, name) }

func (f *chaosFleet) write(name, text string) {
	if err := os.WriteFile(f.path(name), []byte(text), 0o600); err != nil {
		f.t.Fatal(err)
	}
}

func (f *chaosFleet) copy(from, to string) {
	text, err := os.ReadFile(f.path(from))
	if err != nil {
		f.t.Fatal(err)
	}
	f.write(to, string(text))
}

func (f *chaosFleet) keygen(name string) {
	if out, err := exec.Command(f.path("uplink"), "keygen", "-o", f.path(name)).CombinedOutput(); err != nil {
		f.t.Fatalf("%v: %s", err, out)
	}
}

// program starts a program until the end of the test.
func (f *chaosFleet) program(name, binary string, args ...string) *program {
	if !filepath.IsAbs(binary) {
		binary = f.path(binary)
	}
	p := &program{t: f.t, name: name, args: append([]string{binary}, args...), log: new(record)}
	f.t.Cleanup(func() {
		p.end(syscall.SIGKILL)
		if f.t.Failed() {
			f.t.Logf("the log of %s at its end:\n%s", name, p.log.tail(1500))
		}
	})
	p.start()
	return p
}

// tail returns the last bytes of the log.
func (r *record) tail(n int) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	text := r.text.Bytes()
	return string(text[max(len(text)-n, 0):])
}

// assign gets a server and a token from the backend.
func (f *chaosFleet) assign(ctx context.Context, id uint64, avoid ...string) (string, token.Token, error) {
	var a struct {
		Server string
		Token  token.Token
	}
	body, err := json.Marshal(map[string]any{"client": fmt.Sprint(id), "avoid": avoid})
	if err != nil {
		return "", a.Token, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, f.backendURL+"token", bytes.NewReader(body))
	if err != nil {
		return "", a.Token, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", a.Token, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		var text bytes.Buffer
		_, _ = text.ReadFrom(res.Body)
		return "", a.Token, fmt.Errorf("backend: %s: %s", res.Status, &text)
	}
	return a.Server, a.Token, json.NewDecoder(res.Body).Decode(&a)
}

// join connects another player, who makes 20 calls a second.
func (f *chaosFleet) join() (*chaosPlayer, error) {
	f.next++
	id, p := f.next, new(chaosPlayer)
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	addr, tok, err := f.assign(ctx, id)
	if err != nil {
		return nil, err
	}
	cfg := client.Config{Token: tok, Assign: func(ctx context.Context) (string, token.Token, error) {
		var avoid []string
		if p.conn != nil {
			avoid = append(avoid, p.conn.Server())
		}
		return f.assign(ctx, id, avoid...)
	}, OnEvent: p.note}
	conn, err := client.Dial(ctx, addr, cfg)
	if err != nil {
		return nil, err
	}
	stream, err := client.BindSchema(ctx, conn, f.trace.Schema, client.BindConfig{})
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	playing, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	p.mu.Lock()
	p.conn, p.stop = conn, func() { stop(); <-done; _ = conn.Close() }
	p.mu.Unlock()
	go func() {
		defer close(done)
		for row := 0; playing.Err() == nil; row++ {
			if _, err := stream.Send(f.trace.At(row)); err == nil {
				p.mu.Lock()
				p.sent++
				p.mu.Unlock()
			}
			time.Sleep(50 * time.Millisecond)
		}
	}()
	return p, nil
}

// note records when the player is interrupted.
func (p *chaosPlayer) note(e client.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e.State {
	case client.Reconnecting, client.Interrupted:
		if p.conn != nil {
			p.lost = append(p.lost, fmt.Sprintf("%s at %s: %v", e.State, p.conn.Server(), e.Err))
		}
	case client.Disconnected:
		p.ended = e.Err
	default:
	}
}

// losses returns what interrupted players since the last call, except at a server.
func (f *chaosFleet) losses(except string) (all []string) {
	for i, p := range f.players {
		p.mu.Lock()
		for _, l := range p.lost {
			if except == "" || !strings.Contains(l, except) {
				all = append(all, fmt.Sprintf("player %d %s", i, l))
			}
		}
		if p.lost = nil; p.ended != nil {
			all = append(all, fmt.Sprintf("player %d ended: %v", i, p.ended))
		}
		p.mu.Unlock()
	}
	return all
}

// at returns the number of players at a server.
func (f *chaosFleet) at(server string) (n int) {
	for _, p := range f.players {
		if p.conn.Server() == server {
			n++
		}
	}
	return n
}

// fault is a fault with the end of it, and where it is named.
type fault struct {
	name       string
	begin, end func()
	says       []*program // one of these logs
	text       string     // of the record that names the cause; empty: none
	server     string     // address of a server that dies
	silent     bool       // players can join meanwhile
	lame       bool       // the backend does not answer meanwhile
	hold       time.Duration
	alert      string // that fires, or alternatives separated by |; empty: none that pages
}

// faults returns what can happen to the fleet.
func (f *chaosFleet) faults(r *rand.Rand) []fault {
	i := r.IntN(3)
	one := func(p *program) (func(), func()) { return func() { p.end(syscall.SIGKILL) }, p.start }
	each := func(all []*program, do func(*program)) func() {
		return func() {
			for _, p := range all {
				do(p)
			}
		}
	}
	kill := func(p *program) { p.end(syscall.SIGKILL) }
	begin := (*program).start
	store := f.stores[r.IntN(2)]
	killDS, startDS := one(f.ds[i])
	killBackend, startBackend := one(f.backend)
	killStore, startStore := one(store)
	killNode, startNode := one(f.nats[i])
	limit := func(p *program, resource int, n uint64) func() {
		return func() {
			var l unix.Rlimit
			pid := p.cmd.Process.Pid
			if err := unix.Prlimit(pid, resource, nil, &l); err != nil {
				f.t.Error(err)
			}
			l.Cur = min(n, l.Max)
			if err := unix.Prlimit(pid, resource, &l, nil); err != nil {
				f.t.Error(err)
			}
			http.DefaultClient.CloseIdleConnections()
		}
	}
	restart := func(p *program) {
		p.end(syscall.SIGTERM)
		p.start()
		f.await("a player joins", 30*time.Second)
	}
	busy := f.ds[0] // the server with the most players
	for k, addr := range f.addrs {
		if f.at(addr) > f.at(f.addrs[slices.Index(f.ds, busy)]) {
			busy = f.ds[k]
		}
	}
	key := fmt.Sprintf("ds-%d.key", i)
	rotate := func(from string) func() {
		return func() {
			f.copy(from, key)
			_ = f.ds[i].cmd.Process.Signal(syscall.SIGHUP)
		}
	}
	return []fault{
		{name: "kill -9 of ds-" + fmt.Sprint(i), begin: killDS, end: startDS, says: []*program{f.backend}, text: "server lost", server: f.addrs[i], silent: true, hold: 15 * time.Second, alert: "UplinkServerLost"},
		{name: "kill -9 of the backend", begin: killBackend, end: startBackend, alert: "UplinkControlDown"},
		{name: "kill -9 of " + store.name, begin: killStore, end: startStore, silent: true},
		{name: "kill -9 of both stores", begin: each(f.stores, kill), end: each(f.stores, begin), says: f.ds, text: "fleet store fails", alert: "UplinkStoreDown"},
		{name: "kill -9 of a NATS server", begin: killNode, end: startNode, silent: true},
		{name: "kill -9 of all NATS servers", begin: each(f.nats, kill), end: each(f.nats, begin), says: f.stores, text: "no connection to NATS", alert: "UplinkStoreDown"},
		{name: "NATS emptied", begin: each(f.nats, func(p *program) {
			kill(p)
			_ = os.RemoveAll(f.path(p.name))
		}), end: each(f.nats, begin), says: f.stores, text: "bucket created"},
		{name: "a rotation that begins with ds-" + fmt.Sprint(i), begin: rotate("other.key"), end: rotate("ds.key"), says: []*program{f.backend}, text: "no issuer key for a server", silent: true, alert: "UplinkKeyMissing"},
		{name: "no file descriptors for the backend", begin: limit(f.backend, unix.RLIMIT_NOFILE, 4), end: limit(f.backend, unix.RLIMIT_NOFILE, 1<<10), says: []*program{f.backend}, text: "too many open files", lame: true, alert: "UplinkStoreDown|UplinkControlDown"},
		{name: "a full disk for " + busy.name, begin: limit(busy, unix.RLIMIT_FSIZE, 1), end: func() { restart(busy) }, says: []*program{busy}, text: "recording stopped", silent: true, alert: "UplinkFileLosses"},
		{name: "rolling upgrade", begin: each(f.ds, restart), end: func() {}, silent: true},
	}
}

// await waits until another player can join, and returns the time that it took.
func (f *chaosFleet) await(what string, limit time.Duration) time.Duration {
	f.t.Helper()
	begun, err := time.Now(), error(nil)
	for time.Since(begun) < limit {
		var p *chaosPlayer
		if p, err = f.join(); err == nil {
			p.stop()
			return time.Since(begun)
		}
		time.Sleep(100 * time.Millisecond)
	}
	f.t.Fatalf("not within %v: %s: %v", limit, what, err)
	return 0
}

// settled waits until all players play, and returns the time that it took.
func (f *chaosFleet) settled(limit time.Duration) time.Duration {
	f.t.Helper()
	begun := time.Now()
	for slices.ContainsFunc(f.players, func(p *chaosPlayer) bool { return p.conn.State() != client.Connected }) {
		if time.Since(begun) > limit {
			f.t.Errorf("players are not back after %v: %v", limit, f.losses(""))
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	return time.Since(begun)
}

// TestChaos runs a fleet of programs with players who get their servers from the backend, and draws
// faults from a seed. Only the death of its own server interrupts a player. For each fault a record
// names the cause, and players can join again when it is over, without a restart of anything else.
// The limits of time are generous: the log has the times.
//
//	go test -run TestChaos -v -chaos 5m -timeout 20m
func TestChaos(t *testing.T) {
	if *chaosFor == 0 {
		t.Skip("set -chaos")
	}
	seed := *chaosSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	f := newChaosFleet(t)
	f.await("the first player joins", time.Minute)
	if *chaosAlerts {
		f.startPrometheus()
	}
	for len(f.players) < *chaosPlayers {
		p, err := f.join()
		if err != nil {
			t.Fatal(err)
		}
		f.players = append(f.players, p)
	}
	t.Cleanup(func() {
		for _, p := range f.players {
			p.stop()
		}
		http.DefaultClient.CloseIdleConnections()
	})
	var order []int
	only := regexp.MustCompile(*chaosOnly)
	for end := time.Now().Add(*chaosFor); time.Now().Before(end) && !t.Failed(); {
		all := slices.DeleteFunc(f.faults(r), func(c fault) bool { return !only.MatchString(c.name) })
		if len(order) == 0 {
			order = r.Perm(len(all))
		}
		c := all[order[0]]
		order = order[1:]
		f.strike(c)
	}
}

// until waits until the alert of a fault fires, and returns the time since the fault began; 0 if it
// does not.
func (f *chaosFleet) until(c fault, begun time.Time, already []string) time.Duration {
	for f.prometheus != "" && c.alert != "" && time.Since(begun) < 2*time.Minute {
		for name := range strings.SplitSeq(c.alert, "|") {
			if slices.Contains(f.firing(name), name) && !slices.Contains(already, name) {
				return time.Since(begun)
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
	return 0
}

// strike lets a fault happen.
func (f *chaosFleet) strike(c fault) {
	t := f.t
	t.Helper()
	count := func() (n int) {
		for _, p := range c.says {
			n += p.log.count(c.text)
		}
		return n
	}
	before := count()
	on := f.at(c.server)
	already := f.firing(c.alert)
	begun := time.Now()
	c.begin()
	named, back := time.Duration(0), time.Duration(0)
	if c.server != "" {
		time.Sleep(time.Second) // they notice
		for time.Since(begun) < 15*time.Second && slices.ContainsFunc(f.players, func(p *chaosPlayer) bool { return p.conn.Server() == c.server || p.conn.ID() == 0 }) {
			time.Sleep(10 * time.Millisecond)
		}
		back = time.Since(begun)
	}
	look := func(until time.Duration) {
		for c.text != "" && named == 0 && time.Since(begun) < until {
			if time.Sleep(10 * time.Millisecond); count() > before {
				named = time.Since(begun)
			}
		}
	}
	if c.lame {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		_, _, err := f.assign(ctx, 1)
		if cancel(); err == nil {
			t.Errorf("%s: the backend answers", c.name)
		}
	}
	hold := max(*chaosHold, c.hold)
	look(hold)
	fired := f.until(c, begun, already)
	if c.silent {
		f.await("players join during "+c.name, 20*time.Second)
	}
	if rest := hold - time.Since(begun); rest > 0 {
		time.Sleep(rest)
	}
	c.end()
	joins := f.await("players join after "+c.name, time.Minute)
	look(time.Minute)
	f.settled(30 * time.Second)
	if c.alert != "" && f.prometheus != "" && fired == 0 {
		t.Errorf("%s: %s does not fire", c.name, c.alert)
	}
	if f.prometheus != "" {
		t.Logf("%-40s %s fires after %5.1f s; fired before: %v; pages: %v", c.name, c.alert, fired.Seconds(), already, f.firing(c.alert))
	}
	if c.alert == "" && len(f.firing("")) > len(already) {
		t.Errorf("%s: it pages: %v, before it: %v", c.name, f.firing(""), already)
	}
	t.Logf("%-40s players of a dead server %2d, back after %5.2f s; named after %5.2f s: %q; joins %5.2f s after the end",
		c.name, on, back.Seconds(), named.Seconds(), c.text, joins.Seconds())
	if lost := f.losses(c.server); len(lost) > 0 {
		t.Errorf("%s interrupts players: %s", c.name, strings.Join(lost, "; "))
	}
	if c.text != "" && named == 0 {
		t.Errorf("%s: no record with %q", c.name, c.text)
	}
}
