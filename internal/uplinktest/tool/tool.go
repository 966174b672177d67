// Package tool finds the programs that some tests run: browsers, servers, checkers. .ci/tools installs them.
package tool

import (
	"cmp"
	"os"
	"os/exec"
	"testing"
)

// Required is the environment variable that, set to 1, makes a test fail whose tool is missing. The gate sets it, so
// that no test is skipped there unseen.
const Required = "UPLINK_TOOLS_REQUIRED"

// packages are the Debian packages of programs that are named otherwise.
var packages = map[string]string{"promtool": "prometheus", "editcap": "tshark", "capinfos": "tshark"}

// Find gives the path of a program: the first of the names, all of them for the same one, that PATH has. If there is
// none the test is skipped, or fails where tools are required; the message says what to install.
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
