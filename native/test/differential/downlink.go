//go:build native

package differential

/*
#cgo LDFLAGS: -luplink_downlink -luplink_codec -lstdc++ -lm
#include <stdlib.h>
#include "uplink/uplink_worlds.h"

// counter counts the bytes that an allocator handed out. A block has its size in front.
typedef struct counter {
	uplink_allocator allocator;
	size_t live, most;
} counter;

static void *count_allocate(void *context, size_t size) {
	counter *c = context;
	size_t *p = malloc(size + 16);
	if (p == NULL) return NULL;
	*p = size;
	c->live += size;
	if (c->live > c->most) c->most = c->live;
	return (char *)p + 16;
}

static void count_release(void *context, void *memory) {
	size_t *p = (size_t *)((char *)memory - 16);
	((counter *)context)->live -= *p;
	free(p);
}

static counter *new_counter(void) {
	counter *c = calloc(1, sizeof *c);
	c->allocator = (uplink_allocator){c, count_allocate, count_release};
	return c;
}
*/
import "C"

import (
	"errors"
	"runtime"
	"unsafe"

	"github.com/uplink-rpc/uplink/internal/snapshot"
	"github.com/uplink-rpc/uplink/schema"
)

var objectClasses = map[schema.Class]C.uplink_object_class{
	schema.ClassNumber: C.UPLINK_CLASS_NUMBER, schema.ClassAngle: C.UPLINK_CLASS_ANGLE, schema.ClassQuat: C.UPLINK_CLASS_QUAT,
	schema.ClassInteger: C.UPLINK_CLASS_INTEGER, schema.ClassBytes: C.UPLINK_CLASS_BYTES,
}

// dropReasons are the errors of both decoders.
var dropReasons = map[C.uplink_error]error{
	C.UPLINK_STALE: snapshot.ErrLate, C.UPLINK_NO_BASELINE: snapshot.ErrBaselineMissing,
	C.UPLINK_DESYNC: snapshot.ErrDesync, C.UPLINK_MALFORMED: snapshot.ErrMalformed,
}

func newObjectType(s *snapshot.Schema) (*C.uplink_object_type, error) {
	fields := make([]C.uplink_object_field, len(s.Fields()))
	for i, f := range s.Fields() {
		fields[i] = C.uplink_object_field{objectClasses[f.Class], C.int32_t(f.N), C.int32_t(f.Lo), C.int32_t(f.Hi)}
	}
	var t *C.uplink_object_type
	return t, check(C.uplink_object_type_of_fields(nil, &fields[0], C.size_t(len(fields)), &t))
}

// nativeWorld is a decoder of the library, of snapshots or of a world with areas.
type nativeWorld struct {
	kind      *C.uplink_object_type
	memory    *C.counter
	snapshots *C.uplink_snapshot_decoder
	areas     *C.uplink_area_decoder
	info      C.uplink_snapshot_info
	objects   C.uplink_objects
}

func newNativeSnapshots(s *snapshot.Schema, initial []byte) (*nativeWorld, error) {
	t, err := newObjectType(s)
	if err != nil {
		return nil, err
	}
	w := &nativeWorld{kind: t, memory: C.new_counter()}
	return w, check(C.uplink_snapshot_decoder_create(&w.memory.allocator, t, pointer(initial), C.size_t(len(initial)), 0, &w.snapshots))
}

func newNativeAreas(s *snapshot.Schema) (*nativeWorld, error) {
	t, err := newObjectType(s)
	if err != nil {
		return nil, err
	}
	w := &nativeWorld{kind: t, memory: C.new_counter()}
	var pinned runtime.Pinner
	defer pinned.Unpin()
	pinned.Pin(t)
	return w, check(C.uplink_area_decoder_create(&w.memory.allocator, &w.kind, 1, 0, &w.areas))
}

// close returns the largest number of bytes that the decoder took, and the number of those that it
// has not released.
func (w *nativeWorld) close() (most, left int) {
	C.uplink_snapshot_decoder_destroy(w.snapshots)
	C.uplink_area_decoder_destroy(w.areas)
	C.uplink_object_type_destroy(w.kind)
	most, left = int(w.memory.most), int(w.memory.live)
	C.free(unsafe.Pointer(w.memory))
	return most, left
}

// decode decodes a message. The error is one of dropReasons.
func (w *nativeWorld) decode(b []byte) error {
	var e C.uplink_error
	if w.snapshots != nil {
		e = C.uplink_snapshot_decoder_decode(w.snapshots, pointer(b), C.size_t(len(b)), &w.info, &w.objects)
	} else {
		e = C.uplink_area_decoder_decode(w.areas, pointer(b), C.size_t(len(b)), &w.info)
		C.uplink_area_decoder_shown(w.areas, 0, &w.objects)
	}
	if err, ok := dropReasons[e]; ok {
		return err
	}
	return check(e)
}

// equal reports whether the decoded objects are those of a set.
func (w *nativeWorld) equal(set *snapshot.Set) bool {
	n, width := int(w.objects.n), int(w.objects.components)
	if n != set.Len() {
		return false
	}
	objects, rows := unsafe.Slice(w.objects.objects, n), unsafe.Slice((*int32)(w.objects.rows), n*width)
	for i := range n {
		o, row := set.Object(i), set.Row(i)
		if uint16(objects[i].id) != o.ID || uint8(objects[i].generation) != o.Generation {
			return false
		}
		for k, v := range rows[i*width : (i+1)*width] {
			if row[k] != v {
				return false
			}
		}
	}
	return true
}

func (w *nativeWorld) ack() []byte {
	var b [C.UPLINK_MAX_ACK]C.uint8_t
	n := C.size_t(0)
	if w.snapshots != nil {
		n = C.uplink_snapshot_decoder_ack(w.snapshots, &b[0])
	} else {
		n = C.uplink_area_decoder_ack(w.areas, &b[0])
	}
	return C.GoBytes(unsafe.Pointer(&b[0]), C.int(n))
}

// sameReason reports whether both decoders gave the same result.
func sameReason(a, native error) bool { return errors.Is(a, native) && (a == nil) == (native == nil) }

func pointer(b []byte) *C.uint8_t {
	if len(b) == 0 {
		return nil
	}
	return (*C.uint8_t)(&b[0])
}
