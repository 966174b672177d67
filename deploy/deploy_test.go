package deploy

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/uplink-rpc/uplink/internal/uplinktest/tool"
)

const rules = "prometheus"

// TestPromtool checks the configuration and the rules with promtool, and runs the rules' unit
// tests.
func TestPromtool(t *testing.T) {
	promtool := tool.Find(t, "promtool")
	for _, args := range [][]string{
		{"check", "config", "prometheus.yml"},
		{"check", "config", "fleet.yml"},
		{"check", "rules", "recording.yml", "alerts.yml"},
		{"test", "rules", "rules_test.yml"},
	} {
		cmd := exec.CommandContext(t.Context(), promtool, args...)
		cmd.Dir = rules
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

// TestEveryRuleIsTested checks that a unit test reads each recording rule, and that each alert
// fires in one and stays quiet before.
func TestEveryRuleIsTested(t *testing.T) {
	tests := read(t, "rules_test.yml")
	alerts := regexp.MustCompile(`(?m)^ +- alert: (\w+)\n(?: {8}.*\n)+`).FindAllStringSubmatch(read(t, "alerts.yml"), -1)
	records := regexp.MustCompile(`(?m)^ +- record: (\S+)$`).FindAllStringSubmatch(read(t, "recording.yml"), -1)
	if len(alerts) < 20 || len(records) < 10 {
		t.Fatalf("%d alerts, %d recording rules", len(alerts), len(records))
	}
	for _, a := range alerts {
		fires := `labels: 'ALERTS{alertname="` + a[1] + `", alertstate="firing"`
		quiet := `expr: 'ALERTS{alertname="` + a[1] + `", alertstate="firing"}'`
		if !strings.Contains(tests, fires) || !strings.Contains(tests, quiet) {
			t.Errorf("%s does not fire and stay quiet in a test", a[1])
		}
		for _, want := range []string{"severity: ", "summary: ", "description: ", "docs/operations.md#" + strings.ToLower(a[1]) + "\n"} {
			if !strings.Contains(a[0], want) {
				t.Errorf("%s has no %s", a[1], want)
			}
		}
	}
	for _, r := range records {
		if !strings.Contains(tests, "expr: "+r[1]) && !strings.Contains(tests, r[1]+", ") && !strings.Contains(tests, "* "+r[1]) {
			t.Errorf("no test reads %s", r[1])
		}
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(rules, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestFleetDashboard checks that the metrics of the fleet's dashboard exist, and that its panels
// select the fleet.
func TestFleetDashboard(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("grafana", "fleet.json"))
	if err != nil {
		t.Fatal(err)
	}
	operations, err := os.ReadFile(filepath.Join("..", "docs", "operations.md"))
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &dashboard); err != nil || len(dashboard.Panels) == 0 {
		t.Fatalf("%d panels: %v", len(dashboard.Panels), err)
	}
	for _, p := range dashboard.Panels {
		for _, target := range p.Targets {
			for _, metric := range regexp.MustCompile(`uplink_\w+`).FindAllString(target.Expr, -1) {
				if !strings.Contains(string(operations), "`"+metric+"`") {
					t.Errorf("%s: no metric %s", p.Title, metric)
				}
			}
			if !strings.Contains(target.Expr, `{job=~"$job", fleet=~"$fleet"}`) {
				t.Errorf("%s: %s is for all fleets", p.Title, target.Expr)
			}
		}
	}
}

// TestFlagsOfCompose checks that the flags in the compose file exist.
func TestFlagsOfCompose(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("container", "compose.yml"))
	if err != nil {
		t.Fatal(err)
	}
	flags := map[string]bool{}
	for _, dir := range []string{"../cmd/uplink", "../fleet/natsstore/cmd/uplink-nats"} {
		sources, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, source := range sources {
			code, err := os.ReadFile(source)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range regexp.MustCompile(`"([a-z-]+)", `).FindAllStringSubmatch(string(code), -1) {
				flags[m[1]] = true
			}
		}
	}
	flags["schema"] = true // a constant
	for service := range strings.SplitSeq(string(text), "\n\n") {
		if !strings.Contains(service, "build:") {
			continue
		}
		for _, m := range regexp.MustCompile(`(?:"| - )--?([a-z-]+)`).FindAllStringSubmatch(service, -1) {
			if !flags[m[1]] {
				t.Errorf("compose.yml: no command has --%s", m[1])
			}
		}
	}
}
