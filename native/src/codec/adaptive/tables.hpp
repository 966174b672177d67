// Constant tables. docs/spec/adaptive.md, 15.
#pragma once

#include <cstddef>
#include <cstdint>

namespace uplink::detail {

#include "src/codec/adaptive/tables.inc"

} // namespace uplink::detail
