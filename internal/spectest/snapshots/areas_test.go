package snapshots

import (
	"encoding/hex"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// group is a set of objects of one type in a slot.
type group struct {
	slot int64
	typ  int
	set  *set
	age  int64
}

// areaPart is a part of a message.
type areaPart struct {
	group
	distance, size           int64
	entered, member, skipped bool
}

// areaDecoder is section 15 of the specification.
type areaDecoder struct {
	types          []*payload
	messages       map[int64][]group
	decoded        map[int64]bool
	next, floor    int64
	first          int64
	waiting        bool
	malformed      int // messages in succession
	n, distance    int64
	b              []byte
	at             int64 // bits of b that were read
	bad            bool
	members, shown []group
	last           []group // what the newest message shows
	parts          []areaPart
	step           int64          // the highest one of parts
	kinds          map[string]int // of codes and entries
}

func (d *areaDecoder) bits(n int64) (v int64) {
	for i := range n {
		if d.at>>3 >= int64(len(d.b)) {
			d.bad = true
			return 0
		}
		v |= int64(d.b[d.at>>3]) >> (d.at & 7) & 1 << i
		d.at++
	}
	return v
}

func (d *areaDecoder) count(digit int64) (v int64) {
	for at := int64(0); at < 20; at += digit {
		x := d.bits(digit + 1)
		if v |= x & (1<<digit - 1) << at; x < 1<<digit {
			return v
		}
	}
	d.bad = true
	return 0
}

func (d *areaDecoder) member(distance, slot int64) *group {
	all := d.messages[d.n-distance]
	for i := range all {
		if all[i].slot == slot {
			return &all[i]
		}
	}
	return nil
}

func (d *areaDecoder) missing() string {
	if d.n+1 < d.next {
		return "late"
	}
	d.waiting = true
	return "missing"
}

func (d *areaDecoder) part(p areaPart) {
	p.size, p.entered = d.count(5), d.bits(1) == 1
	d.parts = append(d.parts, p)
}

func (d *areaDecoder) show(g group, member bool) {
	d.shown = append(d.shown, g)
	if member {
		d.members = append(d.members, g)
	}
}

// receive returns the result. What is shown is in d.shown.
func (d *areaDecoder) receive(b []byte) string {
	word := int64(b[0]) | int64(b[1])<<8
	distance, low, width, b := word&63, word>>6, int64(10), b[2:]
	behind := int64(512)
	if distance == 63 {
		return "malformed"
	}
	if distance == 0 {
		if b[0] > 63 {
			return "malformed"
		}
		low, width, behind, b = low|int64(b[0])<<10, 16, 256, b[1:]
	}
	d.n = unwrap(low, 1<<width, d.next, behind)
	if d.n+64 < d.next || d.decoded[d.n] {
		return "late"
	}
	if base := d.n - distance; distance > 0 && d.messages[base] == nil {
		if base >= 0 && base < d.floor || d.n < d.first {
			return "late"
		}
		return d.missing()
	}
	d.b, d.at, d.bad, d.members, d.shown, d.parts, d.step = b, 0, false, nil, nil, nil, 0
	d.distance = distance
	if result := d.body(); result != "" {
		if result == "malformed" {
			if d.malformed++; d.malformed == 8 {
				d.malformed, d.waiting = 0, true
			}
		}
		return result
	}
	d.malformed = 0
	if d.n >= d.next {
		d.last = slices.Clone(d.shown)
	}
	slices.SortStableFunc(d.members, func(a, b group) int { return int(a.slot - b.slot) })
	d.messages[d.n], d.decoded[d.n], d.next = d.members, true, max(d.next, d.n+1)
	if d.messages[d.n] == nil {
		d.messages[d.n] = []group{}
	}
	d.discardBefore(d.next - 64)
	if distance == 0 {
		if d.waiting {
			d.waiting, d.first = false, d.n
		}
		return "right"
	}
	d.floor = max(d.floor, d.n-distance)
	before := int64(28)
	if d.step > 0 && d.n+1 == d.next {
		before = 3 + 6*d.step
	}
	d.discardBefore(d.floor - before)
	return "right"
}

func (d *areaDecoder) discardBefore(end int64) {
	for n := range d.messages {
		if n < end {
			delete(d.messages, n)
		}
	}
}

// body decodes the directory and the parts. It returns the reason if they are dropped.
func (d *areaDecoder) body() string {
	if result := d.directory(d.distance); result != "" {
		return result
	}
	if d.bits(-d.at&7) != 0 {
		return "malformed"
	}
	rest := d.b[d.at>>3:]
	for i := range d.parts {
		var result string
		if rest, result = d.decode(&d.parts[i], rest); result != "" {
			return result
		}
	}
	if d.bad || len(rest) > 0 {
		return "malformed"
	}
	return ""
}

func (d *areaDecoder) directory(distance int64) string {
	if distance > 0 {
		for _, g := range d.messages[d.n-distance] {
			switch {
			case d.bits(1) == 1:
				d.kinds["changed"]++
				d.part(areaPart{group: group{slot: g.slot, typ: g.typ}, distance: distance, member: true})
			case d.bits(1) == 1:
				d.kinds["same"]++
				d.show(group{g.slot, g.typ, g.set, 0}, true)
			case d.bits(1) == 1:
				d.kinds["stale"]++
				d.show(group{g.slot, g.typ, g.set, distance}, false)
			default:
				d.kinds["left"]++
			}
		}
	}
	for !d.bad {
		entry := d.bits(2)
		if entry == 0 {
			break
		}
		slot := d.count(5)
		if slot > 2047 || len(d.shown)+len(d.parts) >= 2048 {
			return "malformed"
		}
		if entry == 1 {
			d.kinds["keyframe"]++
			d.keyframe(slot, true)
			continue
		}
		distance := d.bits(6)
		if entry == 3 && distance == 0 {
			d.kinds["in no group"]++
			d.keyframe(-1, false)
			continue
		}
		changed := d.bits(1) == 1
		if distance == 0 || distance == 63 || d.bad {
			return "malformed"
		}
		base := d.member(distance, slot)
		p := areaPart{group: group{slot: slot}, distance: distance, member: entry == 2, skipped: base == nil}
		if base != nil {
			p.typ = base.typ
		}
		switch {
		case base == nil && entry == 2:
			return d.missing()
		case changed:
			d.kinds["entry "+strconv.FormatInt(entry, 10)+" changed"]++
			d.part(p)
		case base != nil:
			d.kinds["entry "+strconv.FormatInt(entry, 10)]++
			age := distance
			if entry == 2 {
				age = 0
			}
			d.show(group{slot, base.typ, base.set, age}, entry == 2)
		default:
			d.showLast(slot)
		}
	}
	if d.bad {
		return "malformed"
	}
	return ""
}

// keyframe reads an entry of a set without a baseline.
func (d *areaDecoder) keyframe(slot int64, member bool) {
	typ := d.count(2)
	if typ >= int64(len(d.types)) {
		d.bad = true
		return
	}
	d.part(areaPart{group: group{slot: slot, typ: int(typ)}, member: member})
}

// showLast shows what the newest message shows in a slot.
func (d *areaDecoder) showLast(slot int64) {
	if d.n < d.next || d.n-(d.next-1) > 62 {
		return
	}
	last := slices.Clone(d.last)
	slices.SortStableFunc(last, func(a, b group) int { return int(a.age - b.age) })
	for _, g := range last {
		if g.slot == slot {
			d.kinds["as in the newest message"]++
			g.age += d.n - (d.next - 1)
			d.show(g, false)
			return
		}
	}
}

// decode decodes a part and returns what follows it.
func (d *areaDecoder) decode(p *areaPart, b []byte) (rest []byte, result string) {
	if p.size >= 1<<20 || p.size > int64(len(b)) {
		return nil, "malformed"
	}
	coded, rest := b[:p.size], b[p.size:]
	if p.skipped {
		d.showLast(p.slot)
	} else {
		base := &set{}
		if p.distance > 0 {
			g := d.member(p.distance, p.slot)
			if g.typ != p.typ {
				return nil, d.missing()
			}
			base = g.set
			if d.n%64 == 0 {
				d.kinds["hash"]++
				if len(coded) < 2 {
					return nil, "malformed"
				}
				if int64(coded[0])|int64(coded[1])<<8 != setHash(base) {
					d.waiting, d.messages, d.decoded = true, map[int64][]group{}, map[int64]bool{}
					return nil, "desync"
				}
				coded = coded[2:]
			}
		}
		if p.set, result = d.coded(p.typ, coded, p.distance, base, func(age int64) *set {
			if g := d.member(p.distance+age, p.slot); g != nil && g.typ == p.typ {
				return g.set
			}
			return nil
		}); result != "" {
			return nil, result
		}
		d.step = max(d.step, d.types[p.typ].step)
		if len(p.set.objects) > 264 {
			return nil, "malformed"
		}
		d.show(p.group, p.member)
	}
	if p.entered {
		rest, result = d.enter(p, rest)
	}
	return rest, result
}

// coded decodes a coded part.
func (d *areaDecoder) coded(typ int, b []byte, distance int64, base *set, before func(age int64) *set) (*set, string) {
	p := d.types[typ]
	p.start(b)
	p.base, p.distance, p.step = base, max(distance, 1), p.references(distance)
	for i, lag := range []int64{1, 2, 4, 6} {
		if p.step == 0 {
			break
		}
		if p.refs[i] = before(lag * p.step); p.refs[i] == nil {
			return nil, d.missing()
		}
	}
	if s := p.decode(); s != nil {
		return s, ""
	}
	return nil, "malformed"
}

// enter decodes the objects that entered the group of a part.
func (d *areaDecoder) enter(p *areaPart, b []byte) ([]byte, string) {
	varint := func() (v uint64) {
		for i := 0; len(b) > 0; i += 7 {
			x := b[0]
			b = b[1:]
			if i > 63 || i == 63 && x > 1 {
				break
			}
			if v |= uint64(x&127) << i; x < 128 {
				return v
			}
		}
		d.bad = true
		return 0
	}
	from := p.distance
	if from == 0 {
		from = d.distance
	}
	n := varint()
	if n > 512 || d.bad {
		return nil, "malformed"
	}
	for range n {
		v := varint()
		size, delta := v>>1, v&1 == 1
		base, distance := &set{}, int64(0)
		if delta && len(b) < 2 {
			return nil, "malformed"
		}
		if delta {
			id := int64(b[0]) | int64(b[1])<<8
			b = b[2:]
			if !p.skipped {
				if distance = from; !d.source(p, from, id, base) {
					return nil, "malformed"
				}
			}
			d.kinds["entered from another group"]++
		}
		if size > uint64(len(b)) || d.bad {
			return nil, "malformed"
		}
		coded := b[:size]
		b = b[size:]
		if p.skipped {
			continue
		}
		d.kinds["entered"]++
		waiting := d.waiting
		one, result := d.coded(p.typ, coded, distance, base, func(int64) *set { return nil })
		d.waiting = waiting // references are malformed here, not missing
		if result != "" || len(one.objects) != 1 {
			return nil, "malformed"
		}
		o := one.objects[0]
		i, found := slices.BinarySearchFunc(p.set.objects, o.id, func(a object, id int64) int { return int(a.id - id) })
		if found {
			return nil, "malformed"
		}
		p.set.objects = slices.Insert(p.set.objects, i, o)
	}
	return b, ""
}

// source puts the object with an id that the message at a distance contains into base.
func (d *areaDecoder) source(p *areaPart, distance, id int64, base *set) bool {
	for _, g := range d.messages[d.n-distance] {
		for _, o := range g.set.objects {
			if g.typ == p.typ && o.id == id {
				base.objects = append(base.objects, o)
				return true
			}
		}
	}
	return false
}

// agedObject is an object, and by how many snapshots it is older than the message.
type agedObject struct {
	object
	age int64
}

// objects returns the shown objects of a type.
func (d *areaDecoder) objects(typ int) (out []agedObject) {
	shown := slices.Clone(d.shown)
	slices.SortStableFunc(shown, func(a, b group) int { return int(a.age - b.age) })
	for _, g := range shown {
		if g.typ == typ {
			for _, o := range g.set.objects {
				if !slices.ContainsFunc(out, func(b agedObject) bool { return b.id == o.id }) {
					out = append(out, agedObject{o, g.age})
				}
			}
		}
	}
	slices.SortFunc(out, func(a, b agedObject) int { return int(a.id - b.id) })
	return out
}

// TestAreas decodes the golden sessions of worlds with areas.
func TestAreas(t *testing.T) {
	tab := readTables(t)
	files, _ := filepath.Glob("../../replication/areas/testdata/*.session")
	kinds := map[string]int{}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		d := &areaDecoder{messages: map[int64][]group{}, decoded: map[int64]bool{}, kinds: kinds}
		want, components, took, compared := map[int][]agedObject{}, 0, "", 0
		typ := 0 // of the last object
		compare := func(i int) {
			for typ := range d.types {
				if got := d.objects(typ); took == "right" && len(got)+len(want[typ]) > 0 && !reflect.DeepEqual(got, want[typ]) {
					t.Fatalf("%s:%d: type %d shows %v\nwant %v", file, i, typ, got, want[typ])
				}
				compared += len(want[typ])
			}
			want = map[int][]agedObject{}
		}
		for i, line := range append(strings.Split(string(b), "\n"), "take") {
			words := strings.Fields(line)
			if len(words) == 0 {
				continue
			}
			var n []int64
			for _, w := range words[1:] {
				v, _ := strconv.ParseInt(w, 10, 64) // words of other kinds are not used
				n = append(n, v)
			}
			switch words[0] {
			case "type":
				d.types, components = append(d.types, &payload{tab: tab}), 0
			case "field":
				p := d.types[len(d.types)-1]
				p.fields = append(p.fields, field{class: words[1], n: int(n[1]), at: components, lo: n[2], hi: n[3]})
				components += int(n[1])
				p.init()
			case "show":
				typ = int(n[0])
				want[typ] = append(want[typ], agedObject{object: object{n[1], n[2], n[3:]}})
			case "age":
				want[typ][len(want[typ])-1].age = n[0]
			case "take":
				compare(i)
				if len(words) == 1 {
					break
				}
				message, err := hex.DecodeString(words[1])
				if err != nil {
					t.Fatal(err)
				}
				if took = d.receive(message); took != words[3] {
					t.Fatalf("%s:%d: %s, want %s", file, i+1, took, words[3])
				}
			}
		}
		t.Logf("%s: %d objects", filepath.Base(file), compared)
	}
	for _, kind := range []string{"changed", "same", "stale", "left", "keyframe", "entry 2", "entry 2 changed", "entry 3", "entry 3 changed", "hash", "entered", "entered from another group", "in no group", "as in the newest message"} {
		if kinds[kind] == 0 {
			t.Errorf("no session has: %s", kind)
		}
	}
}
