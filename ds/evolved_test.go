package ds

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/internal/message"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/rpcdelta/prior"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/streams"
	"github.com/uplink-rpc/uplink/internal/uplinktest/allocs"
	"github.com/uplink-rpc/uplink/internal/uplinktest/race"
	"github.com/uplink-rpc/uplink/internal/versions"
	"github.com/uplink-rpc/uplink/transport"
)

// pose is what the RPCs of these tests have: 5 components in 3 fields.
type pose struct {
	Pos   schema.Vec3 `uplink:"resolution=0.01,min=-1000,max=1000"`
	Yaw   float64     `uplink:"resolution=0.01,min=0,max=360"`
	Flags uint16
}

const poses = 8 // RPCs

// newPoses returns a server of RPCs of a pose.
func newPoses(t testing.TB) *bench {
	t.Helper()
	b := newBench(t, Config{}, func(*Player, Frame[testCall]) {})
	delete(b.srv.rpcs, "Call")
	for n := range poses {
		must(t, Handle(b.srv, fmt.Sprint("Pose", n), func(*Player, Frame[pose]) {}))
	}
	return b
}

// newPlayer returns a player who has bound nothing.
func (b *bench) newPlayer() *Player {
	b.t.Helper()
	conn, err := closedConn()
	must(b.t, err)
	p := newPlayer(b.srv.shards[0], conn)
	p.bulk = streams.New(nil)
	return p
}

// evolvedRequest returns a request of a client whose pose has further fields.
func evolvedRequest(t testing.TB, n int, more ...schema.Field) *message.BindRequest {
	t.Helper()
	typ, err := schema.Compile[pose]("Pose", 0)
	must(t, err)
	own := typ.Schema().Fields()
	s, err := schema.New(fmt.Sprint("Pose", n), 0, append(own[:len(own):len(own)], more...))
	must(t, err)
	r := &message.BindRequest{
		RPC: uint8(n), Name: s.RPC(), Fingerprint: s.Fingerprint(), Fields: message.FieldHashes(s), RateHz: 60, Ring: rpcdelta.DefaultRing,
		Codec: rpcdelta.Adaptive.String(), Frames: rpcdelta.MaxHeld, Prior: prior.Generic().Hash(), PerTick: s.PerTick(), Deadline: rpcdelta.MaxRepairAge,
	}
	for i, d := range versions.Descriptions(s)[len(own):] {
		r.Described = append(r.Described, message.Described{Field: len(own) + i, Description: d})
	}
	return r
}

// scalars returns fields of some components each, with names that no other client has.
func scalars(salt string, fields, each int) (all []schema.Field) {
	for i := range fields {
		all = append(all, schema.Field{Name: fmt.Sprintf("%s%d", salt, i), Kind: schema.KindScalar, Count: each, Resolution: 0.001})
	}
	return all
}

// TestEvolvedFields verifies by how much the fields of a client may exceed those of the server.
func TestEvolvedFields(t *testing.T) {
	text := func(length int) schema.Field {
		return schema.Field{Name: "Text", Kind: schema.KindBytes, Max: new(float64(length))}
	}
	for _, c := range []struct {
		more []schema.Field
		want string // in the refusal; "" if there is none
	}{
		{scalars("X", 2, 1), ""},
		{scalars("X", 1, 4), ""},
		{[]schema.Field{text(31)}, ""},
		{scalars("X", 1, 9), "14 components and 2 bytes of integers and byte strings, want at most 13 and 34: the server has 5 and 2; update the server first"},
		{[]schema.Field{text(32)}, "want at most 13 and 34"},
		{scalars("X", 9, 1), "12 fields and 9 descriptions, want at most 11: the server has 3; update the server first"},
		{scalars("X", 1, 256), "261 components"},
	} {
		b := newPoses(t)
		a := b.srv.bind(b.newPlayer(), evolvedRequest(t, 0, c.more...))
		switch {
		case c.want == "" && a.Reason != message.ReasonNone:
			t.Errorf("%v: %+v", c.more, a)
		case c.want != "" && (a.Reason != message.ReasonInvalid || !strings.Contains(a.Theirs, c.want)):
			t.Errorf("%d fields more: %v %q, want %q", len(c.more), a.Reason, a.Theirs, c.want)
		}
	}
}

