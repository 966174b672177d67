package snapshots

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/uplink-rpc/uplink/internal/replication/areas"
	"github.com/uplink-rpc/uplink/internal/snapshot"
	"github.com/uplink-rpc/uplink/internal/uplinktest/corpus"
	"github.com/uplink-rpc/uplink/internal/uplinktest/entries"
	"github.com/uplink-rpc/uplink/internal/uplinktest/sessions"
	"github.com/uplink-rpc/uplink/schema"
	"github.com/uplink-rpc/uplink/statesync"
)

// classes are the words of golden sessions.
var classes = map[schema.Class]string{
	schema.ClassNumber: "motion", schema.ClassQuat: "quat", schema.ClassInteger: "flags", schema.ClassAngle: "angle", schema.ClassBytes: "bytes",
}

// fieldsOf returns the fields of a schema.
func fieldsOf(s *snapshot.Schema) (fields []field) {
	at := 0
	for _, f := range s.Fields() {
		fields = append(fields, field{class: classes[f.Class], n: f.N, at: at, lo: int64(f.Lo), hi: int64(f.Hi)})
		at += f.N
	}
	return fields
}

// attempt returns the result of f, which is malformed if f reads beyond the end of a message.
func attempt(f func() string) (result string) {
	defer func() {
		if err, ok := recover().(error); ok {
			if end := runtime.Error(nil); !errors.As(err, &end) || !strings.Contains(err.Error(), "out of range") {
				panic(err)
			}
			result = "malformed"
		}
	}()
	return f()
}

// word returns the word of golden sessions for the error of a decoder.
func word(err error) string {
	for word, target := range map[string]error{
		"late": snapshot.ErrLate, "missing": snapshot.ErrBaselineMissing, "desync": snapshot.ErrDesync, "malformed": snapshot.ErrMalformed,
	} {
		if errors.Is(err, target) {
			return word
		}
	}
	return "right"
}

// same checks that objects of both decoders are equal.
func same(t testing.TB, got *snapshot.Set, want []object) {
	t.Helper()
	if got.Len() != len(want) {
		t.Fatalf("%d objects, and %d according to the specification", got.Len(), len(want))
	}
	for i, o := range want {
		equal := slices.EqualFunc(got.Row(i), o.row, func(a int32, b int64) bool { return int64(a) == b })
		if int64(got.Object(i).ID) != o.id || int64(got.Object(i).Generation) != o.generation || !equal {
			t.Fatalf("object %+v with %v is %v according to the specification", got.Object(i), got.Row(i), o)
		}
	}
}

// addSet adds the objects of a set to the hash of results.
func addSet(h *corpus.Hash, s *snapshot.Set) {
	h.Add(int32(s.Len()))
	for i := range s.Len() {
		h.Add(int32(s.Object(i).ID), int32(s.Object(i).Generation))
		h.Add(s.Row(i)...)
	}
}

// result returns the result of a message in a line of results: the word for an error, or the hash.
func result(err error, h corpus.Hash) string {
	if err != nil {
		return word(err) + " "
	}
	return fmt.Sprintf("%016x ", uint64(h))
}

func (d *decoder) clone() *decoder {
	c := *d
	c.sets, c.decoded = maps.Clone(d.sets), maps.Clone(d.decoded)
	return &c
}

