// Package tool finds the programs that some tests run: browsers, servers, checkers. .ci/tools
// installs them.
package tool

import (
	"cmp"
	"os"
	"os/exec"
	"testing"
)

// Required is an environment variable. If it is 1, tests whose tool is missing fail instead of
// being skipped. Continuous integration sets it.
const Required = "UPLINK_TOOLS_REQUIRED"

// packages are the Debian packages whose names differ from those of their programs.
var packages = map[string]string{"promtool": "prometheus", "editcap": "tshark", "capinfos": "tshark", "systemd-analyze": "systemd", "setpriv": "util-linux"}

// Find returns the path of a program that has one of these names in PATH. If there is none, it
// skips the test, or fails it if tools are required, and reports the package to install.
func Find(t testing.TB, name string, others ...string) string {
	t.Helper()
	for _, n := range append([]string{name}, others...) {
		if path, err := exec.LookPath(n); err == nil {
			return path
		}
	}
	const missing = "%s is not in PATH; on Debian: apt-get install --no-install-recommends %s, or .ci/tools"
	pkg := cmp.Or(packages[name], name)
	if os.Getenv(Required) == "1" {
		t.Fatalf(missing, name, pkg)
	}
	t.Skipf(missing, name, pkg)
	return ""
}