// TestEvolvedMemory verifies that clients that describe whatever they may, differently each, make
// the server keep at most twice as much as clients that bind all RPCs with the server's fields.
func TestEvolvedMemory(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector takes memory")
	}
	const clients = 40
	measure := func(fields, each int) (bytes int64, bound int) {
		b := newPoses(t)
		var requests []*message.BindRequest
		for i := range clients {
			for n := range poses {
				requests = append(requests, evolvedRequest(t, n, scalars(fmt.Sprintf("X%d_%d_", i, n), fields, max(each, 1))...))
			}
		}
		before := allocs.Heap()
		var all []*Player
		for i, r := range requests {
			if i%poses == 0 {
				all = append(all, b.newPlayer())
			}
			if b.srv.bind(all[len(all)-1], r).Reason == message.ReasonNone {
				bound++
			}
		}
		bytes = allocs.Heap() - before
		runtime.KeepAlive(all)
		runtime.KeepAlive(requests)
		return bytes / clients, bound / clients
	}
	honest, all := measure(0, 0)
	if all != poses {
		t.Fatalf("%d RPCs bound", all)
	}
	for _, c := range []struct{ fields, each int }{{1, 1}, {2, 1}, {4, 1}, {8, 1}, {1, 8}, {2, 4}} {
		took, bound := measure(c.fields, c.each)
		t.Logf("%d fields of %d components more: %d of %d RPCs bound, %.2f times the memory", c.fields, c.each, bound, poses, float64(took)/float64(honest))
		if took > 2*honest || bound < 3 || c.fields*c.each == 1 && bound < poses {
			t.Errorf("%d bytes, %d without other fields; %d bound", took, honest, bound)
		}
	}
}

// TestDecodingIsLimited verifies that the server decodes no more bytes of frames of a player than
// it permits for its own fields: whatever the player's fields and the redundancy are, and if
// payloads are malformed. A player who calls as often as it declared loses nothing.
func TestDecodingIsLimited(t *testing.T) {
	const hz, seconds = 60, 60
	typ, err := schema.Compile[pose]("Pose", 0)
	must(t, err)
	perSecond := float64(20 * hz * frameSize(typ.Schema()))
	for _, c := range []struct {
		name         string
		more, copies int
		rate         int // payloads a second
		malformed    bool
		all          bool // no payload is dropped
	}{
		{"the server's fields, as declared", 0, rpcdelta.MaxRedundancy, hz, false, true},
		{"the server's fields, twice as often", 0, rpcdelta.MaxRedundancy, 2 * hz, false, false},
		{"few copies, twice as often", 0, 4, 2 * hz, false, true},
		{"more fields, as declared", 8, 8, hz, false, true},
		{"more fields, twice as often", 8, rpcdelta.MaxRedundancy, 2 * hz, false, false},
		{"malformed", 0, 0, 2 * hz, true, false},
	} {
		b := newPoses(t)
		b.srv.cfg.Limits.RateSlack = defaultRateSlack
		p := b.newPlayer()
		r := evolvedRequest(t, 0, scalars("X", c.more, 1)...)
		if a := b.srv.bind(p, r); a.Reason != message.ReasonNone {
			t.Fatalf("%s: %+v", c.name, a)
		}
		own := p.bindings.at(0)
		enc, err := rpcdelta.NewEncoder(own.version.schema, rpcdelta.EncoderConfig{Redundancy: max(c.copies, 1), RedundancyBytes: transport.MaxPayload})
		must(t, err)
		f := own.version.schema.NewFrame()
		bytes, dropped := 0, 0
		for i := range seconds * c.rate {
			f.Ints[0] = int32(i) // a difference of 1 takes few bits: all copies fit
			payload, _, err := enc.AppendFrame(nil, f)
			must(t, err)
			if c.malformed {
				payload = append(payload[:5], 0xff)
			}
			before := p.drops[RateLimited].Load()
			p.receive(payload, p.shard.start.Add(time.Duration(i)*time.Second/time.Duration(c.rate)), false)
			if p.drops[RateLimited].Load() == before {
				bytes += own.dec.Decoded() * frameSize(own.version.schema)
			} else {
				dropped++
			}
		}
		most := perSecond*seconds + p.limits.decoding.Burst + float64(rpcdelta.MaxFrames*frameSize(own.version.schema))
		t.Logf("%s: %d of %d payloads dropped, %.0f%% of the permitted bytes decoded", c.name, dropped, seconds*c.rate, 100*float64(bytes)/most)
		if float64(bytes) > most || c.all != (dropped == 0) || !c.all && float64(bytes) < most*0.95 {
			t.Errorf("%s: %d payloads dropped, %d bytes decoded, at most %.0f are permitted", c.name, dropped, bytes, most)
		}
	}
}

