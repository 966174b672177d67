package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/uplink-rpc/uplink/internal/private"
)

// keyLogVariable is the environment variable that names the file of the key log.
const keyLogVariable = "UPLINK_KEYLOG"

// openKeyLog opens the key log that the environment asks for, and warns of it; nil if it asks for none. It is the
// file that a command appends to until it ends.
func openKeyLog(cmd *cobra.Command) (io.Writer, error) {
	path := os.Getenv(keyLogVariable)
	if path == "" {
		return nil, nil
	}
	f, err := private.Append(path)
	if err != nil {
		err = fmt.Errorf("%s: %w", keyLogVariable, err)
		switch {
		case errors.Is(err, private.ErrNotRegular):
			err = hintedError{err, "name a file that does not exist yet"}
		case errors.Is(err, private.ErrPublic):
			err = hintedError{err, fmt.Sprintf("chmod 600 %s, or name a file that does not exist yet", path)}
		}
		return nil, err
	}
	fmt.Fprintf(cmd.ErrOrStderr(), `uplink: WARNING: %s is set: the secrets of every session are written to %s
uplink: WARNING: whoever reads that file can read and forge all that these sessions carry; unset it but for debugging
`, keyLogVariable, path)
	return f, nil
}
