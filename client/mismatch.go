package client

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/uplink-rpc/uplink/internal/message"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/versions"
)

// maxMismatches is the number of different mismatches of a connection that are reported.
const maxMismatches = 64

// MismatchError describes a difference between a client and its server with which the session
// continues: in the fields of an RPC or of objects, in types of objects, or because the server does
// not offer a world. It is the value of [Event].Mismatch. The names of the server are as
// received: arbitrary bytes.
type MismatchError struct {
	RPC   string // name of the RPC; empty for a world
	World string // name of the world; empty for an RPC

	// Here are the names of the fields that only the client has, and There those that only the
	// server has, at most 32 each. The receiver of a field that it does not have skips it, and a
	// field that the sender does not have stays 0. A field of a further type of objects is
	// TYPE/FIELD; TYPE/ is the whole type, whose objects are dropped.
	Here, There []string

	call bool // the server calls the RPC
	// notOffered means that the server has not offered the world within waited, and offered are the
	// worlds that it offers. The subscription continues to wait.
	notOffered bool
	waited     time.Duration
	offered    []string
}

func (e *MismatchError) Error() string {
	switch {
	case e.notOffered && len(e.offered) == 0:
		return fmt.Sprintf("client: world %s: the server has not offered it within %v, nor any other", e.World, e.waited)
	case e.notOffered:
		return fmt.Sprintf("client: world %s: the server has not offered it within %v%s; it offers %s",
			e.World, e.waited, message.Nearest(e.World, e.offered), shown(strings.Join(e.offered, ", ")))
	}
	what := "rpc " + e.RPC
	switch {
	case e.World != "":
		what = "world " + e.World
	case e.call:
		what = "call " + e.RPC
	}
	return fmt.Sprintf("client: %s: %s", what, (&message.Differences{Asking: e.Here, Answering: e.There}).Text("client", "server"))
}

// Unwrap returns [ErrNotOffered] if the server has not offered the world in time. The client
// continues to wait for it. Error lists the worlds that the server offers.
func (e *MismatchError) Unwrap() error {
	if e.notOffered {
		return ErrNotOffered
	}
	return nil
}

// mismatches collects the mismatches of a connection. Its methods may be called with any lock held.
type mismatches struct {
	mu   sync.Mutex
	told map[string]struct{} // texts of all mismatches that were added
	list []*MismatchError    // mismatches that take has not returned yet
}

// add adds a mismatch, unless one with the same text was added before or there are maxMismatches.
func (m *mismatches) add(e *MismatchError) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.told) >= maxMismatches {
		return
	}
	text := e.Error()
	if _, told := m.told[text]; told {
		return
	}
	if m.told == nil {
		m.told = map[string]struct{}{}
	}
	m.told[text] = struct{}{}
	m.list = append(m.list, e)
}

func (m *mismatches) take() []*MismatchError {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := m.list
	m.list = nil
	return list
}

// fieldNames returns the names of the fields with these descriptions.
func fieldNames(descriptions []string) (names []string) {
	for _, d := range descriptions {
		name, _, _ := strings.Cut(d, " ")
		names = append(names, name)
	}
	return names
}

// addDifferences adds the names that only one end has in a type of objects, each with a prefix.
func addDifferences(d *message.Differences, prefix string, there, here []string) {
	d.Asking = appendMissing(d.Asking, prefix, there, here)
	d.Answering = appendMissing(d.Answering, prefix, here, there)
}

// appendMissing appends the names that are not in others.
func appendMissing(to []string, prefix string, names, others []string) []string {
	known := map[string]struct{}{}
	for _, name := range others {
		known[name] = struct{}{}
	}
	for _, name := range names {
		if _, ok := known[name]; !ok && len(to) < message.MaxDifferences {
			to = append(to, prefix+name)
		}
	}
	return to
}

func namesOf(s *schema.Schema) []string { return fieldNames(versions.Descriptions(s)) }
