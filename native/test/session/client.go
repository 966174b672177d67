//go:build native

package session

/*
#cgo CFLAGS: -I${SRCDIR}/../../include
#cgo LDFLAGS: -luplink
#include <stdlib.h>
#include "uplink/uplink_state.h"

// one_field creates a schema with a number.
static uplink_error one_field(const char *name, uplink_schema **out) {
	uplink_field f;
	UPLINK_INIT(f);
	f.name = "N";
	f.kind = UPLINK_SCALAR;
	f.resolution = 1;
	return uplink_schema_create(0, name, 60, &f, 1, out, 0);
}

static uplink_error new_world(const uplink_schema *s, uplink_snapshot_world **out) {
	const uplink_schema *types[1] = {s};
	return uplink_snapshot_world_create(0, types, 0, 1, 0, out);
}

static uplink_error subscribe_snapshots(uplink_client *c, const char *name, uplink_snapshot_world *w, int32_t *world) {
	return uplink_client_subscribe(c, name, uplink_snapshot_world_base(w), 0, world);
}

// object returns the component of object i, or -1.
static int32_t object(const uplink_snapshot_world *w, size_t i, int32_t *id) {
	uplink_objects o;
	UPLINK_INIT(o);
	uplink_snapshot_world_objects(w, 0, &o);
	*id = i < o.n ? o.objects[i].id : 0;
	return i < o.n ? o.rows[i * o.components] : -1;
}

// states are objects of decoded packets, until Go has read them.
typedef struct {
	int64_t tick;
	int32_t id, value;
} state;
typedef struct {
	size_t n;
	state list[4096];
} states;

static void keep(void *context, const uplink_state_world *w, const uplink_state_update *u) {
	states *s = context;
	for (size_t i = 0; i < u->objects && s->n < 4096; i++) {
		uplink_state_object o;
		UPLINK_INIT(o);
		uplink_state_receiver_object(uplink_state_world_receiver(w), i, &o);
		s->list[s->n++] = (state){u->tick, o.id, o.removed ? -1 : o.components[0]};
	}
}

static uplink_error subscribe_states(uplink_client *c, const char *name, const uplink_schema *objects, states *s, uplink_state_world **out,
		int32_t *world) {
	uplink_error e = uplink_state_world_create(0, objects, 0, keep, s, out);
	return e != UPLINK_OK ? e : uplink_client_subscribe(c, name, uplink_state_world_base(*out), 0, world);
}
*/
import "C"

import (
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"sync"
	"time"
	"unsafe"

	"github.com/uplink-rpc/uplink/transport"
)

// nativeError is an error of the library.
type nativeError C.uplink_error

func (e nativeError) Error() string { return C.GoString(C.uplink_error_text(C.uplink_error(e))) }

const nativeFull = nativeError(C.UPLINK_FULL)

func check(e C.uplink_error) error {
	if e != C.UPLINK_OK {
		return nativeError(e)
	}
	return nil
}

// event is an event of the library.
type event struct {
	kind, status, reason, rpc, world int
	reliable                         bool
	value                            uint64
	number                           int32 // number of a server's call
	data                             []byte
}

const (
	eventConnected    = int(C.UPLINK_CONNECTED)
	eventReconnecting = int(C.UPLINK_RECONNECTING)
	eventDisconnected = int(C.UPLINK_DISCONNECTED)
	eventBound        = int(C.UPLINK_BOUND)
	eventBindFailed   = int(C.UPLINK_BIND_FAILED)
	eventMessage      = int(C.UPLINK_MESSAGE)
	eventAnswer       = int(C.UPLINK_ANSWER)
	eventHandover     = int(C.UPLINK_HANDOVER)
	eventServerCall   = int(C.UPLINK_SERVER_CALL)
	eventWorldUpdate  = int(C.UPLINK_WORLD_UPDATE)
	eventSilent       = int(C.UPLINK_SILENT)
	eventMismatch     = int(C.UPLINK_MISMATCH)
	eventWorld        = int(C.UPLINK_WORLD)
)

// reasonText returns the text of event.reason.
func reasonText(reason int) string { return C.GoString(C.uplink_reason_text(C.int32_t(reason))) }

// native is a client of the library over a network in virtual time. Its methods are for one
// goroutine.
type native struct {
	client  *C.uplink_client
	schemas map[string]*C.uplink_schema
	frames  []*C.uplink_frame          // by RPC
	worlds  []*C.uplink_snapshot_world // by number
	state   *C.uplink_state_world
	kept    *C.states // of state

	pc      transport.PacketConn
	server  netip.AddrPort // server of connect
	network transport.Network
	readers sync.WaitGroup
	inbox   chan []byte
	start   time.Time
}

