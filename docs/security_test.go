package docs

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

var (
	testName  = regexp.MustCompile(`\[((?:Test|Fuzz)[A-Z]\w*)\]`)
	reference = regexp.MustCompile(`(?m)^\[(Test\w+)\]: (\S+_test\.go)$`)
	inline    = regexp.MustCompile(`\[(Fuzz\w+)\]\((\S+_test\.go)\)`)
)

// TestSecurityNamesTests verifies that each test that security.md names is in the file that it
// links to.
func TestSecurityNamesTests(t *testing.T) {
	text, err := os.ReadFile("security.md")
	if err != nil {
		t.Fatal(err)
	}
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