// FuzzSnapshots compares the decoder of package snapshot with that of the specification, also on
// payloads of a sender that makes random decisions.
func FuzzSnapshots(f *testing.F) {
	const history = 16
	var all []sessions.Session
	var held [][]*decoder // by session, and the number of payloads received
	tab := readTables(f)
	for _, name := range []string{"cubes", "ground", "kinds", "physics"} {
		s := sessions.Read(f, "internal/snapshot/testdata/"+name+".session", "send")
		d := &decoder{initial: &set{}, sets: map[int64]*set{}, decoded: map[int64]bool{}}
		d.p.tab, d.p.fields = tab, fieldsOf(s.Schemas[0])
		d.p.init()
		decoders := []*decoder{d}
		for _, m := range s.Messages[:min(history, len(s.Messages)-1)] {
			d = d.clone()
			d.receive(m)
			decoders = append(decoders, d)
		}
		all, held = append(all, s), append(held, decoders)
	}
	generate := func(r *rand.Rand) []byte {
		i := r.IntN(len(all))
		n := r.IntN(len(held[i]))
		d, in := held[i][n].clone(), []byte{byte(i), byte(n)}
		for range 1 + r.IntN(3) {
			m := all[i].Messages[min(n, len(all[i].Messages)-1)]
			n++
			s := &script{r: r}
			d.p.script = s
			_ = attempt(func() string { _, result := d.receive(m); return result })
			d.p.script = nil
			in = append(in, entries.Of(s.finish(m), false)...)
		}
		return in
	}
	x := corpus.Target{Parser: "snapshot", Inputs: 100_000, Generate: generate, Check: func(t testing.TB, in []byte) {
		if len(in) < 2 {
			return
		}
		i := int(in[0]) % len(all)
		n := min(int(in[1])%(history+1), len(held[i])-1)
		spec, dec := held[i][n], snapshot.NewDecoder(all[i].Schemas[0], nil)
		for _, m := range all[i].Messages[:n] {
			_, _, _ = dec.Decode(m)
		}
		for m := range entries.All(in[2:]) {
			next := spec.clone()
			var want *set
			result := attempt(func() (result string) { want, result = next.receive(m); return result })
			_, got, err := dec.Decode(m)
			if word(err) != result {
				t.Fatalf("%x: %v, and %s according to the specification", m, err, result)
			}
			if err == nil {
				same(t, got, want.objects)
			}
			spec = next
		}
	}, Results: func(_ testing.TB, in []byte) (line string) {
		if len(in) < 2 {
			return ""
		}
		i := int(in[0]) % len(all)
		dec := snapshot.NewDecoder(all[i].Schemas[0], nil)
		for _, m := range all[i].Messages[:min(int(in[1])%(history+1), len(held[i])-1)] {
			_, _, _ = dec.Decode(m)
		}
		for m := range entries.All(in[2:]) {
			var h corpus.Hash
			_, set, err := dec.Decode(m)
			if err == nil {
				addSet(&h, set)
			}
			line += result(err, h)
		}
		return line
	}}
	x.Run(f)
}

func (r *stateReceiver) clone() *stateReceiver {
	c := *r
	c.packets, c.decoded, c.objects = maps.Clone(r.packets), maps.Clone(r.decoded), maps.Clone(r.objects)
	for id, all := range c.objects {
		c.objects[id] = slices.Clone(all)
	}
	return &c
}

// FuzzState compares the receiver of package statesync with that of the specification, also on
// packets of a sender that makes random decisions.
func FuzzState(f *testing.F) {
	const history = 16
	s := sessions.Read(f, "statesync/testdata/kinds.golden", "packet")
	cfg := statesync.Config{Rest: "Asleep", Velocities: []schema.Velocity{
		{Field: "Place", Of: "Speed", PerTick: schema.StepsPerTick(1. / 60)}, {Field: "Heading", Of: "Turning", PerTick: schema.StepsPerTick(-1. / 30)},
	}}
	first := &stateReceiver{rest: -1}
	for i, one := range fieldsOf(s.Schemas[0]) {
		first.fields = append(first.fields, stateField{field: one, name: s.Schemas[0].Fields()[i].Name, velocity: -1})
	}
	index := func(name string) int {
		return slices.IndexFunc(first.fields, func(f stateField) bool { return f.name == name })
	}
	for _, v := range cfg.Velocities {
		of := &first.fields[index(v.Field)]
		of.velocity, of.factor = index(v.Of), (v.PerTick+4)>>3
		first.fields[of.velocity].isVelocity = true
	}
	first.rest = index(cfg.Rest)
	first.init()
	held := []*stateReceiver{first}
	for _, p := range s.Messages[:history] {
		next := held[len(held)-1].clone()
		_, _ = next.receive(p)
		held = append(held, next)
	}
	generate := func(r *rand.Rand) []byte {
		n := r.IntN(len(held))
		spec, in := held[n].clone(), []byte{byte(n)}
		for range 1 + r.IntN(3) {
			p := s.Messages[n]
			n++
			c := &script{r: r}
			spec.script = c
			_ = attempt(func() string { _, result := spec.receive(p); return result })
			spec.script = nil
			in = append(in, entries.Of(c.finish(p), false)...)
		}
		return in
	}
	x := corpus.Target{Parser: "state", Inputs: 60_000, Generate: generate, Check: func(t testing.TB, in []byte) {
		if len(in) == 0 {
			return
		}
		n := int(in[0]) % (history + 1)
		spec := held[n]
		r, err := statesync.NewReceiver(s.Schemas[0], cfg)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range s.Messages[:n] {
			_, _ = r.Decode(p)
		}
		for p := range entries.All(in[1:]) {
			next := spec.clone()
			var want *statePacket
			result := attempt(func() (result string) {
				if want, result = next.receive(p); want != nil {
					result = "right"
				}
				return result
			})
			u, err := r.Decode(p)
			if word(err) != result {
				t.Fatalf("%x: %v, and %s according to the specification", p, err, result)
			}
			if err == nil {
				sameUpdates(t, u, want)
			}
			spec = next
		}
	}, Results: func(t testing.TB, in []byte) (line string) {
		if len(in) == 0 {
			return ""
		}
		r, err := statesync.NewReceiver(s.Schemas[0], cfg)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range s.Messages[:int(in[0])%(history+1)] {
			_, _ = r.Decode(p)
		}
		for p := range entries.All(in[1:]) {
			var h corpus.Hash
			u, err := r.Decode(p)
			if err == nil {
				h.Add(int32(u.Tick), int32(len(u.Objects)))
				for _, o := range u.Objects {
					if h.Add(int32(o.ID)); !o.Gone {
						h.Add(int32(o.Generation))
						h.Add(o.Row...)
					}
				}
			}
			line += result(err, h)
		}
		return line
	}}
	x.Run(f)
}