// newNative returns a client whose first server is at an address.
func newNative(n transport.Network, server netip.AddrPort) (*native, error) {
	pc, err := n.ListenPacket("127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	c := &native{schemas: map[string]*C.uplink_schema{}, network: n, pc: pc, server: server, inbox: make(chan []byte, 1<<14), start: time.Now(), kept: (*C.states)(C.calloc(1, C.sizeof_states))}
	cfg := C.uplink_client_config{struct_size: C.sizeof_uplink_client_config, crypto: C.uplink_library_crypto(), handlers: 1, worlds: 3, streams: 1, local_handovers: 1}
	if err := check(C.uplink_client_create(nil, &cfg, &c.client)); err != nil {
		return nil, err
	}
	c.readers.Go(func() { c.read(pc) })
	return c, nil
}

func (c *native) read(pc transport.PacketConn) {
	for {
		b := make([]byte, maxDatagram+1)
		n, _, err := pc.ReadFrom(b)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		select {
		case c.inbox <- b[:n]:
		default: // as if the socket's buffer were full
		}
	}
}

// rebind continues from another port.
func (c *native) rebind() error {
	_ = c.pc.Close()
	pc, err := c.network.ListenPacket("127.0.0.1:0")
	if err != nil {
		return err
	}
	c.pc = pc
	c.readers.Go(func() { c.read(pc) })
	C.uplink_client_rebind(c.client, c.now())
	return nil
}

func (c *native) close() {
	_ = c.pc.Close()
	c.readers.Wait()
	C.uplink_client_destroy(c.client)
	for _, w := range c.worlds {
		C.uplink_snapshot_world_destroy(w)
	}
	C.uplink_state_world_destroy(c.state)
	C.free(unsafe.Pointer(c.kept))
	for _, f := range c.frames {
		C.uplink_frame_destroy(f)
	}
	for _, s := range c.schemas {
		C.uplink_schema_destroy(s)
	}
}

// now returns the time of the library, which is never 0.
func (c *native) now() C.uint64_t { return C.uint64_t(time.Since(c.start) + time.Second) }

// schema returns a schema with one number.
func (c *native) schema(name string) (*C.uplink_schema, error) {
	if s := c.schemas[name]; s != nil {
		return s, nil
	}
	text := C.CString(name)
	defer C.free(unsafe.Pointer(text))
	var s *C.uplink_schema
	err := check(C.one_field(text, &s))
	c.schemas[name] = s
	return s, err
}

func (c *native) bind(name string, reliable bool) error {
	s, err := c.schema(name)
	if err != nil {
		return err
	}
	cfg := C.uplink_bind_config{struct_size: C.sizeof_uplink_bind_config}
	cfg.codec = C.UPLINK_ADAPTIVE
	if reliable {
		cfg.reliable = 1
	}
	var rpc C.int32_t
	var f *C.uplink_frame
	err = errors.Join(check(C.uplink_client_bind(c.client, s, &cfg, &rpc)), check(C.uplink_frame_create(nil, s, &f)))
	c.frames = append(c.frames, f)
	return err
}

func (c *native) handle(name string) error {
	s, err := c.schema(name)
	if err != nil {
		return err
	}
	var n C.int32_t
	return check(C.uplink_client_handle(c.client, s, &n))
}

// subscribe subscribes to a world whose objects have one number.
func (c *native) subscribe(name string) error {
	s, err := c.schema(name)
	if err != nil {
		return err
	}
	text := C.CString(name)
	defer C.free(unsafe.Pointer(text))
	var n C.int32_t
	var w *C.uplink_snapshot_world
	if err := check(C.new_world(s, &w)); err != nil {
		return err
	}
	c.worlds = append(c.worlds, w)
	return check(C.subscribe_snapshots(c.client, text, w, &n))
}

// subscribeState subscribes to a world by state synchronization, whose objects have one number.
func (c *native) subscribeState(name string) error {
	s, err := c.schema(name)
	if err != nil {
		return err
	}
	text := C.CString(name)
	defer C.free(unsafe.Pointer(text))
	var n C.int32_t
	return check(C.subscribe_states(c.client, text, s, c.kept, &c.state, &n))
}

// state is an object of a decoded packet.
type state struct {
	tick  uint64
	id    int
	value int32 // -1: removed
}

// states returns the objects of the packets that were decoded since the last call.
func (c *native) states() []state {
	var out []state
	for _, s := range c.kept.list[:c.kept.n] {
		out = append(out, state{uint64(s.tick), int(s.id), int32(s.value)})
	}
	c.kept.n = 0
	return out
}

// snapshot returns the tick of the newest snapshot of a world, and the numbers of its objects by
// id.
func (c *native) snapshot(world int) (tick uint64, objects map[int]int32) {
	s := C.uplink_snapshot{struct_size: C.sizeof_uplink_snapshot}
	if C.uplink_snapshot_world_newest(c.worlds[world], &s) == 0 {
		return 0, nil
	}
	objects = map[int]int32{}
	for i := C.size_t(0); ; i++ {
		var id C.int32_t
		v := C.object(c.worlds[world], i, &id)
		if v < 0 {
			return uint64(s.tick), objects
		}
		objects[int(id)] = int32(v)
	}
}

func (c *native) connect(token string) error {
	text := C.CString(token)
	defer C.free(unsafe.Pointer(text))
	return check(C.uplink_client_connect(c.client, text, C.size_t(len(token)), c.now()))
}

func (c *native) assign(server, token string) error {
	address, text := C.CString(server), C.CString(token)
	defer C.free(unsafe.Pointer(address))
	defer C.free(unsafe.Pointer(text))
	return check(C.uplink_client_assign(c.client, address, text, C.size_t(len(token)), c.now()))
}

// pace is the server's report on an RPC's jitter buffer.
type pace struct {
	rate          float64
	slack, target time.Duration
	missing, late uint64
}

// ticks returns the clock of a world, the tick in which the server will use a call, and the pace of
// its RPC.
func (c *native) ticks(world, rpc int) (server, input float64, p pace) {
	s := C.uplink_stats{struct_size: C.sizeof_uplink_stats}
	C.uplink_client_stats(c.client, &s)
	t := C.uplink_ticks{struct_size: C.sizeof_uplink_ticks}
	own := C.uplink_pace{struct_size: C.sizeof_uplink_pace}
	C.uplink_client_pace(c.client, C.int32_t(rpc), c.now(), &own)
	if C.uplink_world_clock(C.uplink_snapshot_world_base(c.worlds[world]), c.now(), s.min_rtt, s.rtt, &t) == 0 {
		return 0, 0, p
	}
	p = pace{float64(own.rate), time.Duration(own.slack), time.Duration(own.target), uint64(own.missing), uint64(own.late)}
	return float64(t.server), float64(C.uplink_ticks_input(&t, &own)), p
}

func (c *native) call(rpc int, n int32) error {
	v := C.int32_t(n)
	if err := check(C.uplink_frame_set_components(c.frames[rpc], &v, 1)); err != nil {
		return err
	}
	return check(C.uplink_client_call(c.client, C.int32_t(rpc), c.frames[rpc], c.now()))
}

func (c *native) send(n uint32) error {
	b := binary.LittleEndian.AppendUint32(nil, n)
	return check(C.uplink_client_send(c.client, (*C.uint8_t)(&b[0]), C.size_t(len(b)), 1, c.now()))
}

func (c *native) request(body []byte) (id uint32, err error) {
	var n C.uint32_t
	err = check(C.uplink_client_request(c.client, (*C.uint8_t)(&body[0]), C.size_t(len(body)), &n, c.now()))
	return uint32(n), err
}

func (c *native) openStream(name string) (stream uint32, err error) {
	text := C.CString(name)
	defer C.free(unsafe.Pointer(text))
	var n C.uint32_t
	err = check(C.uplink_client_open_stream(c.client, text, &n, c.now()))
	return uint32(n), err
}

// writeStream sends as much of b as there is room for.
func (c *native) writeStream(stream uint32, b []byte) error {
	var n C.size_t
	err := check(C.uplink_client_write_stream(c.client, C.uint32_t(stream), (*C.uint8_t)(&b[0]), C.size_t(len(b)), &n, c.now()))
	if errors.Is(err, nativeFull) {
		return nil
	}
	return err
}

// path returns the rate of the path in bytes/s, and the time in its queue.
func (c *native) path() (rate uint64, queue time.Duration) {
	s := C.uplink_stats{struct_size: C.sizeof_uplink_stats}
	C.uplink_client_stats(c.client, &s)
	return uint64(s.path_rate), time.Duration(s.path_queue)
}

// run receives and sends all pending datagrams, and passes events to take.
func (c *native) run(take func(*event)) {
	for more := true; more; {
		select {
		case b := <-c.inbox:
			C.uplink_client_receive(c.client, (*C.uint8_t)(&b[0]), C.size_t(len(b)), c.now())
		default:
			more = false
		}
	}
	for {
		var b [maxDatagram]byte
		var a C.uplink_address
		n := C.uplink_client_next_datagram(c.client, (*C.uint8_t)(&b[0]), C.size_t(len(b)), &a, c.now())
		if n == 0 {
			break
		}
		to := c.server
		if a.family != 0 {
			to = netip.AddrPortFrom(netip.AddrFrom4([4]byte(C.GoBytes(unsafe.Pointer(&a.ip[0]), 4))), uint16(a.port))
		}
		_, _ = c.pc.WriteTo(b[:n], to)
	}
	for {
		e := C.uplink_event{struct_size: C.sizeof_uplink_event}
		if C.uplink_client_poll_event(c.client, &e) == 0 {
			return
		}
		out := event{
			kind: int(e._type), status: int(e.status), reason: int(e.reason), rpc: int(e.rpc), world: int(e.world), reliable: e.reliable != 0, value: uint64(e.value),
			data: C.GoBytes(unsafe.Pointer(e.data), C.int(e.size)),
		}
		if e.frame != nil {
			out.number = int32(*C.uplink_frame_components(e.frame))
		}
		take(&out)
	}
}

// dropped returns the number of datagrams that belong to none of the client's sessions.
func (c *native) dropped() uint64 {
	s := C.uplink_stats{struct_size: C.sizeof_uplink_stats}
	C.uplink_client_stats(c.client, &s)
	return uint64(s.dropped)
}
