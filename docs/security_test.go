package docs

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

var (
	named  = regexp.MustCompile(`\b(?:Test|Fuzz)[A-Z]\w*`)
	linked = regexp.MustCompile(`\[((?:Test|Fuzz)[A-Z]\w*)\]\((\S+_test\.go)\)`)
)

// TestSecurityNamesTests has each test that security.md names be where it says.
func TestSecurityNamesTests(t *testing.T) {
	text, err := os.ReadFile("security.md")
	if err != nil {
		t.Fatal(err)
	}
	links := linked.FindAllStringSubmatch(string(text), -1)
	if n := len(named.FindAllString(string(text), -1)); n != len(links) || n == 0 {
		t.Errorf("%d tests are named, %d of them with a link", n, len(links))
	}
	for _, link := range links {
		source, err := os.ReadFile(link[2])
		if err != nil {
			t.Errorf("%s: %v", link[1], err)
		} else if !strings.Contains(string(source), "\nfunc "+link[1]+"(") {
			t.Errorf("%s is not in %s", link[1], link[2])
		}
	}
}
