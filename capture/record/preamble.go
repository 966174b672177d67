package record

import (
	"maps"
	"slices"
)

// Preamble keeps the records with which the next file of a series starts, so that it can be read
// alone: schemas, priors, open sessions and their bindings. The zero value is empty.
type Preamble struct {
	shared   [][]byte            // schemas and priors
	sessions map[uint64]*session // by player
}

// session is the records of an open session.
type session struct {
	opened []byte
	bound  [][]byte
}

// Add updates the preamble by a record that was written: its tag and body, as Append returns them.
func (p *Preamble) Add(content []byte) {
	tag, c := content[0], coder{b: content[1:], parse: true}
	if tag == tagOpened || tag == tagBound {
		var flags byte
		c.byte(&flags)
	}
	var player uint64
	switch tag {
	case tagSchema, tagPrior:
		p.shared = append(p.shared, slices.Clone(content))
	case tagOpened:
		if p.sessions == nil {
			p.sessions = map[uint64]*session{}
		}
		c.uint(&player)
		p.sessions[player] = &session{opened: repeated(content)}
	case tagBound:
		c.uint(&player)
		if s := p.sessions[player]; s != nil {
			s.bound = append(s.bound, repeated(content))
		}
	case tagClosed:
		c.uint(&player)
		delete(p.sessions, player)
	}
}

// repeated returns a copy of an Opened or Bound with the flag Again.
func repeated(content []byte) []byte {
	c := slices.Clone(content)
	c[1] |= 1
	return c
}

// All returns the tags and bodies of the records, in the order in which a file needs them.
func (p *Preamble) All() [][]byte {
	all := slices.Clone(p.shared)
	for _, player := range slices.Sorted(maps.Keys(p.sessions)) {
		s := p.sessions[player]
		all = append(append(all, s.opened), s.bound...)
	}
	return all
}
