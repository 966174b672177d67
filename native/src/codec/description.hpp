// Schemas from the descriptions of their fields. docs/spec/values.md, 6.
#pragma once

#include "uplink/codec.hpp"

namespace uplink::detail {

// parse_schema creates a schema that the other end describes, at most max_fields fields. Any input is safe.
// Error::malformed: a description is none, or the whole exceeds the limits of a schema; *field, if it is
// not null, is then the index of the field, or n.
Error parse_schema(const Allocator &a, Bytes name, const Bytes *descriptions, size_t n, Schema **out,
                   size_t *field = nullptr);

} // namespace uplink::detail
