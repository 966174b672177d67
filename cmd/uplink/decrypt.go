package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/uplink-rpc/uplink/cmd/uplink/internal/decrypt"
	"github.com/uplink-rpc/uplink/cmd/uplink/internal/pcap"
	"github.com/uplink-rpc/uplink/internal/keylog"
	"github.com/uplink-rpc/uplink/internal/privatefile"
)

type decryptOptions struct {
	out, keyLog string
	port        uint16
	json        bool
	overwrite   bool
}

func newDecryptCommand() *cobra.Command {
	var o decryptOptions
	c := &cobra.Command{
		Use:   "decrypt CAPTURE",
		Short: "Decrypt the datagrams of a packet capture, for Wireshark",
		Long: `decrypt copies a packet capture of tcpdump, dumpcap or Wireshark (pcap or pcapng) and decrypts the datagrams of uplink
in it. The keys are those of the key log that server or client wrote to the file of the environment variable
` + keyLogVariable + `.

The copy is for the dissector deploy/wireshark/uplink.lua. Packets that cannot be decrypted and those of other protocols
are copied unchanged. The copy contains players' input, not encrypted; only its owner can read it.`,
		Example: `  UPLINK_KEYLOG=keys.txt uplink ds --schema ServerMove.schema.json
  tcpdump -i any -w game.pcap udp port 7777
  uplink decrypt game.pcap --keylog keys.txt
  wireshark -X lua_script:deploy/wireshark/uplink.lua game.plain.pcap`,
		Args: oneArg,
		RunE: func(cmd *cobra.Command, args []string) error { return runDecrypt(cmd, args[0], &o) },
	}
	f := c.Flags()
	f.StringVarP(&o.out, "output", "o", "", `file to write; - is standard output; by default the capture's name with ".plain" before the extension`)
	f.StringVar(&o.keyLog, "keylog", "", "key log; by default the file of "+keyLogVariable)
	f.Uint16Var(&o.port, "port", 0, "UDP port of the server; 0: all ports")
	f.BoolVar(&o.overwrite, overwriteFlag, false, "replace the output file if it exists")
	f.BoolVar(&o.json, "json", false, "print the counts as JSON")
	return c
}

func runDecrypt(cmd *cobra.Command, path string, o *decryptOptions) (err error) {
	keys, err := o.keys()
	if err != nil {
		return err
	}
	in, err := os.Open(path)
	if err != nil {
		return err
	}
	defer in.Close() //nolint:errcheck // opened for reading only
	info, err := in.Stat()
	if err != nil {
		return err
	}
	report, out := cmd.OutOrStdout(), cmd.OutOrStdout()
	if o.out == "-" {
		report = cmd.ErrOrStderr()
	} else {
		created := &lazyFile{path: o.path(path), overwrite: o.overwrite}
		if to, err := os.Stat(created.path); err == nil && os.SameFile(info, to) {
			return usageError{fmt.Errorf("--output %s: that is the capture itself", created.path)}
		}
		defer func() { err = errors.Join(err, created.close()) }()
		out = created
	}
	watched := &watchedFile{progress: newProgress(cmd.ErrOrStderr()), file: in, size: info.Size()}
	counts, err := decrypt.Run(out, watched, keys, o.port)
	watched.clear()
	var damage *pcap.Error
	switch {
	case errors.Is(err, pcap.ErrFormat):
		return hintedError{fmt.Errorf("%s: %w", path, err), "want a .pcap or .pcapng file of tcpdump, dumpcap or Wireshark; uplink inspect reads files of uplink ds --capture"}
	case errors.As(err, &damage):
		err = fmt.Errorf("%s: %w", path, err)
		if counts.Packets == 0 {
			return err
		}
	case err != nil:
		return err
	}
	if o.json {
		return errors.Join(err, json.NewEncoder(report).Encode(counts))
	}
	if o.out != "-" {
		fmt.Fprintf(report, "%s:\n", o.path(path))
	}
	writeCounts(report, &counts)
	return err
}

// lazyFile is the output file. The first write creates it, so that none is created if the input is
// not a capture.
type lazyFile struct {
	path      string
	overwrite bool
	file      *os.File
}

// Write implements io.Writer.
func (f *lazyFile) Write(b []byte) (n int, err error) {
	if f.file == nil {
		if f.file, err = privatefile.Create(f.path, f.overwrite); err != nil {
			return 0, existing(fmt.Errorf("--output: %w", err))
		}
	}
	return f.file.Write(b)
}

func (f *lazyFile) close() error {
	if f.file == nil {
		return nil
	}
	return f.file.Close()
}

func (o *decryptOptions) keys() ([]keylog.Session, error) {
	path := cmp.Or(o.keyLog, os.Getenv(keyLogVariable))
	if path == "" {
		return nil, usageError{errors.New("--keylog: there is no key log; server and client write one to the file of " +
			keyLogVariable)}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("--keylog: %w", err)
	}
	defer f.Close() //nolint:errcheck // opened for reading only
	sessions, err := keylog.Parse(f)
	switch {
	case err != nil:
		return nil, hintedError{fmt.Errorf("--keylog: %s: %w", path, err), "remove that line from a copy of the file: the other sessions can still be decrypted"}
	case len(sessions) == 0:
		return nil, hintedError{
			fmt.Errorf("--keylog: %s has no session", path),
			"set " + keyLogVariable + " before the server or the client starts: existing sessions are not written",
		}
	}
	return sessions, nil
}

// path returns the output file for a capture.
func (o *decryptOptions) path(in string) string {
	if o.out != "" {
		return o.out
	}
	ext := filepath.Ext(in)
	return strings.TrimSuffix(in, ext) + ".plain" + ext
}

type watchedFile struct {
	*progress
	file       *os.File
	read, size int64
	shown      int64 // percentage shown last
}

// Read implements io.Reader.
func (f *watchedFile) Read(b []byte) (int, error) {
	n, err := f.file.Read(b)
	f.read += int64(n)
	if f.size > 0 && 100*f.read/f.size > f.shown { // the size of a pipe is 0
		f.shown = 100 * f.read / f.size
		f.show("decrypted", float64(f.read)/float64(f.size))
	}
	return n, err
}

func writeCounts(w io.Writer, c *decrypt.Counts) {
	for _, r := range []struct {
		n    int
		what string
	}{
		{c.Packets, "packets"},
		{c.Opened, fmt.Sprintf("decrypted, of %d sessions", c.Sessions)},
		{c.Plain, "not encrypted: handshakes, and datagrams decrypted before"},
		{c.NoKey, "not decrypted: no session in the key log"},
		{c.Damaged, "not decrypted: damaged or forged"},
		{c.Cut, "not decrypted: truncated by the capture"},
		{c.Other, "not uplink"},
	} {
		fmt.Fprintf(w, "%8d %s\n", r.n, r.what)
	}
}
