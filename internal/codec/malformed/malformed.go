// Package malformed defines the reasons for which downlink codecs report a payload as malformed.
// Users see [Err] only, as snapshot.ErrMalformed; the endpoints count the reasons one by one.
package malformed

import (
	"errors"
	"fmt"
)

// The errors of malformed payloads. All others wrap Err.
var (
	Err = errors.New("snapshot: malformed")
	// ErrTruncated reports a payload that ends within its header.
	ErrTruncated = fmt.Errorf("%w: truncated", Err)
	// ErrCount reports more objects than a snapshot can have.
	ErrCount = fmt.Errorf("%w: object count out of range", Err)
	// ErrID reports an object id that is out of range or not unique.
	ErrID = fmt.Errorf("%w: invalid object id", Err)
	// ErrBounds reports a component outside the bounds of its field.
	ErrBounds = fmt.Errorf("%w: component out of bounds", Err)
	// ErrLength reports that bytes are missing, or that bytes remain at the end.
	ErrLength = fmt.Errorf("%w: wrong length", Err)
)
