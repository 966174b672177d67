package main

import (
	"errors"
	"io/fs"

	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/trace"
)

// schemaFlag is the name of the flag that names a schema file.
const schemaFlag = "schema"

// loadSchema loads the schema of a trace: the file that the flag names, or the one beside the trace.
func loadSchema(tracePath, flag string) (*rpcdelta.Schema, error) {
	if flag != "" {
		return trace.LoadSchema(flag)
	}
	s, err := trace.LoadSchema(trace.SchemaPath(tracePath))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, hintedError{err, "a trace needs a schema file beside it, or one named with --" + schemaFlag}
	}
	return s, err
}

func loadTrace(path, schema string) (*trace.Trace, error) {
	s, err := loadSchema(path, schema)
	if err != nil {
		return nil, err
	}
	return trace.Load(path, s)
}
