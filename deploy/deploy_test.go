package deploy

import (
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
