package main

import (
	"encoding/json"
	"io"
)

// encodeJSON writes what is one object, or several, for people to read too.
func encodeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// encodeEach writes results of traces: an object, or an array of them for several traces.
func encodeEach[T any](w io.Writer, results []T) error {
	if len(results) == 1 {
		return encodeJSON(w, results[0])
	}
	return encodeJSON(w, results)
}

// eachUsage is the help of --json where it writes results of traces.
const eachUsage = "print JSON: an object, or an array of them for several traces"
