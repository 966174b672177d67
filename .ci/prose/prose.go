// Prose checks the wording of comments and pages, the width of their lines, and the numbers of the
// specification's requirements. It prints what it finds and then exits with 1. Run it in the root of
// the repository.
package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"log"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
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

// findings counts what was reported.
var findings int

// report prints a finding.
func report(format string, args ...any) {
	findings++
	fmt.Printf(format+"\n", args...)
}

func main() {
	log.SetFlags(0)
	sources, pages := files(".go"), files(".md")
	checkProse(sources, pages)
	checkRequirements(pages)
	if findings > 0 {
		log.Fatalf("prose: %d findings", findings)
	}
}

// must ends the program with an error.
func must(err error) {
	if err != nil {
		log.Fatal("prose: ", err)
	}
}

// checkProse checks those rules for comments and pages that can be stated as patterns.
func checkProse(sources, pages []file) {
	rules := make([]*regexp.Regexp, len(wording))
	for i, w := range wording {
		rules[i] = regexp.MustCompile(`(?i)` + w.phrase)
	}
	check := func(place, text string) {
		text = strings.Join(strings.Fields(text), " ")
		for i, rule := range rules {
			if found := rule.FindString(text); found != "" {
				report("%s: %q: write instead: %s", place, found, wording[i].instead)
			}
		}
	}
	for _, source := range sources {
		path := source.path
		files, lines := token.NewFileSet(), strings.Split(source.text, "\n")
		f, err := parser.ParseFile(files, path, source.text, parser.ParseComments|parser.SkipObjectResolution)
		must(err)
		for _, group := range f.Comments {
			check(files.Position(group.Pos()).String(), group.Text())
			for n := files.Position(group.Pos()).Line; n <= files.Position(group.End()).Line; n++ {
				line := lines[n-1]
				if strings.HasPrefix(strings.TrimSpace(line), "// ") && columns(line) > maxColumns && !strings.Contains(line, "://") {
					report("%s:%d: a comment line of %d columns; at most %d", path, n, columns(line), maxColumns)
				}
			}
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || !strings.HasPrefix(fn.Doc.Text(), fn.Name.Name+" ") {
				continue
			}
			if found := oddVerb.FindString(fn.Doc.Text()); found != "" {
				report("%s: %q: write returns, reports, appends, parses or another verb for what it does", files.Position(fn.Pos()), found)
			}
		}
	}
	for _, page := range pages {
		path, fenced := page.path, false
		for n, line := range strings.Split(page.text, "\n") {
			if strings.HasPrefix(strings.TrimSpace(line), "```") {
				fenced = !fenced
			}
			code := fenced || strings.HasPrefix(line, "    ")
			if !code {
				check(path+":"+strconv.Itoa(n+1), line)
			}
			exempt := code || strings.HasPrefix(line, "|") || strings.Contains(line, "](")
			if !exempt && columns(line) > maxColumns {
				report("%s:%d: a line of %d columns; at most %d", path, n+1, columns(line), maxColumns)
			}
		}
	}
}

// columns returns the width of a line.
func columns(line string) int {
	return utf8.RuneCountInString(strings.ReplaceAll(line, "\t", "    "))
}

// file is a file of the repository.
type file struct{ path, text string }

// files returns the files whose names end in suffix, except those below testdata, vendor and hidden
// directories.
func files(suffix string) (all []file) {
	must(filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != "." && (d.Name() == "testdata" || d.Name() == "vendor" || strings.HasPrefix(d.Name(), ".")) {
			return fs.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, suffix) {
			return nil
		}
		text, err := os.ReadFile(path)
		all = append(all, file{path, string(text)})
		return err
	}))
	return all
}
