package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/uplink-rpc/uplink/cmd/uplink/internal/decrypt"
	"github.com/uplink-rpc/uplink/cmd/uplink/internal/pcap"
	"github.com/uplink-rpc/uplink/cmd/uplink/internal/pcap/pcaptest"
	"github.com/uplink-rpc/uplink/internal/keylog"
	"github.com/uplink-rpc/uplink/transport"
)

// writeCapture writes datagrams of two sessions without encryption, and the key log of one.
func writeCapture(t *testing.T, dir string) (capture, keys string) {
	t.Helper()
	client, server := netip.MustParseAddrPort("192.0.2.1:4000"), netip.MustParseAddrPort("192.0.2.2:7777")
	var frames []pcaptest.Frame
	for id := range byte(2) {
		b := append([]byte{0x40, id + 1, 0, 0, 0, 0, 0, 0, 0, 0, 0}, "the body"...)
		frames = append(frames, pcaptest.Frame{Data: pcaptest.Packet(pcap.Raw, binary.LittleEndian, client, server, b)})
	}
	capture, keys = filepath.Join(dir, "game.pcap"), filepath.Join(dir, "keys.txt")
	must(t, os.WriteFile(capture, pcaptest.Classic(binary.LittleEndian, pcap.Raw, frames), 0o600))
	s := keylog.Session{ID: 1, Suite: transport.None}
	must(t, os.WriteFile(keys, s.Append(nil), 0o600))
	return capture, keys
}

const counted = `       2 packets
       1 decrypted, of 1 sessions
       0 not encrypted: handshakes, and datagrams decrypted before
       1 not decrypted: no session in the key log
       0 not decrypted: damaged or forged
       0 not decrypted: truncated by the capture
       0 not uplink
`

// TestDecrypt writes to each place, and counts in each form.
func TestDecrypt(t *testing.T) {
	dir := t.TempDir()
	capture, keys := writeCapture(t, dir)
	plain := filepath.Join(dir, "game.plain.pcap")
	code, stdout, stderr := uplink(t, "decrypt", capture, "--keylog", keys)
	if code != 0 || stderr != "" || stdout != plain+":\n"+counted {
		t.Fatalf("code %d: %s%s", code, stdout, stderr)
	}
	want, err := os.ReadFile(plain)
	must(t, err)
	if !bytes.Contains(want, []byte("\xbeupl\x00\x01\x00\x00")) {
		t.Errorf("nothing is opened in %x", want)
	}
	info, err := os.Stat(plain)
	must(t, err)
	if runtime.GOOS != "windows" && info.Mode() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
	t.Setenv(keyLogVariable, keys)
	if code, stdout, stderr = uplink(t, "decrypt", "-o", "-", capture); code != 0 || stderr != counted || stdout != string(want) {
		t.Errorf("code %d: %s", code, stderr)
	}
	other := filepath.Join(dir, "other.pcap")
	code, stdout, stderr = uplink(t, "decrypt", "--json", "--port", "7778", "-o", other, capture)
	var c decrypt.Counts
	if err := json.Unmarshal([]byte(stdout), &c); err != nil || code != 0 || stderr != "" || c != (decrypt.Counts{Packets: 2, Other: 2}) {
		t.Errorf("code %d: %s%s (%v)", code, stdout, stderr, err)
	}
}

// TestDecryptExisting checks an output path that is a world-readable file or a symbolic link.
func TestDecryptExisting(t *testing.T) {
	dir := t.TempDir()
	capture, keys := writeCapture(t, dir)
	plain, target := filepath.Join(dir, "game.plain.pcap"), filepath.Join(dir, "target")
	must(t, os.WriteFile(plain, []byte("old"), 0o600))
	must(t, os.Chmod(plain, 0o666))
	const hint = "\nhint: choose another name, or add --overwrite to replace it\n"
	if _, text := try(t, 1, "decrypt", capture, "--keylog", keys); !strings.HasPrefix(text, "uplink: --output: open "+plain) || !strings.HasSuffix(text, hint) {
		t.Errorf("%s", text)
	}
	if got, err := os.ReadFile(plain); err != nil || string(got) != "old" {
		t.Errorf("%q, %v", got, err)
	}
	try(t, 0, "decrypt", capture, "--keylog", keys, "--overwrite")
	if info, err := os.Stat(plain); err != nil || info.Size() < 24 || runtime.GOOS != "windows" && info.Mode() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if runtime.GOOS == "windows" {
		return // where links need privileges
	}
	must(t, os.Remove(plain))
	must(t, os.Symlink(target, plain))
	for _, more := range [][]string{nil, {"--overwrite"}} {
		try(t, 1, append([]string{"decrypt", capture, "--keylog", keys}, more...)...)
		if _, err := os.Stat(target); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%q: the target was written: %v", more, err)
		}
	}
}

// TestDecryptDamaged writes and counts the packets before the damage.
func TestDecryptDamaged(t *testing.T) {
	dir := t.TempDir()
	capture, keys := writeCapture(t, dir)
	file, err := os.ReadFile(capture)
	must(t, err)
	must(t, os.Truncate(capture, int64(len(file)-3)))
	code, stdout, stderr := uplink(t, "decrypt", capture, "--keylog", keys)
	want := "uplink: " + capture + ": packet 2, at byte 87: the file ends in it, 3 bytes are missing\n"
	if code != 1 || stderr != want || !strings.Contains(stdout, "       1 packets\n       1 decrypted, of 1 sessions\n") {
		t.Errorf("code %d: %s%s", code, stdout, stderr)
	}
	if info, err := os.Stat(filepath.Join(dir, "game.plain.pcap")); err != nil || info.Size() != int64(24+63+keylog.RecordHeader) {
		t.Errorf("%v, %v", info, err)
	}
}

// TestDecryptNoCapture verifies that files that are no captures leave no output, and an existing
// output as it was.
func TestDecryptNoCapture(t *testing.T) {
	dir := t.TempDir()
	_, keys := writeCapture(t, dir)
	in, out := filepath.Join(dir, "text.pcap"), filepath.Join(dir, "text.plain.pcap")
	for content, want := range map[string]string{
		"hello":                            ": neither pcap nor pcapng: it begins with 68 65 6c 6c\nhint: want a .pcap or .pcapng file of tcpdump",
		"":                                 ": neither pcap nor pcapng: it has 0 bytes\nhint: ",
		"\xd4\xc3\xb2\xa1\x02\x00\x04\x00": ": packet 1, at byte 0: the file ends in it, 16 bytes are missing\n",
	} {
		must(t, os.WriteFile(in, []byte(content), 0o600))
		if _, text := try(t, 1, "decrypt", in, "--keylog", keys); !strings.HasPrefix(text, "uplink: "+in+want) {
			t.Errorf("%q: %s", content, text)
		}
		if _, err := os.Stat(out); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%q: output %v", content, err)
		}
		must(t, os.WriteFile(out, []byte("old"), 0o600))
		try(t, 1, "decrypt", in, "--keylog", keys, "--overwrite")
		if got, err := os.ReadFile(out); err != nil || string(got) != "old" {
			t.Errorf("%q: output %q, %v", content, got, err)
		}
		must(t, os.Remove(out))
	}
}