// TestRefusedBindsAreCheap verifies that requests with a number out of its range, or for an RPC
// that is bound already, are refused before their fields are parsed, however many they describe.
func TestRefusedBindsAreCheap(t *testing.T) {
	b := newPoses(t)
	p := b.newPlayer()
	if a := b.srv.bind(p, evolvedRequest(t, 0)); a.Reason != message.ReasonNone {
		t.Fatalf("%+v", a)
	}
	for name, change := range map[string]func(*message.BindRequest){
		"bound": func(r *message.BindRequest) { r.RPC = 9 },
		"ring":  func(r *message.BindRequest) { r.Name, r.RPC, r.Ring = "Pose1", 1, 99999 },
		"rate":  func(r *message.BindRequest) { r.Name, r.RPC, r.RateHz = "Pose1", 1, 1e9 },
		"codec": func(r *message.BindRequest) { r.Name, r.RPC, r.Codec = "Pose1", 1, "morse" },
		"many":  func(r *message.BindRequest) { r.Name, r.RPC, r.Fields = "Pose1", 1, make([]uint16, 300) },
	} {
		r := evolvedRequest(t, 0, scalars("X", 8, 1)...)
		change(r)
		if n := allocs.PerRun(100, func() {
			if b.srv.bind(p, r).Reason == message.ReasonNone {
				t.Error("bound")
			}
		}); n > 10 && !race.Enabled {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
	if len(b.srv.rpcs["Pose1"].shards[0].versions) != 0 {
		t.Error("a version was compiled")
	}
}

// TestBurstOfBinds verifies how many requests of a burst are handled: the more a request describes,
// the fewer.
func TestBurstOfBinds(t *testing.T) {
	for _, c := range []struct{ more, most int }{{0, 16 + 4*poses}, {8, (16 + 4*poses) / 2}} {
		b := newPoses(t)
		p := b.newPlayer()
		r := evolvedRequest(t, 0, scalars("Something", c.more, 1)...)
		r.Ring = 99999
		request, err := r.Append(nil)
		must(t, err)
		const sent = 1000
		for range sent {
			p.receive(request, p.shard.start, false)
		}
		if handled := sent - int(p.drops[RateLimited].Load()); handled != c.most {
			t.Errorf("%d of %d requests of %d bytes were handled, want %d", handled, sent, len(request), c.most)
		}
		if p.mistakes != maxMistakes {
			t.Errorf("%d are logged", p.mistakes)
		}
	}
}

// TestQueueOfBinds sends bursts of requests from many clients: a shard answers few of them from one
// tick to the next. The clients take turns, so that another one waits for none of their bursts.
// Nothing of a player who has left is answered, repeated requests wait once, and requests of one
// player are at most a burst.
func TestQueueOfBinds(t *testing.T) {
	b := newPoses(t)
	h := b.srv.shards[0]
	request := func(ring int) []byte {
		r := evolvedRequest(t, 0)
		r.Ring = ring
		all, err := r.Append(nil)
		must(t, err)
		return all
	}
	const burst, clients = spareBinds + 4*poses, 20
	cost := bindCost(request(99_999)[1:])
	var all []*Player
	join := func() *Player {
		p := b.newPlayer()
		h.players[p] = struct{}{}
		all = append(all, p)
		return p
	}
	sum := func() (units int) {
		for _, p := range all {
			units += p.limits.waitingBinds
		}
		return units
	}
	for range clients {
		p := join()
		for n := range burst {
			p.receive(request(99_000+n), h.start, false)
		}
	}
	atOnce := (bindsPerTick + cost - 1) / cost
	if n, want := sum(), (clients*(burst/cost)-atOnce)*cost; n != want {
		t.Errorf("%d units wait, want %d", n, want)
	}
	later := h.start.Add(time.Hour) // all limits of rates are full again
	before := sum()
	for n := range burst {
		all[clients-1].receive(request(99_000+n), later, false)
	}
	if n := sum(); n != before {
		t.Errorf("%d units wait after requests were repeated, want %d", n, before)
	}
	for n := range burst {
		all[clients-1].receive(request(98_000+n), later.Add(time.Hour), false)
	}
	if n := all[clients-1].limits.waitingBinds; n > burst {
		t.Errorf("requests of %d units wait for one player, want at most %d", n, burst)
	}
	honest := join()
	honest.receive(request(rpcdelta.DefaultRing), h.start, true)
	delete(h.players, all[2])
	gone := all[2].mistakes
	for ticks := 0; honest.bindings.at(0) == nil; ticks++ {
		if ticks == (clients*cost+bindsPerTick-1)/bindsPerTick {
			t.Fatalf("the request of another client waits after %d ticks", ticks)
		}
		before := sum()
		h.answerBinds()
		if n := before - sum(); n >= bindsPerTick+cost {
			t.Errorf("%d units in a tick, want at most %d", n, bindsPerTick)
		}
	}
	for len(h.binds.players) > 0 {
		h.answerBinds()
	}
	if n := sum() - all[2].limits.waitingBinds; n != 0 || all[2].mistakes != gone {
		t.Errorf("%d units wait after all are answered, %d mistakes of the player who has left", n, all[2].mistakes-gone)
	}
}
