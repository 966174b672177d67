package docs

import (
	"errors"
	"fmt"
	"go/ast"
	"go/doc/comment"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// snippet is a piece of Go of a page or of a comment.
type snippet struct{ place, code string }

var (
	fenced = regexp.MustCompile("(?ms)^```go\n(.*?)^```$")
	// A block of a comment is Go if it has an assignment or a call of a package.
	goBlock = regexp.MustCompile(`(?m):=|^err = |^\w+\.[A-Z]\w*\(`)
	placed  = regexp.MustCompile(`(?m)^// (\S+\.(?:md(?:#\d+)?|go)):$`)
	leading = regexp.MustCompile(`(?ms)\Atype .*?^}\n`)
	quoted  = regexp.MustCompile(`(?m)^\s*"(.*)"$`)
	// An ellipsis of its own stands for further code.
	ellipsis = regexp.MustCompile(`(?m)^\s*\.\.\.$|(for) \.\.\. (\{)|(\{) \.\.\. (\})`)
)

// natsDeclarations are those of the snippets of module fleet/natsstore.
const natsDeclarations = `package snippet
import (
	"context"
	"github.com/nats-io/nats.go"
	"github.com/uplink-rpc/uplink/fleet/natsstore"
)
var ctx context.Context
`

// TestSnippets type-checks the Go of pages and of package comments. What the reader has already is
// declared in testdata/snippets.go.txt: first for all snippets, then, below lines with
// the places of snippets, in statements that precede those.
func TestSnippets(t *testing.T) {
	text, err := os.ReadFile("testdata/snippets.go.txt")
	must(t, err)
	all := snippets(t)
	if len(all) < 45 {
		t.Errorf("%d snippets", len(all))
	}
	imports := exports(t, "..", quoted.FindAllStringSubmatch(string(text), -1))
	for _, s := range all {
		t.Run(s.place, func(t *testing.T) {
			if strings.Contains(s.code, "natsstore.") {
				check(t, natsDeclarations, nil, s, exports(t, "../fleet/natsstore", quoted.FindAllStringSubmatch(natsDeclarations, -1)))
				return
			}
			parts := placed.Split(string(text), -1)
			var before []string
			for i, m := range placed.FindAllStringSubmatch(string(text), -1) {
				if strings.HasPrefix(s.place, "../"+m[1]) {
					before = append(before, parts[i+1])
				}
			}
			check(t, parts[0], before, s, imports)
		})
	}
}

// check type-checks a snippet as the body of a function.
func check(t *testing.T, declarations string, before []string, s snippet, imports types.Importer) {
	code := ellipsis.ReplaceAllString(s.code, "$1 $2$3$4")
	files := token.NewFileSet()
	declared := leading.FindString(code)
	body := declared
	for _, b := range before {
		body += "{\n" + b
	}
	body += "{\n" + code[len(declared):] + strings.Repeat("}\n", len(before)+1)
	f, err := parser.ParseFile(files, "snippet.go", declarations+"func _() {\n"+body+"\n}\n", parser.SkipObjectResolution)
	if err != nil {
		t.Fatalf("%v in\n%s", err, s.code)
	}
	cfg := types.Config{Importer: imports, Error: func(err error) {
		if e, ok := errors.AsType[types.Error](err); ok && !e.Soft { // soft: unused variables and imports
			t.Errorf("%s in\n%s", e.Msg, s.code)
		}
	}}
	_, _ = cfg.Check("snippet", files, []*ast.File{f}, nil) // Error gets the errors
}

// snippets returns the Go of all pages and package comments.
func snippets(t *testing.T) (all []snippet) {
	t.Helper()
	must(t, filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != ".." && (strings.HasPrefix(d.Name(), ".") || slices.Contains([]string{"testdata", "native", "engines", "web"}, d.Name())) {
			return fs.SkipDir
		}
		switch {
		case strings.HasSuffix(path, ".md"):
			text, err := os.ReadFile(path)
			must(t, err)
			for i, m := range fenced.FindAllStringSubmatch(string(text), -1) {
				all = append(all, snippet{fmt.Sprintf("%s#%d", path, i+1), m[1]})
			}
		case strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go"):
			f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
			must(t, err)
			for _, group := range f.Comments {
				for _, block := range new(comment.Parser).Parse(group.Text()).Content {
					if code, ok := block.(*comment.Code); ok && goBlock.MatchString(code.Text) {
						all = append(all, snippet{path, code.Text})
					}
				}
			}
		}
		return nil
	}))
	return all
}

// exports returns an importer of packages and all that they import.
func exports(t *testing.T, dir string, packages [][]string) types.Importer {
	t.Helper()
	args := []string{"list", "-export", "-deps", "-f", "{{.ImportPath}}\t{{.Export}}"}
	for _, p := range packages {
		args = append(args, p[1])
	}
	list := exec.Command("go", args...)
	list.Dir = dir
	out, err := list.Output()
	must(t, err)
	files := map[string]string{}
	for line := range strings.Lines(string(out)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), "\t")
		files[path] = file
	}
	return importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) { return os.Open(files[path]) })
}
