package main

import (
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

var (
	requirement = regexp.MustCompile(`^- \*\*([A-Z])-?(\d+)\.\*\* `)
	keyword     = regexp.MustCompile(`\b(MUST|SHOULD|MAY)\b`)
)

// checkRequirements checks that each requirement of the specification has a number: prose with one
// of the words of RFC 2119 is in an item such as D-12, and the items of a document have its letter
// and are numbered without gaps.
func checkRequirements(pages []file) {
	documents := map[string]string{} // by letter
	for _, page := range pages {
		path := page.path
		if filepath.Base(filepath.Dir(path)) != "spec" {
			continue
		}
		numbers, highest := map[int]bool{}, 0
		numbered, fenced := false, false
		for n, line := range strings.Split(page.text, "\n") {
			if strings.HasPrefix(line, "```") {
				fenced = !fenced
			}
			if item := requirement.FindStringSubmatch(line); item != nil {
				numbered = true
				number, err := strconv.Atoi(item[2])
				must(err)
				if numbers[number] {
					report("%s:%d: the number %d occurs twice", path, n+1, number)
				}
				numbers[number], highest = true, max(highest, number)
				if other := documents[item[1]]; other != "" && other != path {
					report("%s:%d: the letter %s belongs to %s", path, n+1, item[1], other)
				}
				documents[item[1]] = path
			} else if !strings.HasPrefix(line, "  ") {
				numbered = false
			}
			if keyword.MatchString(line) && !numbered && !fenced && !strings.Contains(line, "RFC 2119") {
				report("%s:%d: a requirement without a number: %s", path, n+1, line)
			}
		}
		if highest != len(numbers) {
			report("%s: %d numbers, the highest is %d", path, len(numbers), highest)
		}
	}
	if len(documents) < 12 {
		report("%d documents with requirements", len(documents))
	}
}
