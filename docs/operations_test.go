package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/metrics"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

type call struct{ X int32 }

// collectors returns the collectors of a server and a connected client, with an RPC and a world.
func collectors(t *testing.T) []prometheus.Collector {
	t.Helper()
	var world *ds.World[call]
	network := uplinktest.NewNetwork(t, simnet.Config{}, simnet.Config{})
	joined := func(p *ds.Player) {
		if _, err := world.Offer(p); err != nil {
			t.Error(err)
		}
	}
	srv := uplinktest.Serve(t, network, ds.Config{Joined: joined}, func(s *ds.Server) (err error) {
		must(t, ds.Handle(s, "Call", func(*ds.Player, ds.Frame[call]) {}))
		world, err = ds.NewWorld(s, "Calls", ds.WorldConfig[call]{})
		return err
	}).Server
	conn := uplinktest.Dial(t, network, client.Config{})
	_, err := client.Bind[call](t.Context(), conn, "Call", client.BindConfig{})
	must(t, err)
	_, err = client.SubscribeSnapshots(t.Context(), conn, "Calls", client.SnapshotConfig[call]{})
	must(t, err)
	return []prometheus.Collector{metrics.NewServer(srv), metrics.NewClient(conn), metrics.NewHandling(false), metrics.NewFileLosses("record", func() uint64 { return 0 })}
}

// TestMetrics checks that operations.md describes exactly the existing metrics.
func TestMetrics(t *testing.T) {
	var names []string
	for _, c := range collectors(t) {
		all := make(chan *prometheus.Desc)
		go func() {
			defer close(all)
			c.Describe(all)
		}()
		for d := range all {
			names = append(names, submatches(`fqName: "(\w+)"`, d.String())...)
		}
	}
	compare(t, "metric", names, first(rows(t, "What each metric means"), `uplink_\w+`))
}

// TestReasons checks that operations.md describes exactly the existing drop reasons.
func TestReasons(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(collectors(t)...)
	families, err := registry.Gather()
	must(t, err)
	var reasons []string
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == "reason" {
					reasons = append(reasons, l.GetValue())
				}
			}
		}
	}
	documented := first(rows(t, "How to read each drop reason"), `\w+`)
	if !slices.Contains(reasons, "kernel") { // not on this system
		reasons = append(reasons, "kernel")
	}
	compare(t, "reason", reasons, documented)
}

// TestAlerts checks that operations.md describes exactly the existing alerts.
func TestAlerts(t *testing.T) {
	text, err := os.ReadFile("../deploy/prometheus/alerts.yml")
	must(t, err)
	documented := submatches(`(?m)^### (\w+)$`, section(t, "What to alert on, and what to do"))
	compare(t, "alert", submatches(`(?m)- alert: (\w+)$`, string(text)), documented)
}

// TestLogRecords checks that operations.md lists exactly the existing log records, with their keys.
func TestLogRecords(t *testing.T) {
	var logged, documented []string
	for _, dir := range []string{"../client", "../ds", "../fleet", "../internal/fleetmember", "../internal/endpoint", "../transport", "../internal/capture", "../cmd"} {
		must(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if err == nil && !e.IsDir() && strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") {
				logged = append(logged, records(t, path)...)
			}
			return err
		}))
	}
	for _, row := range rows(t, "Logs") {
		documented = append(documented, strings.Join(row[:3], " | "))
	}
	compare(t, "record", logged, documented)
}

// records returns the log records of a source file, each as the first cells of its row.
func records(t *testing.T, path string) (all []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	must(t, err)
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) == 0 {
			return true
		}
		method, ok := call.Fun.(*ast.SelectorExpr)
		if !ok || !slices.Contains([]string{"Debug", "Info", "Warn", "Error"}, method.Sel.Name) {
			return true
		}
		msg, ok := text(call.Args[0])
		if !ok {
			return true
		}
		var keys []string
		for i := 1; i < len(call.Args); i += 2 {
			key, ok := text(call.Args[i])
			if !ok {
				t.Errorf("%s: a key of %q is no literal", path, msg)
			}
			keys = append(keys, "`"+key+"`")
		}
		all = append(all, "`"+msg+"` | "+strings.ToLower(method.Sel.Name)+" | "+strings.Join(keys, ", "))
		return true
	})
	return all
}

// text returns the value of a string literal.
func text(e ast.Expr) (string, bool) {
	lit, ok := e.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return "", false
	}
	s, err := strconv.Unquote(lit.Value)
	return s, err == nil
}

// section returns the text below a heading of operations.md, up to the next heading of its level.
func section(t *testing.T, heading string) string {
	t.Helper()
	all, err := os.ReadFile("operations.md")
	must(t, err)
	_, rest, ok := strings.Cut(string(all), "\n## "+heading+"\n")
	if !ok {
		t.Fatalf("operations.md has no section %q", heading)
	}
	rest, _, _ = strings.Cut(rest, "\n## ")
	return rest
}

// rows returns the cells of the tables in a section, without their heads.
func rows(t *testing.T, heading string) (all [][]string) {
	t.Helper()
	for line := range strings.Lines(section(t, heading)) {
		if cells := strings.Split(strings.Trim(line, "| \n"), " | "); strings.HasPrefix(line, "| `") {
			all = append(all, cells)
		}
	}
	return all
}

// first returns the names in the first cells of rows.
func first(rows [][]string, name string) (all []string) {
	for _, row := range rows {
		all = append(all, submatches("("+name+")", row[0])...)
	}
	return all
}

// submatches returns what the group of an expression matches in a text.
func submatches(expression, text string) (all []string) {
	for _, m := range regexp.MustCompile(expression).FindAllStringSubmatch(text, -1) {
		all = append(all, m[1])
	}
	return all
}

// compare reports existing names that are not documented, and documented ones that do not exist.
func compare(t *testing.T, what string, there, documented []string) {
	t.Helper()
	if len(there) == 0 {
		t.Fatalf("no %s found", what)
	}
	for _, s := range there {
		if !slices.Contains(documented, s) {
			t.Errorf("operations.md lacks the %s: %s", what, s)
		}
	}
	for i, s := range documented {
		if !slices.Contains(there, s) || slices.Contains(documented[:i], s) {
			t.Errorf("operations.md has a %s that does not exist, or has it twice: %s", what, s)
		}
	}
}

var must = uplinktest.Must

var (
	testName  = regexp.MustCompile(`\[((?:Test|Fuzz)[A-Z]\w*)\]`)
	reference = regexp.MustCompile(`(?m)^\[(Test\w+)\]: (\S+_test\.go)$`)
	inline    = regexp.MustCompile(`\[(Fuzz\w+)\]\((\S+_test\.go)\)`)
)

// TestSecurityNamesTests verifies that each test that security.md names is in the file that it
// links to.
func TestSecurityNamesTests(t *testing.T) {
	text, err := os.ReadFile("security.md")
	must(t, err)
	linked := map[string]bool{}
	for _, link := range append(reference.FindAllStringSubmatch(string(text), -1), inline.FindAllStringSubmatch(string(text), -1)...) {
		linked[link[1]] = true
		source, err := os.ReadFile(link[2])
		if err != nil {
			t.Errorf("%s: %v", link[1], err)
		} else if !strings.Contains(string(source), "\nfunc "+link[1]+"(") {
			t.Errorf("%s is not in %s", link[1], link[2])
		}
	}
	names := testName.FindAllStringSubmatch(string(text), -1)
	if len(names) == 0 {
		t.Error("no test is named")
	}
	for _, name := range names {
		if !linked[name[1]] {
			t.Errorf("%s has no link", name[1])
		}
	}
}
