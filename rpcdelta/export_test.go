package rpcdelta

import "github.com/uplink-rpc/uplink/rpcdelta/internal/adaptive"

// ModelFields describes the schema for the codec.
func (s *Schema) ModelFields() []adaptive.Field { return s.modelFields() }

// RaceEnabled says whether tests run under the race detector.
const RaceEnabled = raceEnabled
