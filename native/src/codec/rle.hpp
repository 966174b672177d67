// The codec rle. docs/spec/rle.md.
#pragma once

#include "src/codec/schema.hpp"

namespace uplink::detail {

// encode_rle writes the coded part of a frame: the difference from base, or the frame alone if base
// is null. scratch has room for SchemaImpl::binary bytes. It reports false if a difference does not
// fit its group, or if the output is full.
bool encode_rle(const SchemaImpl &s, const FrameView &f, const FrameView *base, uint8_t *scratch,
                Writer &out);

// decode_rle reads a coded part. It reports false if it is malformed.
bool decode_rle(const SchemaImpl &s, const uint8_t *data, size_t size, const FrameView *base,
                uint8_t *scratch, const FrameView &f);

// The run-length code (section 4). decode_runs returns the number of bytes. It returns -1 if the
// code is malformed or the result exceeds capacity bytes.
void encode_runs(const uint8_t *s, size_t n, Writer &out);
ptrdiff_t decode_runs(const uint8_t *code, size_t n, uint8_t *to, size_t capacity);

} // namespace uplink::detail
