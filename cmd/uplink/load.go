package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/uplink-rpc/uplink/cmd/uplink/internal/analysis"
	"github.com/uplink-rpc/uplink/cmd/uplink/internal/inspect"
	"github.com/uplink-rpc/uplink/internal/capture"
	"github.com/uplink-rpc/uplink/internal/privatefile"
	"github.com/uplink-rpc/uplink/internal/rpcdelta/prior"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/trace"
)

const schemaFlag = "schema"

// schemaFile loads a schema file, with a hint if it is a trace.
func schemaFile(path string) (*schema.Schema, error) {
	s, err := trace.LoadSchema(path)
	if err != nil && isTrace(path) {
		err = hintedError{err, "this is a trace; its schema is in " + trace.SchemaPath(path)}
	}
	return s, err
}

func isTrace(path string) bool {
	return strings.HasSuffix(path, ".csv") || strings.HasSuffix(path, ".csv.gz")
}

// loadSchema loads the schema of a trace: from the file of the flag, or from NAME.schema.json.
func loadSchema(tracePath, flag string) (*schema.Schema, error) {
	if err := checkTrace(tracePath); err != nil {
		return nil, err
	}
	if flag != "" {
		return schemaFile(flag)
	}
	s, err := trace.LoadSchema(trace.SchemaPath(tracePath))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, hintedError{err, "a trace needs a schema in NAME.schema.json, or in the file of --" + schemaFlag}
	}
	return s, err
}

// loadRecording loads a trace as it was recorded, with the schema of loadSchema.
func loadRecording(tracePath, flag string) (*analysis.Recording, error) {
	if isCapture(tracePath) {
		t, err := loadTrace(tracePath, flag)
		if t == nil {
			return nil, err
		}
		return analysis.Restored(t), err
	}
	rpcSchema, err := loadSchema(tracePath, flag)
	if err != nil {
		return nil, err
	}
	return analysis.Load(tracePath, rpcSchema)
}

// checkTrace reports wrong names of traces, before the error of a missing schema.
func checkTrace(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("trace: open %s: no such file or directory", path)
	case err == nil && info.IsDir():
		return hintedError{fmt.Errorf("trace: %s is a directory", path), "want the traces in it: " + path + "/*.csv.gz"}
	case strings.HasSuffix(path, ".json"):
		return hintedError{fmt.Errorf("trace: %s is not a trace", path), "this is a schema file; want its .csv or .csv.gz"}
	}
	return nil // trace.Open reports other errors
}

// isCapture reports whether a file begins like a capture.
func isCapture(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close() //nolint:errcheck // opened for reading only
	head := capture.AppendHeader(nil)
	got := make([]byte, len(head))
	_, err = io.ReadFull(f, got)
	return err == nil && bytes.Equal(got, head)
}

// loadCapture returns the plays of a capture, the longest first. If the capture is damaged, it
// returns the plays before the damage, with the error.
func loadCapture(path, flag string) ([]inspect.Play, error) {
	if flag != "" {
		return nil, fmt.Errorf("--%s: leave it out: %s is a capture, which has its schemas", schemaFlag, path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // opened for reading only
	plays, err := inspect.Plays(f, filepath.Base(path))
	if err == nil && len(plays) == 0 {
		err = errors.New("it has no frame of an RPC")
	}
	if err != nil {
		err = fmt.Errorf("capture %s: %w", path, err)
	}
	return plays, err
}

// loadTrace loads a trace, or the longest play of a capture: the calls of one RPC by one player.
func loadTrace(path, flag string) (*trace.Trace, error) {
	if isCapture(path) {
		plays, err := loadCapture(path, flag)
		if len(plays) == 0 {
			return nil, err
		}
		return plays[0].Trace, err
	}
	s, err := loadSchema(path, flag)
	if err != nil {
		return nil, err
	}
	return trace.Load(path, s)
}

// loadTraces loads traces, and all plays of captures.
func loadTraces(paths []string, flag string) (traces []*trace.Trace, err error) {
	for _, path := range paths {
		if isCapture(path) {
			plays, err := loadCapture(path, flag)
			if err != nil {
				return nil, err
			}
			for i := range plays {
				traces = append(traces, plays[i].Trace)
			}
			continue
		}
		t, err := loadTrace(path, flag)
		if err != nil {
			return nil, err
		}
		traces = append(traces, t)
	}
	return traces, nil
}

const priorFlag = "prior"

// loadPrior loads the prior of the flag, or returns nil if the flag is not set.
func loadPrior(path string) (*prior.Prior, error) {
	if path == "" {
		return nil, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", priorFlag, err)
	}
	defer f.Close() //nolint:errcheck // opened for reading only
	data, err := io.ReadAll(io.LimitReader(f, prior.MaxSize+1))
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", priorFlag, err)
	}
	p, err := prior.Parse(data)
	if err != nil {
		return nil, hintedError{fmt.Errorf("--%s %s: %w", priorFlag, path, err), "uplink train TRACE... -o FILE writes a prior"}
	}
	return p, nil
}

func loadPriors(paths []string) (priors []*prior.Prior, err error) {
	for _, path := range paths {
		p, err := loadPrior(path)
		if err != nil {
			return nil, err
		}
		if p != nil {
			priors = append(priors, p)
		}
	}
	return priors, nil
}

// keyLogVariable is the environment variable with the name of the key log file.
const keyLogVariable = "UPLINK_KEYLOG"

// openKeyLog opens the key log that the environment names, and logs a warning. It returns nil if
// none is named.
func openKeyLog(cmd *cobra.Command) (io.Writer, error) {
	path := os.Getenv(keyLogVariable)
	if path == "" {
		return nil, nil
	}
	f, err := privatefile.Append(path)
	if err != nil {
		err = fmt.Errorf("%s: %w", keyLogVariable, err)
		switch {
		case errors.Is(err, privatefile.ErrNotRegular):
			err = hintedError{err, "name a file that does not exist yet"}
		case errors.Is(err, privatefile.ErrPublic):
			err = hintedError{err, fmt.Sprintf("chmod 600 %s, or name a file that does not exist yet", path)}
		}
		return nil, err
	}
	fmt.Fprintf(cmd.ErrOrStderr(), `uplink: WARNING: %s is set: the secrets of every session are written to %s
uplink: WARNING: anyone with that file can decrypt and forge the traffic of these sessions; use it only for debugging
`, keyLogVariable, path)
	return f, nil
}
