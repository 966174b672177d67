package codec_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// floatFiles lists the files of coding packages that may contain float64 or call math functions,
// with the reason. Nothing that both ends must agree on may depend on them.
var floatFiles = map[string]string{
	"internal/codec/fixed/fixed.go":             "Sqrt corrects the rounded root to the exact integer",
	"internal/codec/quat/float.go":              "smoothing and measurements",
	"internal/codec/rangecoder/encoder.go":      "cost of what was encoded",
	"internal/rpcdelta/ackrate.go":              "when the receiver acks",
	"internal/rpcdelta/adaptive.go":             "measured cost",
	"internal/rpcdelta/coder.go":                "measured cost",
	"internal/rpcdelta/config.go":               "parameters of the sender",
	"internal/rpcdelta/encoder.go":              "estimated loss",
	"internal/rpcdelta/adaptive/codec.go":       "measured cost",
	"internal/rpcdelta/adaptive/payload.go":     "measured cost",
	"internal/rpcdelta/adaptive/train.go":       "training; priors are identified by their hash",
	"internal/rpcdelta/cost/cost.go":            "measured cost",
	"internal/rpcdelta/packed/group.go":         "VectorBits, for comparisons",
	"internal/rpcdelta/packed/codec_measure.go": "measured cost",
	"internal/rpcdelta/profile.go":              "measured cost",
	"internal/rpcdelta/measure.go":              "measured cost",
	"internal/rpcdelta/redundancy.go":           "how many frames the sender repeats",
	"internal/rpcdelta/repair.go":               "when the sender repeats",
	"internal/rpcdelta/urgency.go":              "when the sender sends",
	"internal/statesync/accumulator.go":         "priorities of the sender",
	"internal/statesync/sender.go":              "priorities of the sender",
	"internal/statesync/sentstore.go":           "priorities of the sender",
	"internal/statesync/shared.go":              "priorities of the sender",
}

// TestIntegerAgreement verifies that no other file of the coding packages uses floating point, so
// that both ends compute the same on every platform and in every language.
func TestIntegerAgreement(t *testing.T) {
	used := map[string]bool{}
	for _, dir := range []string{
		"internal/codec/*", "internal/seq", "internal/replication/areas", "internal/replication/fragment", "rle", "internal/rpcdelta", "internal/rpcdelta/adaptive", "internal/rpcdelta/cost", "internal/rpcdelta/packed", "internal/rpcdelta/wire", "internal/snapshot",
		"internal/statesync",
	} {
		paths, err := filepath.Glob(filepath.Join("../..", dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			name, err := filepath.Rel("../..", path)
			if err != nil {
				t.Fatal(err)
			}
			name = filepath.ToSlash(name)
			if strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "internal/codec/msgpack/") {
				continue
			}
			src, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if use := floatUse(t, name, src); use != "" {
				used[name] = true
				if floatFiles[name] == "" {
					t.Errorf("%s uses %s", name, use)
				}
			}
		}
	}
	for name := range floatFiles {
		if !used[name] {
			t.Errorf("%s does not use floating point: remove it from the list", name)
		}
	}
}

// floatUse returns the first float type, float literal or function of package math in a file.
func floatUse(t *testing.T, name string, src []byte) (use string) {
	f, err := parser.ParseFile(token.NewFileSet(), name, src, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			if n.Name == "float64" || n.Name == "float32" {
				use = n.Name
			}
		case *ast.BasicLit:
			if n.Kind == token.FLOAT {
				use = n.Value
			}
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && x.Name == "math" && !slices.ContainsFunc([]string{"Max", "Min"}, func(p string) bool { return strings.HasPrefix(n.Sel.Name, p) }) {
				use = "math." + n.Sel.Name
			}
		}
		return use == ""
	})
	return use
}
