package main

import (
	"errors"
	"log/slog"

	"github.com/uplink-rpc/uplink/internal/privatefile"
)

// readSecretFile reads a file of at most maxSize bytes that contains a key or another secret. It
// logs a warning if all users of the machine can read the file.
func readSecretFile(path string, maxSize int64, log *slog.Logger) ([]byte, error) {
	text, err := readFile(path, maxSize)
	if err == nil && errors.Is(privatefile.Exposed(path), privatefile.ErrPublic) {
		log.Warn("secret readable by others", "file", path, "hint", "chmod 600 "+path+"; if others had access, replace it")
	}
	return text, err
}
