package snapshot

// World keeps the newest sets, shared by the encoders of all players.
type World struct {
	schema  *Schema
	cfg     Config
	sets    []*Set
	next    uint64
	initial *Set
	empty   *Set
	prior   *state
	start   uint16 // hash of the initial set
}

// NewWorld makes a world that starts from initial, a set that both ends know, or nil for an empty one.
func NewWorld(s *Schema, initial *Set) *World {
	w, err := Config{}.NewWorld(s, initial)
	if err != nil {
		panic(err) // the defaults are right
	}
	return w
}

// NewWorld makes a world as [NewWorld] does. An error names the setting that is wrong.
func (c Config) NewWorld(s *Schema, initial *Set) (*World, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	w := &World{schema: s, cfg: c, sets: make([]*Set, c.Ring), initial: s.NewSet(), empty: s.NewSet(), prior: s.newState()}
	if initial != nil {
		w.initial.CopyFrom(initial)
	}
	w.start = hash(w.initial, w.prior)
	return w, nil
}

// Begin gives the empty set of the next snapshot, to be filled and then sent by encoders: once one of them has coded
// it, it must not change. The oldest set is gone.
func (w *World) Begin() *Set {
	s := &w.sets[w.next%uint64(len(w.sets))]
	w.next++
	if *s == nil {
		*s = w.schema.NewSet()
	}
	(*s).Reset()
	return *s
}

func (w *World) set(seq uint64) *Set { return w.sets[seq%uint64(len(w.sets))] }

// Memory is how many bytes the sets take.
func (w *World) Memory() int {
	sum := w.initial.memory() + w.prior.memory()
	for _, s := range w.sets {
		if s != nil {
			sum += s.memory()
		}
	}
	return sum
}
