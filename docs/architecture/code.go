package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

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

// reference is a use in one file of a package of what another one of its files declares.
type reference struct{ from, to string }

func (r reference) String() string { return r.from + " -> " + r.to }

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
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listedPackage
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
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

// references returns the pairs of files of a package of which one uses a function, type, variable,
// constant, method or field that the other declares.
func (c *code) references(dir string) []reference {
	p, found := c.packages[dir], map[reference]bool{}
	for id, object := range p.info.Uses {
		if object.Pkg() != p.types || !object.Pos().IsValid() || isLocal(object, p.types) {
			continue
		}
		r := reference{c.fileOf(id.Pos()), c.fileOf(object.Pos())}
		if r.from != r.to {
			found[r] = true
		}
	}
	return slices.SortedFunc(maps.Keys(found), func(a, b reference) int {
		return cmp.Or(strings.Compare(a.from, b.from), strings.Compare(a.to, b.to))
	})
}

// isLocal reports whether an object is a variable that a function declares.
func isLocal(object types.Object, p *types.Package) bool {
	v, ok := object.(*types.Var)
	return ok && !v.IsField() && v.Parent() != p.Scope()
}

func (c *code) fileOf(pos token.Pos) string { return filepath.Base(c.files.Position(pos).Filename) }
