package docs

import (
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
)

// TestModules checks the numbers of modules in dependencies.md.
func TestModules(t *testing.T) {
	text, err := os.ReadFile("dependencies.md")
	must(t, err)
	modules := func(packages ...string) int {
		list := exec.Command("go", append([]string{"list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}"}, packages...)...)
		list.Dir = ".."
		out, err := list.Output()
		must(t, err)
		paths := strings.Fields(string(out))
		slices.Sort(paths)
		return len(slices.Compact(paths)) - 1
	}
	codecs, ends := modules("./rpcdelta", "./snapshot", "./statesync"), modules("./client", "./ds")
	want := []int{codecs, ends, modules("./metrics") - ends}
	rows := regexp.MustCompile(`(?m)^\| .* \| (\d+)\b.*\|$`).FindAllStringSubmatch(string(text), -1)
	if len(rows) != len(want) {
		t.Fatalf("dependencies.md: %d rows with numbers, want %d", len(rows), len(want))
	}
	for i, row := range rows {
		if row[1] != strconv.Itoa(want[i]) {
			t.Errorf("dependencies.md: %s modules, want %d: %s", row[1], want[i], row[0])
		}
	}
}

// TestDialGoroutines checks the numbers of goroutines in dependencies.md.
func TestDialGoroutines(t *testing.T) {
	if n := strings.Count(stacks(), "created by github.com/xtaci/kcp-go/v5.NewTimedSched"); n != runtime.NumCPU()+1 {
		t.Errorf("kcp-go runs %d goroutines, want %d", n, runtime.NumCPU()+1)
	}
	srv, err := ds.Listen("127.0.0.1:0", ds.Config{})
	must(t, err)
	go srv.Serve(t.Context())
	defer srv.Close()
	for _, cfg := range []client.Config{{}, {Tick: time.Second / 60}, {Preset: client.Balanced}} {
		conn, err := client.Dial(t.Context(), srv.Addr().String(), cfg)
		must(t, err)
		if n := strings.Count(stacks(), "created by github.com/uplink-rpc/uplink/internal/endpoint.(*addressRace).start"); n != 1 {
			t.Errorf("a client runs %d goroutines, want 1:\n%s", n, stacks())
		}
		must(t, conn.Close())
	}
}

// stacks returns the stacks of all goroutines.
func stacks() string {
	buf := make([]byte, 1<<20)
	return string(buf[:runtime.Stack(buf, true)])
}
