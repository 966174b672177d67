package snapshot_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/uplink-rpc/uplink/internal/codec/malformed"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/snapshot"
)

var update = flag.Bool("update", false, "write the results that sessions in testdata should have")

// TestGoldenSessions plays testdata/*.session, whole sessions byte for byte. A line is a command
// and, behind an equals sign, its expected result:
//
//	field NAME KIND N LO HI       of the schema
//	config CHECKEVERY             optional
//	initial ID GENERATION ROW...  an object of the set that both ends start from
//	set                           begins the next snapshot's set
//	object ID GENERATION ROW...   of it
//	physics AXIS FLOOR HALF CONTACT  of it, also out of their ranges
//	send = HEX                    the encoder's payload
//	take SEQ = right              the decoder gets the payload of that snapshot, or gives a reason
//	ack = HEX                     the encoder gets the decoder's ack
//	lose = HEX                    and if it does not get it
//	corrupt                       changes the sets that the decoder holds
func TestGoldenSessions(t *testing.T) {
	files, err := filepath.Glob("testdata/*.session")
	if err != nil || len(files) == 0 {
		t.Fatalf("no sessions: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".session"), func(t *testing.T) {
			want, err := os.ReadFile(file)
			must(t, err)
			p := player{t: t, sent: map[uint16]string{}, sets: map[uint16]*snapshot.Set{}}
			var got bytes.Buffer
			for line := range strings.Lines(string(want)) {
				fmt.Fprintln(&got, p.play(strings.TrimSpace(line)))
			}
			if *update {
				must(t, os.WriteFile(file, got.Bytes(), 0o644))
			}
			p.compareInitial(strings.TrimSuffix(file, ".session") + ".initial")
			expected := strings.Split(string(want), "\n")
			for i, line := range strings.Split(got.String(), "\n") {
				if line != expected[i] {
					t.Fatalf("line %d:\n got %s\nwant %s", i+1, line, expected[i])
				}
			}
		})
	}
}

// compareInitial compares the coded initial set, if there is one, with a file: decoders elsewhere
// start from it.
func (p *player) compareInitial(file string) {
	if p.initial.Len() == 0 {
		return
	}
	w := snapshot.NewHistory(p.schema, nil)
	w.Begin().CopyFrom(p.initial)
	coded, _, err := new(snapshot.Encoder).Append(nil, w, snapshot.Baseline{Empty: true}, 1<<16)
	must(p.t, err)
	got := hex.EncodeToString(coded) + "\n"
	if *update {
		must(p.t, os.WriteFile(file, []byte(got), 0o600))
	}
	want, err := os.ReadFile(file)
	must(p.t, err)
	if got != string(want) {
		p.t.Errorf("%s differs: got %s", file, got)
	}
}

// player plays a session.
type player struct {
	t       *testing.T
	fields  []snapshot.Field
	every   int // snapshots per divergence check
	schema  *snapshot.Schema
	initial *snapshot.Set
	world   *snapshot.History
	enc     *sender
	dec     *snapshot.Decoder
	set     *snapshot.Set
	sent    map[uint16]string
	sets    map[uint16]*snapshot.Set
}

// play executes a line and returns it with the actual result.
func (p *player) play(line string) string {
	if line == "" || line[0] == '#' {
		return line
	}
	command, _, _ := strings.Cut(line, " = ")
	command = strings.TrimSuffix(command, " =")
	words := strings.Fields(command)
	switch words[0] {
	case "field":
		n := numbers(p.t, words[3:])
		p.fields = append(p.fields, snapshot.Field{Name: words[1], Class: kinds[words[2]], N: n[0], Lo: int32(n[1]), Hi: int32(n[2])})
		var err error
		p.schema, err = snapshot.NewSchema(p.fields...)
		must(p.t, err)
		p.initial = p.schema.NewSet()
	case "config":
		p.every = numbers(p.t, words[1:])[0]
	case "initial":
		p.add(p.initial, words[1:])
	case "set":
		if p.world == nil {
			p.start()
		}
		p.set = p.world.Begin()
	case "object":
		p.add(p.set, words[1:])
	case "physics":
		n := numbers(p.t, words[1:])
		p.set.PushPhysics(n[0], int64(n[1]), int64(n[2]), int64(n[3]))
	case "send":
		return command + " = " + p.send()
	case "take":
		return command + " = " + p.take(uint16(numbers(p.t, words[1:])[0]))
	case "corrupt":
		p.dec.CorruptSets()
	case "ack", "lose":
		return command + " = " + p.ack(words[0] == "ack")
	default:
		p.t.Fatalf("no command: %q", line)
	}
	return line
}

var kinds = map[string]schema.Class{
	"motion": schema.ClassNumber, "quat": schema.ClassQuat, "flags": schema.ClassInteger, "angle": schema.ClassAngle, "bytes": schema.ClassBytes,
}

func numbers(t *testing.T, words []string) (n []int) {
	for _, w := range words {
		v, err := strconv.Atoi(w)
		must(t, err)
		n = append(n, v)
	}
	return n
}

func (p *player) start() {
	p.world, p.dec = snapshot.NewHistory(p.schema, p.initial), snapshot.NewDecoder(p.schema, p.initial)
	p.enc = newSender(p.world)
	if p.every > 0 {
		p.world.CheckEvery(p.every)
	}
}

func (p *player) add(set *snapshot.Set, words []string) {
	n := numbers(p.t, words)
	row := make([]int32, len(n)-2)
	for k := range row {
		row[k] = int32(n[2+k])
	}
	must(p.t, set.Add(snapshot.Object{ID: uint16(n[0]), Generation: uint8(n[1])}, row))
}

func (p *player) send() string {
	out, info, err := p.enc.send(nil, 1<<16)
	must(p.t, err)
	p.sent[info.Seq], p.sets[info.Seq] = hex.EncodeToString(out), p.schema.NewSet()
	p.sets[info.Seq].CopyFrom(p.set)
	return p.sent[info.Seq]
}

// take decodes the payload that was sent, which is also the one in the file unless the test fails.
func (p *player) take(seq uint16) string {
	payload, err := hex.DecodeString(p.sent[seq])
	must(p.t, err)
	info, got, err := p.dec.Decode(payload)
	reasons := map[string]error{
		"late": snapshot.ErrLate, "missing": snapshot.ErrBaselineMissing, "desync": snapshot.ErrDesync, "malformed": malformed.ErrBounds,
	}
	for word, reason := range reasons {
		if errors.Is(err, reason) {
			return word
		}
	}
	must(p.t, err)
	if info.Seq != seq || !got.Equal(p.sets[seq]) {
		return "wrong"
	}
	return "right"
}

func (p *player) ack(arrives bool) string {
	a := p.dec.Ack()
	if arrives {
		_, err := p.enc.Ack(a)
		must(p.t, err)
	}
	return hex.EncodeToString(a.Append(nil))
}