func sameUpdates(t testing.TB, got *statesync.Update, want *statePacket) {
	t.Helper()
	if got.Tick != want.tick || len(got.Objects) != len(want.updates) {
		t.Fatalf("tick %d with %d objects, and %d with %d according to the specification", got.Tick, len(got.Objects), want.tick, len(want.updates))
	}
	for i, o := range got.Objects {
		w := want.updates[i]
		equal := o.Gone || int64(o.Generation) == w.generation && slices.EqualFunc(o.Row, w.row, func(a int32, b int64) bool { return int64(a) == b })
		if int64(o.ID) != w.id || o.Gone != w.gone || !equal {
			t.Fatalf("object %+v is %+v according to the specification", o, w)
		}
	}
}

func (d *areaDecoder) clone() *areaDecoder {
	c := *d
	c.messages, c.decoded = maps.Clone(d.messages), maps.Clone(d.decoded)
	return &c
}

func sameAged(t testing.TB, got *snapshot.Set, ages []uint64, want []agedObject) {
	t.Helper()
	var objects []object
	for i, o := range want {
		objects = append(objects, o.object)
		if ages == nil && o.age > 0 || ages != nil && int64(ages[i]) != o.age {
			t.Fatalf("ages %d, and %+v according to the specification", ages, o)
		}
	}
	same(t, got, objects)
}

// FuzzAreas compares the decoder of worlds with areas with that of the specification, also on
// messages of a sender that makes random decisions.
func FuzzAreas(f *testing.F) {
	const history = 8
	s := sessions.Read(f, "internal/replication/areas/testdata/moves.session", "take")
	first := &areaDecoder{messages: map[int64][]group{}, decoded: map[int64]bool{}, kinds: map[string]int{}}
	tab := readTables(f)
	for _, one := range s.Schemas {
		p := &payload{tab: tab, fields: fieldsOf(one)}
		p.init()
		first.types = append(first.types, p)
	}
	held := []*areaDecoder{first}
	for _, m := range s.Messages[:history] {
		next := held[len(held)-1].clone()
		next.receive(m)
		held = append(held, next)
	}
	generate := func(r *rand.Rand) []byte {
		n := r.IntN(len(held))
		d, in := held[n].clone(), []byte{byte(n)}
		for range 1 + r.IntN(3) {
			w := areaWriter{d: d.clone(), r: r}
			m := w.message()
			next := d.clone()
			if attempt(func() string { return next.receive(m) }) == "right" {
				d = next
			}
			in = append(in, entries.Of(m, false)...)
		}
		return in
	}
	x := corpus.Target{Parser: "area", Inputs: 60_000, Generate: generate, Check: func(t testing.TB, in []byte) {
		if len(in) == 0 {
			return
		}
		n := int(in[0]) % (history + 1)
		spec, d := held[n], areas.NewDecoder(s.Schemas...)
		for _, m := range s.Messages[:n] {
			_, _, _ = d.Decode(m)
		}
		for m := range entries.All(in[1:]) {
			next := spec.clone()
			result := attempt(func() string { return next.receive(m) })
			_, _, err := d.Decode(m)
			if word(err) != result {
				t.Fatalf("%x: %v, and %s according to the specification", m, err, result)
			}
			for typ := range s.Schemas {
				if err == nil {
					sameAged(t, d.Shown(typ), d.Ages(typ), next.objects(typ))
				}
			}
			spec = next
		}
	}, Results: func(_ testing.TB, in []byte) (line string) {
		if len(in) == 0 {
			return ""
		}
		d := areas.NewDecoder(s.Schemas...)
		for _, m := range s.Messages[:int(in[0])%(history+1)] {
			_, _, _ = d.Decode(m)
		}
		for m := range entries.All(in[1:]) {
			var h corpus.Hash
			_, _, err := d.Decode(m)
			for typ := range s.Schemas {
				addSet(&h, d.Shown(typ))
			}
			line += result(err, h)
		}
		return line
	}}
	x.Run(f)
}

// areaWriter writes messages of a world with areas at random.
type areaWriter struct {
	d      *areaDecoder
	r      *rand.Rand
	b      []byte // header and directory
	at     int64  // bits of b
	bodies []byte
}

