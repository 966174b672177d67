package decrypt

import (
	"bytes"
	"encoding/xml"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/internal/uplinktest/tool"
)

// script is the dissector.
const script = "../../../../deploy/wireshark/uplink.lua"

// item is a protocol or field of a packet as Wireshark dissected it.
type item struct {
	Name  string `xml:"name,attr"`
	Show  string `xml:"show,attr"`
	Value string `xml:"value,attr"`
	Items []item `xml:",any"`
}

// all returns the fields of that name below n, in order.
func (n *item) all(name string) (found []*item) {
	for i := range n.Items {
		if c := &n.Items[i]; c.Name == name {
			found = append(found, c)
		} else {
			found = append(found, c.all(name)...)
		}
	}
	return found
}

// text returns the shown text of the first field of that name, "" if there is none.
func (n *item) text(name string) string {
	if found := n.all(name); len(found) > 0 {
		return found[0].Show
	}
	return ""
}

// number is the first field of that name, -1 if there is none.
func (n *item) number(t *testing.T, name string) int {
	t.Helper()
	text := n.text(name)
	if text == "" {
		return -1
	}
	v, err := strconv.ParseInt(text, 0, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return int(v)
}

func tshark(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("runs Wireshark")
	}
	return tool.Find(t, "tshark")
}

// dissect runs tshark with the dissector, in two passes. An error of the script fails the test.
func dissect(t *testing.T, file []byte, options ...string) (packets []item) {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "in.pcap")
	uplinktest.Must(t, os.WriteFile(path, file, 0o600))
	args := append([]string{"-n", "-2", "-X", "lua_script:" + script, "-r", path, "-T", "pdml"}, options...)
	cmd := exec.CommandContext(t.Context(), tshark(t), args...)
	cmd.Env = append(os.Environ(), "WIRESHARK_CONFIG_DIR="+dir) // not the plugins of whoever runs this
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if said := stdout.String() + stderr.String(); err != nil || strings.Contains(said, "Lua Error") || strings.Contains(said, "Lua:") {
		t.Fatalf("tshark: %v\n%s\n%q", err, &stderr, regexp.MustCompile(".*Lua.*").FindAllString(said, 5))
	}
	var out struct {
		Packets []item `xml:"packet"`
	}
	uplinktest.Must(t, xml.Unmarshal(stdout.Bytes(), &out))
	return out.Packets
}

// wellFormed expects that nothing is wrong with packets.
func wellFormed(t *testing.T, packets []item) {
	t.Helper()
	for i := range packets {
		for _, name := range []string{"uplink.malformed", "_ws.malformed"} {
			if packets[i].all(name) != nil {
				t.Errorf("packet %d is malformed: %v", i+1, packets[i].all("_ws.expert"))
			}
		}
	}
}

// compare expects these numbers of the fields below an item; -1 is none.
func compare(t *testing.T, packet int, n *item, want map[string]int) {
	t.Helper()
	for name, v := range want {
		read := (*item).number
		if text := n.text(name); text == "True" || text == "False" {
			read = func(n *item, t *testing.T, name string) int { return flag(t, n, name) }
		}
		if got := read(n, t, name); got != v {
			t.Errorf("packet %d: %s is %d, want %d", packet, name, got, v)
		}
	}
}
