package game

import (
	"github.com/uplink-rpc/uplink/examples/cubes/world"
	"github.com/uplink-rpc/uplink/statesync"
)

// Rounding rounds the state of cubes as if it had been sent.
type Rounding struct {
	*statesync.Quantizer[State]
	state State
}

// NewRounding makes one.
func NewRounding() (*Rounding, error) {
	q, err := statesync.NewQuantizer[State]("Cube", Rate)
	return &Rounding{Quantizer: q}, err
}

// body rounds one, or says that its state cannot be sent.
func (r *Rounding) body(b *world.Body) error {
	r.state.Take(b)
	if err := r.Round(&r.state); err != nil {
		return err
	}
	r.state.Give(b)
	return nil
}
