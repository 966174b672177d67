// Command architecture checks docs/architecture.md against the code: that each step of its paths
// calls the next one, and that no limited path returns to a file that it has left.
//
//	go run ./docs/architecture
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// maxFiles is the maximum number of files of a path with a limit.
const maxFiles = 10

const page = "docs/architecture.md"

func main() {
	if err := run(os.Stdout, "."); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run checks the page, and prints a line for each path.
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
type document struct{ paths []callPath }

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

var (
	heading   = regexp.MustCompile(`^## (.+)$`)
	stepRow   = regexp.MustCompile("^\\| \\[[^\\]]+\\]\\(\\.\\./([^)]+\\.go)\\) \\| `([\\w.]+)` \\|")
	handRow   = regexp.MustCompile("^\\| \\| `(\\w+\\.\\w+)` \\|")
	pauseRow  = regexp.MustCompile(`^\| \| \| `)
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
		} else if m := stepRow.FindStringSubmatch(line); m != nil {
			d.add(title, limited, step{file: m[1], name: m[2]})
		} else if m := handRow.FindStringSubmatch(line); m != nil {
			d.add(title, limited, step{kind: handover, name: m[1]})
		} else if pauseRow.MatchString(line) {
			d.add(title, limited, step{kind: pause})
		}
		limited = limited || strings.Contains(line, limitNote)
	}
	if len(d.paths) == 0 {
		return nil, fmt.Errorf("%s: no table of a path found", page)
	}
	return d, nil
}

// add adds a step to the path with a title, which may be new.
func (d *document) add(title string, limited bool, s step) {
	if n := len(d.paths); n == 0 || d.paths[n-1].title != title {
		d.paths = append(d.paths, callPath{title: title, limited: limited})
	}
	p := &d.paths[len(d.paths)-1]
	p.steps = append(p.steps, s)
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

// code is the type-checked source of some packages, without their tests.
type code struct {
	files    *token.FileSet
	packages map[string]*sourcePackage // by directory
}

type sourcePackage struct {
	types *types.Package
	info  *types.Info
	names []string             // of its files
	funcs map[string]*funcBody // by file and name, as "a.go Type.Method"
}

type funcBody struct {
	object *types.Func
	decl   *ast.FuncDecl
}

// listedPackage is what the go command prints about a package.
type listedPackage struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
	DepOnly                 bool
}

