//go:build native

// Package differential compares the native library with the Go packages: both ends of each play
// against both ends of the other. It is built with the tag native, after the library.
package differential

/*
#cgo CFLAGS: -I${SRCDIR}/../../include
#cgo LDFLAGS: -luplink_codec -lstdc++ -lm
#include <stdlib.h>
#include "uplink/uplink.h"

// play_moves encodes and decodes n frames of components, with an ack of what was sent age frames
// before. It returns the number of frames that came out as they went in, or -1.
static long play_moves(uplink_encoder *e, uplink_decoder *d, uplink_frame *f, const int32_t *components, size_t width, size_t n, size_t age) {
	uint8_t payload[1200], acks[64][UPLINK_MAX_ACK];
	size_t sizes[64] = {0};
	uplink_call calls[UPLINK_MAX_CALLS];
	long equal = 0;
	for (size_t i = 0; i < n; i++) {
		size_t size, count, used;
		const int32_t *row = components + i * width;
		if (i >= age && uplink_encoder_ack(e, acks[(i - age) % 64], sizes[(i - age) % 64], &used) != 0) return -1;
		if (uplink_frame_set_components(f, row, width) != 0 || uplink_encoder_encode(e, f, payload, sizeof payload, &size) != 0) return -1;
		if (uplink_decoder_decode(d, payload, size, calls, &count) != 0 || count != 1) return -1;
		sizes[i % 64] = uplink_decoder_ack(d, acks[i % 64]);
		const int32_t *got = uplink_frame_components(calls[0].frame);
		size_t k = 0;
		while (k < width && got[k] == row[k]) k++;
		equal += k == width;
	}
	return equal;
}
*/
import "C"

import (
	"fmt"
	"unsafe"

	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/schema"
)

// nativeError is an error of the library.
type nativeError C.uplink_error

func (e nativeError) Error() string { return C.GoString(C.uplink_error_text(C.uplink_error(e))) }

func check(e C.uplink_error) error {
	if e != C.UPLINK_OK {
		return nativeError(e)
	}
	return nil
}

var kinds = map[schema.Kind]C.uplink_kind{
	schema.KindVec2: C.UPLINK_VEC2, schema.KindVec3: C.UPLINK_VEC3, schema.KindScalar: C.UPLINK_SCALAR, schema.KindAngle: C.UPLINK_ANGLE,
	schema.KindQuat: C.UPLINK_QUAT, schema.KindUnitVec: C.UPLINK_UNITVEC, schema.KindUint: C.UPLINK_UINT, schema.KindInt: C.UPLINK_INT,
	schema.KindBits: C.UPLINK_BITS, schema.KindBool: C.UPLINK_BOOL, schema.KindFixed: C.UPLINK_FIXED, schema.KindBytes: C.UPLINK_BYTES,
}

// nativeSchema is a schema of the library, equal to one in Go.
type nativeSchema struct {
	s  *C.uplink_schema
	of *schema.Schema
}