func (w *areaWriter) bits(v, n int64) {
	for i := range n {
		if w.at&7 == 0 {
			w.b = append(w.b, 0)
		}
		w.b[w.at>>3] |= byte(v>>i&1) << (w.at & 7)
		w.at++
	}
}

func (w *areaWriter) count(v, digit int64) {
	for {
		x := v & (1<<digit - 1)
		if v >>= digit; v > 0 {
			x |= 1 << digit
		}
		w.bits(x, digit+1)
		if v == 0 {
			return
		}
	}
}

// message returns the message of the next snapshot, or of one shortly after it.
func (w *areaWriter) message() []byte {
	d := w.d
	d.n = d.next + w.r.Int64N(2)
	var known []int64
	for n := range d.messages {
		if d.n-n < 63 {
			known = append(known, n)
		}
	}
	slices.Sort(known)
	if len(known) > 0 && w.r.IntN(8) > 0 {
		base := known[w.r.IntN(len(known))]
		w.bits(d.n-base, 6)
		w.bits(d.n, 10)
		for _, g := range d.messages[base] {
			switch w.r.IntN(8) {
			case 0:
				w.bits(4, 3)
				continue
			case 1:
				w.bits(2, 2)
				continue
			case 2:
				w.bits(0, 3)
				continue
			}
			w.bits(1, 1)
			w.part(g.slot, g.typ, d.n-base)
		}
	} else {
		w.bits(0, 6)
		w.bits(d.n, 18)
	}
	for w.r.IntN(2) == 0 {
		w.entry(known)
	}
	w.bits(0, 2)
	return append(w.b, w.bodies...)
}

// entry writes a group without the baseline of the message.
func (w *areaWriter) entry(known []int64) {
	slot := w.r.Int64N(1 << (1 + w.r.IntN(11)))
	switch {
	case w.r.IntN(8) == 0: // most likely of a message that the decoder does not have
		w.bits(3, 2)
		w.count(slot, 5)
		w.bits(1+w.r.Int64N(62), 6)
		w.bits(0, 1)
		return
	case len(known) == 0 || w.r.IntN(2) == 0:
		keyframe := w.r.IntN(2) == 0
		if keyframe {
			w.bits(1, 2)
		} else {
			w.bits(3, 2)
		}
		if w.count(slot, 5); !keyframe {
			w.bits(0, 6)
		}
		typ := w.r.IntN(len(w.d.types))
		w.count(int64(typ), 2)
		w.part(slot, typ, 0)
		return
	}
	n := known[w.r.IntN(len(known))]
	groups := w.d.messages[n]
	if len(groups) == 0 {
		return
	}
	g := groups[w.r.IntN(len(groups))]
	w.bits(2+w.r.Int64N(2), 2)
	w.count(g.slot, 5)
	w.bits(w.d.n-n, 6)
	changed := w.r.Int64N(2)
	if w.bits(changed, 1); changed == 1 {
		w.part(g.slot, g.typ, w.d.n-n)
	}
}

// part writes a part of a group to the directory, and its coded part to the bodies.
func (w *areaWriter) part(slot int64, typ int, distance int64) {
	base := &set{}
	var coded []byte
	if g := w.d.member(distance, slot); distance > 0 && g != nil {
		base = g.set
		if w.d.n%64 == 0 {
			h := setHash(base)
			coded = []byte{byte(h), byte(h >> 8)}
		}
	}
	coded = append(coded, w.coded(typ, distance, base, func(age int64) *set {
		if g := w.d.member(distance+age, slot); g != nil && g.typ == typ {
			return g.set
		}
		return nil
	})...)
	w.count(int64(len(coded)), 5)
	w.bodies = append(w.bodies, coded...)
	entered := truth(w.r.IntN(4) == 0)
	if w.bits(entered, 1); entered == 0 {
		return
	}
	n := w.r.IntN(4)
	w.bodies = append(w.bodies, byte(n))
	for range n {
		one := w.coded(typ, 0, &set{}, nil)
		size := len(one)<<1 | w.r.IntN(2)
		w.bodies = append(w.bodies, byte(size&127|128), byte(size>>7))
		if size&1 == 1 {
			id := w.r.IntN(40)
			w.bodies = append(w.bodies, byte(id), byte(id>>8))
		}
		w.bodies = append(w.bodies, one...)
	}
}

func (w *areaWriter) coded(typ int, distance int64, base *set, before func(int64) *set) []byte {
	s := &script{r: w.r}
	w.d.types[typ].script = s
	defer func() { w.d.types[typ].script = nil }()
	_ = attempt(func() string { _, result := w.d.coded(typ, nil, distance, base, before); return result })
	return s.finish(nil)
}
