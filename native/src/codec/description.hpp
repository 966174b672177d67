// Schemas from the descriptions of their fields. docs/spec/values.md, 6.
#pragma once

#include "uplink/codec.hpp"

namespace uplink::detail {

// parse_schema creates a schema from descriptions of the other end, at most max_fields fields. Any
// input is safe. The result is Error::malformed if a description is invalid, or the whole exceeds
// the limits of a schema. *field, if field is not null, is then the index of the invalid field, or
// n.
Error parse_schema(const Allocator &a, Bytes name, const Bytes *descriptions, size_t n, Schema **out,
                   size_t *field = nullptr);

} // namespace uplink::detail
