// Command architecture checks docs/architecture.md against the code: that each step of its paths
// calls the next one, that no path returns to a file that it has left, and how many references
// between the files of a package run against the order of layers.
//
//	go run ./docs/architecture
package main

import (
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Limits of what the document may describe.
const (
	maxFiles   = 8    // of a path with a limit
	maxAgainst = 0.10 // of the references between the files of a package, against its order
)

const page = "docs/architecture.md"

func main() {
	if err := run(os.Stdout, "."); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run checks the page, and prints a line for each path and each package.
func run(w io.Writer, dir string) error {
	doc, err := readDocument(dir)
	if err != nil {
		return err
	}
	code, err := loadCode(dir, doc.packages())
	if err != nil {
		return err
	}
	var faults faultList
	for _, p := range doc.paths {
		fmt.Fprintf(w, "%s: %d files\n", p.title, len(p.files()))
		if p.limited && len(p.files()) > maxFiles {
			faults.addf("%s: %d files, at most %d are allowed", p.title, len(p.files()), maxFiles)
		}
		code.checkPath(p, &faults)
	}
	for _, order := range doc.orders {
		refs := code.references(order.pkg)
		missing := slices.DeleteFunc(slices.Clone(code.packages[order.pkg].names), func(f string) bool { return slices.Contains(order.files, f) })
		if len(missing) > 0 {
			faults.addf("%s: the order of layers lacks %v", order.pkg, missing)
		}
		against := order.against(refs)
		fmt.Fprintf(w, "%s: %d of %d references between files run against the order of layers\n", order.pkg, len(against), len(refs))
		if float64(len(against)) > maxAgainst*float64(len(refs)) {
			faults.addf("%s: more than %.0f %% of the references between files run against the order: %v", order.pkg, 100*maxAgainst, against)
		}
	}
	return faults.err()
}

type faultList []string

func (l *faultList) addf(format string, args ...any) { *l = append(*l, fmt.Sprintf(format, args...)) }

func (l *faultList) err() error {
	if len(*l) == 0 {
		return nil
	}
	return fmt.Errorf("%s differs from the code:\n  %s", page, strings.Join(*l, "\n  "))
}

// document is what the page states about the code.
type document struct {
	paths  []callPath
	orders []layerOrder
}

// callPath is a table of the page: functions, each of which calls the next one, or is called by it
// and returns to it.
type callPath struct {
	title   string
	limited bool // to maxFiles files
	steps   []step
}

// step is a row of such a table.
type step struct {
	kind stepKind
	file string // of a function, relative to the root
	name string // Func or Type.Method; of a handover, Type.Field
}

type stepKind uint8

const (
	call     stepKind = iota
	handover          // the function before writes or calls a field that the function after reads or serves
	pause             // the program continues with another call
)

// layerOrder lists the files of a package from the top layer to the bottom one.
type layerOrder struct {
	pkg   string
	files []string
}

var (
	heading   = regexp.MustCompile(`^## (.+)$`)
	stepRow   = regexp.MustCompile("^\\| \\[[^\\]]+\\]\\(\\.\\./([^)]+\\.go)\\) \\| `([\\w.]+)` \\|")
	handRow   = regexp.MustCompile("^\\| \\| `(\\w+\\.\\w+)` \\|")
	pauseRow  = regexp.MustCompile(`^\| \| \| `)
	orderHead = regexp.MustCompile("^### `([\\w/]+)`$")
	orderRow  = regexp.MustCompile("^\\| `(\\w+\\.go)` \\|")
	limitNote = fmt.Sprintf("at most %d files", maxFiles)
)

func readDocument(dir string) (*document, error) {
	text, err := os.ReadFile(filepath.Join(dir, page))
	if err != nil {
		return nil, err
	}
	d, title, limited := &document{}, "", false
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\n")
		if m := heading.FindStringSubmatch(line); m != nil {
			title, limited = m[1], false
		} else if m := orderHead.FindStringSubmatch(line); m != nil {
			d.orders = append(d.orders, layerOrder{pkg: m[1]})
		} else if m := orderRow.FindStringSubmatch(line); m != nil && len(d.orders) > 0 {
			last := &d.orders[len(d.orders)-1]
			last.files = append(last.files, m[1])
		} else if m := stepRow.FindStringSubmatch(line); m != nil {
			p := d.path(title)
			p.limited = limited
			p.steps = append(p.steps, step{file: m[1], name: m[2]})
		} else if m := handRow.FindStringSubmatch(line); m != nil {
			p := d.path(title)
			p.steps = append(p.steps, step{kind: handover, name: m[1]})
		} else if pauseRow.MatchString(line) {
			p := d.path(title)
			p.steps = append(p.steps, step{kind: pause})
		}
		limited = limited || strings.Contains(line, limitNote)
	}
	if len(d.paths) == 0 || len(d.orders) == 0 {
		return nil, fmt.Errorf("%s: no table of a path or no order of layers found", page)
	}
	return d, nil
}

// path returns the path with a title, which it adds if it is new.
func (d *document) path(title string) *callPath {
	if n := len(d.paths); n == 0 || d.paths[n-1].title != title {
		d.paths = append(d.paths, callPath{title: title})
	}
	return &d.paths[len(d.paths)-1]
}

// packages returns the directories of all packages that the page names.
func (d *document) packages() (dirs []string) {
	for _, p := range d.paths {
		for _, s := range p.steps {
			if s.kind == call {
				dirs = append(dirs, path.Dir(s.file))
			}
		}
	}
	for _, o := range d.orders {
		dirs = append(dirs, o.pkg)
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

// files returns the files of a path in the order in which it enters them. A file that the path
// enters again is listed again.
func (p *callPath) files() (files []string) {
	for _, s := range p.steps {
		if s.kind == call && (len(files) == 0 || files[len(files)-1] != s.file) {
			files = append(files, s.file)
		}
	}
	return files
}

// against returns the references that run from a lower file to a higher one.
func (o *layerOrder) against(refs []reference) (up []reference) {
	for _, r := range refs {
		if slices.Index(o.files, r.from) > slices.Index(o.files, r.to) {
			up = append(up, r)
		}
	}
	return up
}
