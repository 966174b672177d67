package interpolate

import "errors"

// What Add answers to a snapshot that it does not take. All but ErrInput are normal on a lossy link.
var (
	// ErrDuplicate is a snapshot whose time is that of one which is held.
	ErrDuplicate = errors.New("interpolate: snapshot is held already")
	// ErrLate is a snapshot that is older than all that are held when there is no more room, or older than the newest by
	// more than Config.Gap.
	ErrLate = errors.New("interpolate: snapshot is too old")
	// ErrInput is wrapped by errors that say which argument is out of its bounds.
	ErrInput = errors.New("interpolate: bad snapshot")
)
