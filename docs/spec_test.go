package docs

import (
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var (
	requirement = regexp.MustCompile(`^- \*\*([A-Z])-?(\d+)\.\*\* `)
	keyword     = regexp.MustCompile(`\b(MUST|SHOULD|MAY)\b`)
)

// TestRequirements verifies that each requirement of the specification has a number: prose with one
// of the words of RFC 2119 is in an item such as D-12, and the items of a document have its letter
// and are numbered without gaps.
func TestRequirements(t *testing.T) {
	documents := map[string]string{} // by letter
	for path, text := range repositoryFiles(t, ".md") {
		if filepath.Base(filepath.Dir(path)) != "spec" {
			continue
		}
		numbers, highest := map[int]bool{}, 0
		numbered, fenced := false, false
		for n, line := range strings.Split(text, "\n") {
			if strings.HasPrefix(line, "```") {
				fenced = !fenced
			}
			if item := requirement.FindStringSubmatch(line); item != nil {
				numbered = true
				number, err := strconv.Atoi(item[2])
				must(t, err)
				if numbers[number] {
					t.Errorf("%s:%d: the number %d occurs twice", path, n+1, number)
				}
				numbers[number], highest = true, max(highest, number)
				if other := documents[item[1]]; other != "" && other != path {
					t.Errorf("%s:%d: the letter %s belongs to %s", path, n+1, item[1], other)
				}
				documents[item[1]] = path
			} else if !strings.HasPrefix(line, "  ") {
				numbered = false
			}
			if keyword.MatchString(line) && !numbered && !fenced && !strings.Contains(line, "RFC 2119") {
				t.Errorf("%s:%d: a requirement without a number: %s", path, n+1, line)
			}
		}
		if highest != len(numbers) {
			t.Errorf("%s: %d numbers, the highest is %d", path, len(numbers), highest)
		}
	}
	if len(documents) < 12 {
		t.Errorf("%d documents with requirements", len(documents))
	}
}
