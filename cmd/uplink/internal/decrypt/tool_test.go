package decrypt

import (
	"os"
	"os/exec"
	"testing"
)

// findTool returns the path of a program. If it is not installed, the test is skipped, or fails
// where tools are required.
func findTool(t testing.TB, name string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("what others do needs no second look")
	}
	path, err := exec.LookPath(name)
	switch {
	case err == nil:
		return path
	case os.Getenv("UPLINK_TOOLS_REQUIRED") == "1":
		t.Fatalf("%s is not in PATH; on Debian: apt-get install --no-install-recommends %s", name, name)
	}
	t.Skipf("%s is not in PATH; on Debian: apt-get install --no-install-recommends %s", name, name)
	return ""
}
