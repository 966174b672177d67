package docs

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// TestVersion checks that the native library has one version, which is that of the Go module: the
// tag of the commit, if there is one.
func TestVersion(t *testing.T) {
	find := func(file, pattern string) string {
		text, err := os.ReadFile(file)
		must(t, err)
		found := regexp.MustCompile(pattern).FindStringSubmatch(string(text))
		if found == nil {
			t.Fatalf("%s has no version: %s", file, pattern)
		}
		return strings.Join(found[1:], ".")
	}
	version := find("../native/CMakeLists.txt", `project\(uplink VERSION (\d+)\.(\d+)\.(\d+)`)
	header := find("../native/include/uplink/uplink.h", `_MAJOR (\d+)\n.*_MINOR (\d+)\n.*_PATCH (\d+)`)
	if header != version {
		t.Errorf("uplink.h has version %s, CMakeLists.txt %s", header, version)
	}
	if page := find("../native/README.md", `find_package\(uplink (\d+)\.(\d+) `); !strings.HasPrefix(version, page+".") {
		t.Errorf("README.md finds version %s, want %s", page, version)
	}
	tags, err := exec.Command("git", "tag", "--points-at", "HEAD").Output()
	if err != nil {
		t.Skip("no git repository")
	}
	for tag := range strings.FieldsSeq(string(tags)) {
		if strings.HasPrefix(tag, "v") && tag != "v"+version {
			t.Errorf("the commit has the tag %s, the native library version %s", tag, version)
		}
	}
}
