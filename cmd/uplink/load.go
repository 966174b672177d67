package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/uplink-rpc/uplink/cmd/uplink/internal/analysis"
	"github.com/uplink-rpc/uplink/schema"
	"github.com/uplink-rpc/uplink/trace"
)

// schemaFlag is the name of the flag that names a schema file.
const schemaFlag = "schema"

// schemaFile loads a schema file, and says what it may be instead.
func schemaFile(path string) (*schema.Schema, error) {
	s, err := trace.LoadSchema(path)
	if err != nil && isTrace(path) {
		err = hintedError{err, "that is a trace; its schema is in " + trace.SchemaPath(path)}
	}
	return s, err
}

func isTrace(path string) bool {
	return strings.HasSuffix(path, ".csv") || strings.HasSuffix(path, ".csv.gz")
}

// loadSchema loads the schema of a trace: the file that the flag names, or the one beside the trace.
func loadSchema(tracePath, flag string) (*schema.Schema, error) {
	if err := checkTrace(tracePath); err != nil {
		return nil, err
	}
	if flag != "" {
		return schemaFile(flag)
	}
	s, err := trace.LoadSchema(trace.SchemaPath(tracePath))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, hintedError{err, "a trace needs a schema file beside it, or one named with --" + schemaFlag}
	}
	return s, err
}

// loadRecording loads a trace as it was recorded, by the schema that loadSchema gives.
func loadRecording(tracePath, flag string) (*analysis.Recording, error) {
	rpcSchema, err := loadSchema(tracePath, flag)
	if err != nil {
		return nil, err
	}
	return analysis.Load(tracePath, rpcSchema)
}

// checkTrace says what is wrong with the name of a trace before its schema is missed.
func checkTrace(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("trace: open %s: no such file or directory", path)
	case err == nil && info.IsDir():
		return hintedError{fmt.Errorf("trace: %s is a directory", path), "name the traces in it: " + path + "/*.csv.gz"}
	case strings.HasSuffix(path, ".json"):
		return hintedError{fmt.Errorf("trace: %s is no trace", path), "that is a schema file; name the .csv or .csv.gz that it belongs to"}
	}
	return nil // what else there may be, to open it will tell
}

func loadTrace(path, flag string) (*trace.Trace, error) {
	s, err := loadSchema(path, flag)
	if err != nil {
		return nil, err
	}
	return trace.Load(path, s)
}
