package main

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/uplink-rpc/uplink/token"
)

// issuerSuffix is appended to the name of the server key's file for the issuer key's.
const issuerSuffix = ".issuer"

// keyFiles is the output of keygen.
type keyFiles struct {
	Key       string `json:"key"`
	IssuerKey string `json:"issuer_key"`
	PublicKey string `json:"public_key"`
}

func newKeygenCommand() *cobra.Command {
	var out string
	var asJSON bool
	c := &cobra.Command{
		Use:   "keygen -o FILE",
		Short: "Create the keys of a dedicated server and of the backend that issues tokens",
		Long: `keygen writes a new server key to FILE, and its issuer key to FILE.issuer. The server key is for dedicated servers; the
issuer key is for the backend, which issues connect tokens with it. Both are secret: only those programs may read them.
The output is not secret.

keygen does not overwrite files. To change keys, create new ones and install them on servers and backend together.`,
		Example: `  uplink keygen -o ds.key
  uplink keygen -o ds.key --json`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if out == "" {
				return usageError{errors.New("--output: name the file for the key")}
			}
			files, err := makeKeys(out)
			if err != nil {
				return err
			}
			if asJSON {
				return encodeJSON(cmd.OutOrStdout(), files)
			}
			const format = "server key  %s\nissuer key  %s\npublic key  %s\n"
			_, err = fmt.Fprintf(cmd.OutOrStdout(), format, files.Key, files.IssuerKey, files.PublicKey)
			return err
		},
	}
	f := c.Flags()
	f.StringVarP(&out, "output", "o", "", "file for the server key; the issuer key goes to this name with "+issuerSuffix)
	f.BoolVar(&asJSON, "json", false, "print the names of the files and the public key as JSON")
	return c
}

// makeKeys writes both files or none.
func makeKeys(path string) (*keyFiles, error) {
	key, err := token.NewKey()
	if err != nil {
		return nil, err
	}
	files := &keyFiles{Key: path, IssuerKey: path + issuerSuffix, PublicKey: keyText(key.Public())}
	if err := writeSecret(files.Key, key.Secret()); err != nil {
		return nil, err
	}
	if err := writeSecret(files.IssuerKey, key.Issuer().Secret()); err != nil {
		return nil, errors.Join(err, os.Remove(files.Key))
	}
	return files, nil
}

// writeSecret writes a line to a new file that only its owner can read.
func writeSecret(path, line string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		err = fmt.Errorf("--output: %w", err)
		if errors.Is(err, fs.ErrExist) {
			return hintedError{err, "keys are not overwritten; choose another name, or move the old files"}
		}
		return err
	}
	_, err = f.WriteString(line + "\n")
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("--output: %w", errors.Join(err, os.Remove(path)))
	}
	return nil
}

func keyText(public [32]byte) string { return base64.RawURLEncoding.EncodeToString(public[:]) }
