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
	"slices"
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

// run checks the page of the repository whose root is dir, and prints a line for each path and each
// package. It returns an error that names each fault.
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
		missing := slices.DeleteFunc(code.fileNames(order.pkg), func(f string) bool { return slices.Contains(order.files, f) })
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

// faultList collects the faults of a check.
type faultList []string

func (l *faultList) addf(format string, args ...any) { *l = append(*l, fmt.Sprintf(format, args...)) }

func (l *faultList) err() error {
	if len(*l) == 0 {
		return nil
	}
	text := page + " differs from the code:"
	for _, f := range *l {
		text += "\n  " + f
	}
	return fmt.Errorf("%s", text)
}