// loadCode type-checks the packages in some directories below root.
func loadCode(root string, dirs []string) (*code, error) {
	args := []string{"list", "-deps", "-export", "-json=ImportPath,Dir,Export,GoFiles,DepOnly"}
	for _, d := range dirs {
		args = append(args, "./"+d)
	}
	cmd := exec.Command("go", args...)
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
			err = fmt.Errorf("%w: %s", err, exit.Stderr)
		}
		return nil, fmt.Errorf("list packages: %w", err)
	}
	exports, listed := map[string]string{}, []listedPackage{}
	for d := json.NewDecoder(bytes.NewReader(out)); d.More(); {
		var p listedPackage
		if err := d.Decode(&p); err != nil {
			return nil, fmt.Errorf("list packages: %w", err)
		}
		exports[p.ImportPath] = p.Export
		if !p.DepOnly {
			listed = append(listed, p)
		}
	}
	absolute, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	c := &code{files: token.NewFileSet(), packages: map[string]*sourcePackage{}}
	imports := importer.ForCompiler(c.files, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	for _, l := range listed {
		dir, err := filepath.Rel(absolute, l.Dir)
		if err != nil {
			return nil, err
		}
		if c.packages[filepath.ToSlash(dir)], err = c.check(l, imports); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func (c *code) check(l listedPackage, imports types.Importer) (*sourcePackage, error) {
	p := &sourcePackage{names: l.GoFiles, funcs: map[string]*funcBody{}, info: &types.Info{
		Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{},
	}}
	var parsed []*ast.File
	for _, name := range l.GoFiles {
		f, err := parser.ParseFile(c.files, filepath.Join(l.Dir, name), nil, 0)
		if err != nil {
			return nil, err
		}
		parsed = append(parsed, f)
	}
	var err error
	if p.types, err = (&types.Config{Importer: imports}).Check(l.ImportPath, c.files, parsed, p.info); err != nil {
		return nil, err
	}
	for i, f := range parsed {
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil {
				object := p.info.Defs[fn.Name].(*types.Func)
				p.funcs[l.GoFiles[i]+" "+shortName(object)] = &funcBody{object: object, decl: fn}
			}
		}
	}
	return p, nil
}

// shortName returns Func or Type.Method.
func shortName(f *types.Func) string {
	receiver := f.Signature().Recv()
	if receiver == nil {
		return f.Name()
	}
	t := receiver.Type()
	if p, ok := t.(*types.Pointer); ok {
		t = p.Elem()
	}
	return t.(*types.Named).Obj().Name() + "." + f.Name()
}

func (c *code) lookup(s step) (*sourcePackage, *funcBody) {
	p := c.packages[path.Dir(s.file)]
	if p == nil {
		return nil, nil
	}
	return p, p.funcs[path.Base(s.file)+" "+s.name]
}

// checkPath reports functions that do not exist, and neighbors of which neither calls the other. In
// a limited path it also reports files to which the path returns.
func (c *code) checkPath(p callPath, faults *faultList) {
	files := p.files()
	for i, f := range files {
		if p.limited && slices.Contains(files[:i], f) {
			faults.addf("%s: the path returns to %s", p.title, f)
		}
	}
	for i, s := range p.steps {
		if s.kind != call {
			continue
		}
		if _, fn := c.lookup(s); fn == nil {
			faults.addf("%s: %s has no function %s", p.title, s.file, s.name)
		}
		switch before := p.steps[max(i-1, 0)]; {
		case i == 0 || before.kind == pause:
		case before.kind == call && !c.calls(before, s) && !c.calls(s, before):
			faults.addf("%s: neither of %s and %s calls the other", p.title, before.name, s.name)
		case before.kind == handover && !c.handsOver(p.steps[i-2], before, s):
			faults.addf("%s: %s does not hand over to %s by %s", p.title, p.steps[i-2].name, s.name, before.name)
		}
	}
}

// calls reports whether the function of a step uses that of another one.
func (c *code) calls(from, to step) bool {
	pkg, caller := c.lookup(from)
	_, called := c.lookup(to)
	return caller != nil && called != nil && pkg.uses(caller, func(o types.Object) bool { return isCallOf(o, called.object) })
}

// handsOver reports whether the function from uses a field, and so does the function to itself, or
// a function of its package that mentions it: one that stores it in the field.
func (c *code) handsOver(from, by, to step) bool {
	isField := func(o types.Object) bool {
		v, ok := o.(*types.Var)
		return ok && v.IsField() && v.Name() == strings.TrimPrefix(path.Ext(by.name), ".")
	}
	pkg, writer := c.lookup(from)
	other, reader := c.lookup(to)
	if writer == nil || reader == nil || !pkg.uses(writer, isField) {
		return false
	}
	for _, fn := range other.funcs {
		stores := other.uses(fn, func(o types.Object) bool { return isCallOf(o, reader.object) })
		if (fn == reader || stores) && other.uses(fn, isField) {
			return true
		}
	}
	return false
}

// uses reports whether the body of a function uses an object that match accepts.
func (p *sourcePackage) uses(fn *funcBody, match func(types.Object) bool) (found bool) {
	ast.Inspect(fn.decl.Body, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && p.info.Uses[id] != nil && match(p.info.Uses[id]) {
			found = true
		}
		return !found
	})
	return found
}

// isCallOf reports whether a used object is the function, or a method of an interface that may be.
func isCallOf(used types.Object, fn *types.Func) bool {
	f, ok := used.(*types.Func)
	if !ok || f.Origin().FullName() == fn.Origin().FullName() {
		return ok
	}
	receiver := f.Signature().Recv()
	return receiver != nil && types.IsInterface(receiver.Type()) && fn.Signature().Recv() != nil && f.Name() == fn.Name()
}