func newSchema(s *schema.Schema) (*nativeSchema, error) {
	fields := s.Fields()
	native := unsafe.Slice((*C.uplink_field)(C.calloc(C.size_t(len(fields)), C.sizeof_uplink_field)), len(fields))
	for i, f := range fields {
		n := &native[i]
		n.name, n.kind = C.CString(f.Name), kinds[f.Kind]
		n.count, n.resolution, n.velocity_scale = C.int32_t(f.Count), C.double(f.Resolution), C.double(f.VelocityScale)
		if n.kind == C.UPLINK_VEC2 || n.kind == C.UPLINK_VEC3 || n.kind == C.UPLINK_QUAT || n.kind == C.UPLINK_UNITVEC {
			n.count = 1
		}
		if f.Kind != schema.KindBool {
			n.width = C.int32_t(f.Width)
		}
		n.bits, n.size = C.int32_t(f.Bits), C.int32_t(f.Size)
		if f.Velocity != "" {
			n.velocity = C.CString(f.Velocity)
		}
		switch {
		case f.Kind == schema.KindBytes:
			n.size = C.int32_t(*f.Max)
		default:
			if f.Min != nil {
				n.has_min, n.min = 1, C.double(*f.Min)
			}
			if f.Max != nil {
				n.has_max, n.max = 1, C.double(*f.Max)
			}
		}
	}
	out := &nativeSchema{of: s}
	var wrong C.size_t
	if err := check(C.uplink_schema_create(nil, C.CString(s.RPC()), C.double(s.RateHz()), &native[0], C.size_t(len(native)), &out.s, &wrong)); err != nil {
		return nil, fmt.Errorf("field %d of %d: %w", wrong, len(native), err)
	}
	factors := s.PerTick()
	if len(factors) > 0 {
		if err := check(C.uplink_schema_set_velocity_factors(out.s, (*C.int64_t)(unsafe.Pointer(&factors[0])), C.size_t(len(factors)))); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (s *nativeSchema) fingerprint() uint64 { return uint64(C.uplink_schema_fingerprint(s.s)) }

func (s *nativeSchema) close() { C.uplink_schema_destroy(s.s) }

// nativeFrame is a frame of the library.
type nativeFrame struct {
	f       *C.uplink_frame
	strings []C.size_t // fields that are byte strings
}

func (s *nativeSchema) newFrame() (*nativeFrame, error) {
	out := &nativeFrame{}
	for i, f := range s.of.Fields() {
		if f.Kind == schema.KindFixed || f.Kind == schema.KindBytes {
			out.strings = append(out.strings, C.size_t(i))
		}
	}
	return out, check(C.uplink_frame_create(nil, s.s, &out.f))
}

func (f *nativeFrame) set(from *schema.Frame) error {
	if len(from.Ints) > 0 {
		if err := check(C.uplink_frame_set_components(f.f, (*C.int32_t)(unsafe.Pointer(&from.Ints[0])), C.size_t(len(from.Ints)))); err != nil {
			return err
		}
	}
	for i, field := range f.strings {
		b := append([]byte(nil), from.Bytes[i]...)
		if err := check(C.uplink_frame_set_bytes(f.f, field, (*C.uint8_t)(unsafe.SliceData(b)), C.size_t(len(b)))); err != nil {
			return err
		}
	}
	return nil
}

// equal reports whether a frame of the library has the content of one in Go.
func (f *nativeFrame) equal(native *C.uplink_frame, want *schema.Frame) bool {
	c := unsafe.Slice((*int32)(unsafe.Pointer(C.uplink_frame_components(native))), len(want.Ints))
	for i, v := range want.Ints {
		if c[i] != v {
			return false
		}
	}
	for i, field := range f.strings {
		var data *C.uint8_t
		var n C.size_t
		if C.uplink_frame_get_bytes(native, field, &data, &n) != C.UPLINK_OK || string(unsafe.Slice((*byte)(unsafe.Pointer(data)), int(n))) != string(want.Bytes[i]) {
			return false
		}
	}
	return true
}

type nativeEncoder struct {
	e     *C.uplink_encoder
	frame *nativeFrame
}

func codecOf(c rpcdelta.Codec) C.uplink_codec {
	if c == rpcdelta.RLE {
		return C.UPLINK_RLE
	}
	return C.UPLINK_ADAPTIVE
}

func (s *nativeSchema) newEncoder(codec rpcdelta.Codec, rpc, ring, copies int) (*nativeEncoder, error) {
	e := &nativeEncoder{}
	var err error
	if e.frame, err = s.newFrame(); err != nil {
		return nil, err
	}
	c := C.uplink_encoder_config{codec: codecOf(codec), rpc: C.int32_t(rpc), ring: C.int32_t(ring), peer_ring: C.int32_t(ring), copies: C.int32_t(copies)}
	return e, check(C.uplink_encoder_create(nil, s.s, &c, &e.e))
}

func (e *nativeEncoder) encode(f *schema.Frame, to []byte) ([]byte, error) {
	if err := e.frame.set(f); err != nil {
		return nil, err
	}
	var n C.size_t
	err := check(C.uplink_encoder_encode(e.e, e.frame.f, (*C.uint8_t)(unsafe.Pointer(&to[0])), C.size_t(len(to)), &n))
	return to[:n], err
}

func (e *nativeEncoder) ack(b []byte) error {
	var used C.size_t
	return check(C.uplink_encoder_ack(e.e, (*C.uint8_t)(unsafe.Pointer(&b[0])), C.size_t(len(b)), &used))
}

func (e *nativeEncoder) close() {
	C.uplink_encoder_destroy(e.e)
	C.uplink_frame_destroy(e.frame.f)
}

type nativeDecoder struct {
	d     *C.uplink_decoder
	frame *nativeFrame
	calls *[C.UPLINK_MAX_CALLS]C.uplink_call
}

func (s *nativeSchema) newDecoder(codec rpcdelta.Codec, rpc, ring int) (*nativeDecoder, error) {
	d := &nativeDecoder{calls: (*[C.UPLINK_MAX_CALLS]C.uplink_call)(C.calloc(C.UPLINK_MAX_CALLS, C.sizeof_uplink_call))}
	var err error
	if d.frame, err = s.newFrame(); err != nil {
		return nil, err
	}
	c := C.uplink_decoder_config{codec: codecOf(codec), rpc: C.int32_t(rpc), ring: C.int32_t(ring), peer_ring: C.int32_t(ring)}
	return d, check(C.uplink_decoder_create(nil, s.s, &c, &d.d))
}

// decode decodes a payload and calls f with each call.
func (d *nativeDecoder) decode(payload []byte, f func(seq uint64, is func(want *schema.Frame) bool)) error {
	var n C.size_t
	if err := check(C.uplink_decoder_decode(d.d, (*C.uint8_t)(unsafe.Pointer(&payload[0])), C.size_t(len(payload)), &d.calls[0], &n)); err != nil {
		return err
	}
	for i := range d.calls[:n] {
		c := &d.calls[i]
		f(uint64(c.sequence), func(want *schema.Frame) bool { return d.frame.equal(c.frame, want) })
	}
	return nil
}

func (d *nativeDecoder) ack() []byte {
	var b [C.UPLINK_MAX_ACK]byte
	n := C.uplink_decoder_ack(d.d, (*C.uint8_t)(unsafe.Pointer(&b[0])))
	return b[:n]
}

func (d *nativeDecoder) close() {
	C.uplink_decoder_destroy(d.d)
	C.uplink_frame_destroy(d.frame.f)
	C.free(unsafe.Pointer(d.calls))
}

// playMoves plays frames, whose components are in rows, through encoder and decoder of the library,
// without calls from Go in between. It returns the number of frames that came out unchanged.
func (s *nativeSchema) playMoves(codec rpcdelta.Codec, rows []int32, frames, age int) (int, error) {
	e, err := s.newEncoder(codec, 0, 64, 0)
	if err != nil {
		return 0, err
	}
	defer e.close()
	d, err := s.newDecoder(codec, 0, 64)
	if err != nil {
		return 0, err
	}
	defer d.close()
	return int(C.play_moves(e.e, d.d, e.frame.f, (*C.int32_t)(unsafe.Pointer(&rows[0])), C.size_t(len(rows)/frames), C.size_t(frames), C.size_t(age))), nil
}
