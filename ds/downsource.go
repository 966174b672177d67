package ds

import (
	"fmt"
	"slices"
	"sync"
)

// downSource is what all sources have in common: a name, and the players, whatever codec each gets it by.
type downSource struct {
	server *Server
	name   string

	mu      sync.Mutex
	streams []*downstream
	past    ReplicationStats // of those that ended
	fan     fan
}

// registerSource adds a source to the server.
func (s *Server) registerSource(src source) error {
	name := src.common().name
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sources[name] != nil {
		return fmt.Errorf("ds: there is a world %s already", name)
	}
	if s.sources == nil {
		s.sources = map[string]source{}
	}
	s.sources[name] = src
	return nil
}

// join adds a player's part.
func (c *downSource) join(d *downstream) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.streams = append(c.streams, d)
}

// leave takes it out, and keeps what it counted.
func (c *downSource) leave(d *downstream) {
	st := d.counted()
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.Index(c.streams, d); i >= 0 {
		c.streams = slices.Delete(c.streams, i, i+1)
		c.past.add(&st)
	}
}

// of gives a player's part, or nil.
func (c *downSource) of(p *Player) *downstream {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, d := range c.streams {
		if d.player == p {
			return d
		}
	}
	return nil
}
