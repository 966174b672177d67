// Package sessions reads golden sessions of objects, which are seeds of fuzz targets.
package sessions

import (
	"encoding/hex"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/snapshot"
	"github.com/uplink-rpc/uplink/internal/uplinktest/repo"
)

// Session is a golden session.
type Session struct {
	Schemas  []*snapshot.Schema // schemas of the types of objects
	Messages [][]byte           // messages of the lines with the command, such as "send"
}

var classes = map[string]schema.Class{
	"motion": schema.ClassNumber, "quat": schema.ClassQuat, "flags": schema.ClassInteger, "angle": schema.ClassAngle, "bytes": schema.ClassBytes,
}

// Read reads a file, relative to the root of the repository.
func Read(t testing.TB, file, command string) (s Session) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repo.Root(t), file))
	if err != nil {
		t.Fatal(err)
	}
	types := [][]snapshot.Field{nil}
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(strings.Replace(line, " =", "", 1))
		if len(words) == 0 {
			continue
		}
		switch words[0] {
		case "type":
			if len(types[0]) > 0 {
				types = append(types, nil)
			}
		case "field":
			n := len(words) - 4
			name := strconv.Itoa(len(types[len(types)-1]))
			if n > 1 {
				name = words[1]
			}
			types[len(types)-1] = append(types[len(types)-1], snapshot.Field{
				Name: name, Class: classes[words[n]], N: number(t, words[n+1]), Lo: int32(number(t, words[n+2])), Hi: int32(number(t, words[n+3])),
			})
		case command:
			m, err := hex.DecodeString(words[1])
			if err != nil {
				t.Fatal(err)
			}
			s.Messages = append(s.Messages, m)
		}
	}
	for _, fields := range types {
		one, err := snapshot.NewSchema(fields...)
		if err != nil {
			t.Fatal(err)
		}
		s.Schemas = append(s.Schemas, one)
	}
	if len(s.Messages) == 0 {
		t.Fatalf("%s has no %s", file, command)
	}
	return s
}

func number(t testing.TB, word string) int {
	t.Helper()
	n, err := strconv.Atoi(word)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
