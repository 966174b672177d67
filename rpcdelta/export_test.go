package rpcdelta

import (
	"github.com/uplink-rpc/uplink/rpcdelta/internal/adaptive"
	"github.com/uplink-rpc/uplink/schema"
)

// ModelFields describes the schema for the codec.
func ModelFields(s *schema.Schema) []adaptive.Field { return formatOf(s).modelFields() }

// RaceEnabled says whether tests run under the race detector.
const RaceEnabled = raceEnabled
