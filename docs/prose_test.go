package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// maxColumns is the width at which comments and Markdown prose wrap. A tab counts as four columns.
const maxColumns = 100

// wording lists phrases that comments and pages avoid, and what they contain instead.
var wording = []struct{ phrase, instead string }{
	{`\bway (down|up)\b`, "downlink, uplink"},
	{`\banew\b`, "again, restart, reset"},
	{`\brid(e|es|ing) along\b`, "redundant frames"},
	{`\bin the place of\b`, "instead of"},
	{`\b(has|have) it do\b`, "an ordinary verb"},
	{`\blet(s|ting)? go of\b`, "free, release, discard"},
	{`\bof late\b`, "recently"},
	{`\bwhat comes\b`, "a noun: received frames, datagrams"},
	{`\bpart(s|ed)? from\b`, "unregister"},
	{`\bovertaken\b`, "out of order"},
	{`\blost in a row\b`, "loss burst"},
	{`\bsays that\b`, "reports whether, means that"},
	{`\bnobody else's\b`, "a noun"},
	{`\bput right\b`, "correct"},
	{`, say[,.;:)]`, "for example"},
}

// oddVerb matches a doc comment whose name is followed by a verb that hides what the function does.
var oddVerb = regexp.MustCompile(`^[\w.]+ (gives|says|has|takes|is what|is who|is the one)\b`)

// TestProse checks those rules for comments and pages that can be stated as patterns.
func TestProse(t *testing.T) {
	rules := make([]*regexp.Regexp, len(wording))
	for i, w := range wording {
		rules[i] = regexp.MustCompile(`(?i)` + w.phrase)
	}
	check := func(place, text string) {
		text = strings.Join(strings.Fields(text), " ")
		for i, rule := range rules {
			if found := rule.FindString(text); found != "" {
				t.Errorf("%s: %q: write instead: %s", place, found, wording[i].instead)
			}
		}
	}
	for path, text := range repositoryFiles(t, ".go") {
		files, lines := token.NewFileSet(), strings.Split(text, "\n")
		f, err := parser.ParseFile(files, path, text, parser.ParseComments|parser.SkipObjectResolution)
		must(t, err)
		for _, group := range f.Comments {
			check(files.Position(group.Pos()).String(), group.Text())
			for n := files.Position(group.Pos()).Line; n <= files.Position(group.End()).Line; n++ {
				line := lines[n-1]
				if strings.HasPrefix(strings.TrimSpace(line), "// ") && columns(line) > maxColumns && !strings.Contains(line, "://") {
					t.Errorf("%s:%d: a comment line of %d columns; at most %d", path, n, columns(line), maxColumns)
				}
			}
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || !strings.HasPrefix(fn.Doc.Text(), fn.Name.Name+" ") {
				continue
			}
			if found := oddVerb.FindString(fn.Doc.Text()); found != "" {
				t.Errorf("%s: %q: write returns, reports, appends, parses or another verb for what it does", files.Position(fn.Pos()), found)
			}
		}
	}
	for path, text := range repositoryFiles(t, ".md") {
		fenced := false
		for n, line := range strings.Split(text, "\n") {
			if strings.HasPrefix(strings.TrimSpace(line), "```") {
				fenced = !fenced
			}
			code := fenced || strings.HasPrefix(line, "    ")
			if !code {
				check(path+":"+strconv.Itoa(n+1), line)
			}
			exempt := code || strings.HasPrefix(line, "|") || strings.Contains(line, "](")
			if !exempt && columns(line) > maxColumns {
				t.Errorf("%s:%d: a line of %d columns; at most %d", path, n+1, columns(line), maxColumns)
			}
		}
	}
}

// columns returns the width of a line.
func columns(line string) int {
	return utf8.RuneCountInString(strings.ReplaceAll(line, "\t", "    "))
}

// repositoryFiles yields the path and the text of each file of the repository whose name ends in
// suffix, except those below testdata, vendor and hidden directories.
func repositoryFiles(t *testing.T, suffix string) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if d.IsDir() && (d.Name() == "testdata" || d.Name() == "vendor" || strings.HasPrefix(d.Name(), ".") && d.Name() != "..") {
				return fs.SkipDir
			}
			if !strings.HasSuffix(path, suffix) || d.IsDir() {
				return nil
			}
			text, err := os.ReadFile(path)
			if err == nil && !yield(path, string(text)) {
				return fs.SkipAll
			}
			return err
		})
		must(t, err)
	}
}
