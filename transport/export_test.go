package transport

import "time"

// SetWall sets the wall clock by which a configuration issues and judges tokens.
func SetWall(c *Config, wall func() time.Time) { c.wall = wall }
