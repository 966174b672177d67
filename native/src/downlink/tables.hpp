// Constant tables. docs/spec/snapshots.md, 5.
#pragma once

#include <cstdint>

namespace uplink::detail::downlink {

#include "src/downlink/tables.inc"

} // namespace uplink::detail::downlink
