package decrypt

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/transport"
)

const page = "../../../../docs/wireshark.md"

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	uplinktest.Must(t, err)
	return string(b)
}

// TestWiresharkCommands runs the commands of the page that begin with tshark.
func TestWiresharkCommands(t *testing.T) {
	tshark(t)
	commands := regexp.MustCompile(`(?m)^ {4}(tshark .*)$`).FindAllStringSubmatch(read(t, page), -1)
	if len(commands) < 5 {
		t.Fatalf("%d commands", len(commands))
	}
	g := play(t, transport.AES128GCM)
	file, _ := run(t, g.file, g.keys, 0)
	dir := t.TempDir()
	uplinktest.Must(t, os.MkdirAll(filepath.Join(dir, "deploy", "wireshark"), 0o700))
	for name, text := range map[string]string{"game.plain.pcap": string(file), "deploy/wireshark/uplink.lua": read(t, script)} {
		uplinktest.Must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	for _, c := range commands {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", c[1])
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "WIRESHARK_CONFIG_DIR="+dir)
		out, err := cmd.Output()
		if err != nil || strings.Count(string(out), "\n") < 3 || strings.Contains(string(out), "Lua") {
			t.Errorf("%s: %v\n%s", c[1], err, out)
		}
	}
}

// TestWiresharkFields checks that each field that the page names is a field of the dissector.
func TestWiresharkFields(t *testing.T) {
	lua := read(t, script)
	count := 0
	for _, row := range regexp.MustCompile("(?m)^\\| (`uplink\\..*?) \\|").FindAllStringSubmatch(read(t, page), -1) {
		group := ""
		for _, name := range regexp.MustCompile("`([a-z_.]+)`").FindAllStringSubmatch(row[1], -1) {
			field := name[1]
			if strings.HasPrefix(field, ".") {
				field = group + field
			} else if parts := strings.SplitN(field, ".", 3); len(parts) > 1 {
				group = parts[0] + "." + parts[1]
			}
			if count++; !strings.Contains(lua, `"`+field+`"`) {
				t.Errorf("there is no %s", field)
			}
		}
	}
	if count < 30 {
		t.Errorf("%d fields", count)
	}
}
