package decrypt

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/internal/uplinktest/tool"
	"github.com/uplink-rpc/uplink/transport"
)

// sums are a capture's counts of one RPC.
type sums struct{ payloads, bytes, deltas, ages, full uint64 }

// TestWiresharkGame compares Wireshark's counts with those of client and server.
func TestWiresharkGame(t *testing.T) {
	for _, suite := range []transport.Suite{transport.AES128GCM, transport.ChaCha20SipHash8, transport.None} {
		g := play(t, suite)
		file := g.file
		if suite != transport.None { // which can be read as it is
			file, _ = run(t, file, g.keys, 0)
		}
		packets := dissect(t, file)
		wellFormed(t, packets)
		got, acks, ackBytes, names, copies := map[string]*sums{}, uint64(0), uint64(0), map[string]string{}, 0
		for i := range packets {
			p := &packets[i]
			if p.text("uplink.message.type") == "0xc2" {
				names[p.text("uplink.bind.name")] = p.text("uplink.bind.codec") + " " + p.text("uplink.bind.rpc")
			}
			if p.text("uplink.message.type") == "0xc1" {
				acks++
				ackBytes++ // the message type
				for _, a := range p.all("uplink.ack") {
					ackBytes += 3 + uint64(len(a.text("uplink.ack.window"))+1)/3 // bytes with colons
					numbers := uint64(min(1, a.number(t, "uplink.ack.rpc")|a.number(t, "uplink.ack.epoch")))
					switch {
					case flag(t, a, "uplink.ack.long") == 1:
						ackBytes += 1 + 2*numbers
					case numbers == 0 && a.number(t, "uplink.ack.len") <= 15 && a.text("uplink.ack.window") == "":
						ackBytes-- // the shortest form
					}
				}
			}
			for _, f := range p.all("uplink.frame") {
				name := f.text("uplink.frame.name")
				s := got[name]
				if s == nil {
					s = &sums{}
					got[name] = s
				}
				if f.text("uplink.frame.first_in") != "" {
					copies++ // KCP sends a segment again
					if name != "Use" {
						t.Errorf("packet %d has a payload of %s again", i+1, name)
					}
					continue
				}
				s.payloads++
				s.bytes += uint64(f.number(t, "uplink.frame.size"))
				if flag(t, f, "uplink.frame.has_baseline") == 1 {
					s.deltas++
					s.ages += uint64(f.number(t, "uplink.frame.distance"))
				} else {
					s.full++
				}
			}
		}
		if copies == 0 {
			t.Errorf("%v: no segment was sent again", suite)
		}
		for i := range g.client.RPCs {
			rpc := &g.client.RPCs[i]
			s := got[rpc.RPC]
			if s == nil || *s != want(rpc) {
				t.Errorf("%v, %s: Wireshark shows %+v, the client counted %+v", suite, rpc.RPC, s, want(rpc))
			}
			if names[rpc.RPC] != fmt.Sprint("adaptive ", i) {
				t.Errorf("%v, %s is bound as %q", suite, rpc.RPC, names[rpc.RPC])
			}
		}
		if sent := g.server.Acks; acks != sent.Messages || ackBytes != sent.Bytes {
			t.Errorf("%v: Wireshark shows %d acks of %d bytes, the server counted %d of %d", suite, acks, ackBytes, sent.Messages, sent.Bytes)
		}
	}
}

func want(s *client.RPCStats) sums {
	return sums{s.Messages, s.Bytes, s.Delta, s.AgeSum, s.Keyframe + s.Reset}
}

// flag is a field that is true or false.
func flag(t *testing.T, n *item, name string) int {
	t.Helper()
	switch text := n.text(name); text {
	case "1", "True":
		return 1
	case "0", "False":
		return 0
	default:
		t.Fatal(errors.New(name + " is " + text))
		return 0
	}
}

// TestWiresharkSealed shows the headers of what is sealed, and what to do.
func TestWiresharkSealed(t *testing.T) {
	g := play(t, transport.AES128GCM)
	packets := dissect(t, g.file)
	wellFormed(t, packets)
	_, c := run(t, g.file, g.keys, 0)
	sealed, next := 0, map[string]int{}
	for i := range packets {
		p := &packets[i]
		if p.text("uplink.encrypted") == "" {
			continue
		}
		sealed++
		if p.all("uplink.is_encrypted") == nil || p.all("uplink.frame") != nil {
			t.Errorf("packet %d does not say that it is sealed", i+1)
		}
		// Nothing is out of order where it is recorded, so each direction counts up.
		way := p.text("uplink.direction")
		if n := p.number(t, "uplink.number"); n != next[way] {
			t.Errorf("packet %d has number %d, want %d", i+1, n, next[way])
		}
		next[way]++
		if got, want := p.text("uplink.conn"), fmt.Sprintf("0x%016x", g.keys[0].ID); got != want {
			t.Errorf("packet %d is of session %s, want %s", i+1, got, want)
		}
	}
	if sealed != c.Opened || len(next) != 2 {
		t.Errorf("%d are sealed, want %d", sealed, c.Opened)
	}
}

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
