package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"

	"github.com/spf13/cobra"
)

// keyLogVariable is the environment variable that names the file of the key log.
const keyLogVariable = "UPLINK_KEYLOG"

// keyLogMode is who may read a key log: its owner.
const keyLogMode = 0o600

// openKeyLog opens the key log that the environment asks for, and warns of it; nil if it asks for none. It is the
// file that a command appends to until it ends.
func openKeyLog(cmd *cobra.Command) (io.Writer, error) {
	path := os.Getenv(keyLogVariable)
	if path == "" {
		return nil, nil
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, keyLogMode)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", keyLogVariable, err)
	}
	if err := checkKeyLog(f); err != nil {
		_ = f.Close()
		return nil, hintedError{
			fmt.Errorf("%s: %s: %w", keyLogVariable, path, err),
			fmt.Sprintf("chmod 600 %s, or name a file that does not exist yet", path),
		}
	}
	fmt.Fprintf(cmd.ErrOrStderr(), `uplink: WARNING: %s is set: the secrets of every session are written to %s
uplink: WARNING: whoever reads that file can read and forge all that these sessions carry; unset it but for debugging
`, keyLogVariable, path)
	return f, nil
}

// checkKeyLog refuses a file that others can read, which may have been there before.
func checkKeyLog(f *os.File) error {
	info, err := f.Stat()
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return errors.New("it is no regular file")
	case info.Mode().Perm()&^keyLogMode != 0 && runtime.GOOS != "windows": // which has no such modes
		return fmt.Errorf("its mode is %v: others than its owner may read or write it", info.Mode().Perm())
	}
	return nil
}
