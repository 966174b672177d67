package main

import (
	"encoding/json"
	"io"
)

// writeJSON writes an object, or an array of several.
func writeJSON[T any](w io.Writer, all []T) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	if len(all) == 1 {
		return e.Encode(all[0])
	}
	return e.Encode(all)
}
