package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestArchitectureNames checks that the packages which architecture.md links to declare the types,
// functions and methods that it names.
func TestArchitectureNames(t *testing.T) {
	page, err := os.ReadFile("architecture.md")
	must(t, err)
	declared := map[string]map[string]bool{} // names, by directory
	links := regexp.MustCompile("\\[`([\\w.]+)`\\]\\(([^)]+)\\)").FindAllStringSubmatch(string(page), -1)
	if len(links) < 40 {
		t.Errorf("%d links", len(links))
	}
	for _, l := range links {
		name, dir := l[1], l[2]
		if declared[dir] == nil {
			declared[dir] = declarations(t, dir)
		}
		if !declared[dir][name] {
			t.Errorf("%s declares no %s", dir, name)
		}
	}
}

// declarations returns the names that a package declares at top level; methods as Type.Method.
func declarations(t *testing.T, dir string) map[string]bool {
	names := map[string]bool{}
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	must(t, err)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		must(t, err)
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				names[receiver(d)+d.Name.Name] = true
			case *ast.GenDecl:
				for _, s := range d.Specs {
					if s, ok := s.(*ast.TypeSpec); ok {
						names[s.Name.Name] = true
					}
				}
			}
		}
	}
	return names
}

// receiver returns the type of a method's receiver and a dot, or an empty string.
func receiver(d *ast.FuncDecl) (name string) {
	if d.Recv != nil {
		ast.Inspect(d.Recv.List[0].Type, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok && name == "" {
				name = id.Name + "."
			}
			return name == ""
		})
	}
	return name
}
