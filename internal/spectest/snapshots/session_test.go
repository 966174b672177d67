package snapshots

import (
	"encoding/hex"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

// decoder is section 13 of the specification.
type decoder struct {
	p           payload
	initial     *set
	sets        map[int64]*set
	decoded     map[int64]bool
	next, floor int64
	first       int64
	waiting     bool
	malformed   int // payloads in succession
}

func setHash(s *set) int64 {
	h := uint64(14695981039346656037)
	add := func(v uint64) { h = (h ^ v) * 1099511628211 }
	for _, o := range s.objects {
		add(uint64(o.id<<8 | o.generation))
	}
	for _, o := range s.objects {
		for _, v := range o.row {
			add(uint64(uint32(v)))
		}
	}
	for _, a := range s.physics.axes {
		add(uint64(a.floor))
		add(uint64(a.half))
	}
	add(uint64(s.physics.contact))
	return int64(uint16(h ^ h>>16 ^ h>>32 ^ h>>48))
}

func (d *decoder) missing() string { d.waiting = true; return "missing" }

// receive returns the set, or the reason why there is none.
func (d *decoder) receive(b []byte) (*set, string) {
	word := int64(b[0]) | int64(b[1])<<8
	distance, n, empty, check := word&63, word>>6, false, int64(-1)
	b = b[2:]
	if distance == 0 {
		n |= int64(b[0]&63) << 10
		empty = b[0]&64 != 0
		if b[0]&128 != 0 {
			check = int64(b[1]) | int64(b[2])<<8
			b = b[2:]
		}
		b = b[1:]
		n = unwrap(n, 1<<16, d.next, 256)
	} else {
		if distance == 63 {
			distance, check = int64(b[0]), int64(b[1])|int64(b[2])<<8
			b = b[3:]
			if distance < 1 || distance > 62 {
				return nil, "malformed"
			}
		}
		n = unwrap(n, 1<<10, d.next, 512)
	}
	if n+64 < d.next || d.decoded[n] {
		return nil, "late"
	}
	base, from := d.initial, n-distance
	switch {
	case distance > 0:
		if base = d.sets[from]; base == nil {
			if from >= 0 && from < d.floor || n < d.first {
				return nil, "late"
			}
			return nil, d.missing()
		}
	case empty:
		base = &set{}
	}
	if check >= 0 && check != setHash(base) {
		d.waiting = true
		d.sets, d.decoded = map[int64]*set{}, map[int64]bool{}
		return nil, "desync"
	}
	p := &d.p
	p.start(b)
	p.base, p.distance, p.step = base, max(distance, 1), p.references(distance)
	for i, lag := range []int64{1, 2, 4, 6} {
		if p.step == 0 {
			break
		}
		r := from - lag*p.step
		if p.refs[i] = d.sets[r]; p.refs[i] == nil {
			if r >= 0 && (d.decoded[r] || r+64 < d.next) {
				return nil, "late"
			}
			return nil, d.missing()
		}
	}
	cur := p.decode()
	if cur == nil {
		if d.malformed++; d.malformed == 8 {
			d.malformed, d.waiting = 0, true
		}
		return nil, "malformed"
	}
	d.malformed = 0
	d.sets[n], d.decoded[n], d.next = cur, true, max(d.next, n+1)
	if distance == 0 {
		if d.waiting {
			d.waiting, d.first = false, n
		}
		return cur, "right"
	}
	d.floor = max(d.floor, from, d.next-64)
	for k := range d.sets {
		if k < d.floor-3-6*max(1, p.step) || k <= d.next-1-64 {
			delete(d.sets, k)
		}
	}
	return cur, "right"
}

// unwrap returns the number with these low bits from behind below next on.
func unwrap(low, size, next, behind int64) int64 {
	n := next - behind + mod(low-(next-behind), size)
	if n < 0 {
		n += size
	}
	return n
}

// TestSessions decodes the golden sessions of package snapshot.
func TestSessions(t *testing.T) {
	tab := readTables(t)
	files, _ := filepath.Glob("../../../internal/snapshot/testdata/*.session")
	if len(files) == 0 {
		t.Fatal("no sessions")
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		d := &decoder{initial: &set{}, sets: map[int64]*set{}, decoded: map[int64]bool{}}
		d.p.tab = tab
		sets, sent, last, components, compared := map[int64]*set{}, map[int64][]byte{}, int64(-1), 0, 0
		for i, line := range strings.Split(string(b), "\n") {
			words := strings.Fields(line)
			if len(words) == 0 {
				continue
			}
			ints := func(from int) (n []int64) {
				for _, w := range words[from:] {
					v, err := strconv.ParseInt(w, 10, 64)
					if err != nil {
						t.Fatal(err)
					}
					n = append(n, v)
				}
				return n
			}
			switch words[0] {
			case "field":
				n := ints(3)
				d.p.fields = append(d.p.fields, field{class: words[2], n: int(n[0]), at: components, lo: n[1], hi: n[2]})
				components += int(n[0])
				d.p.init()
			case "initial":
				n := ints(1)
				d.initial.objects = append(d.initial.objects, object{n[0], n[1], n[2:]})
			case "set":
				last++
				sets[last] = &set{}
			case "object":
				n := ints(1)
				sets[last].objects = append(sets[last].objects, object{n[0], n[1], n[2:]})
			case "send":
				if sent[last], err = hex.DecodeString(words[2]); err != nil {
					t.Fatal(err)
				}
			case "corrupt":
				f := &d.p.fields[0]
				for _, s := range d.sets {
					if len(s.objects) == 0 {
						continue
					}
					if v := &s.objects[0].row[0]; *v < f.hi {
						*v++
					} else {
						*v--
					}
				}
			case "take":
				n, _ := strconv.ParseInt(words[1], 10, 64)
				got, reason := d.receive(sent[n])
				if reason != words[3] {
					t.Fatalf("%s:%d: %s, want %s", file, i+1, reason, words[3])
				}
				if got == nil {
					continue
				}
				compared++
				if len(got.objects)+len(sets[n].objects) > 0 && !reflect.DeepEqual(got.objects, sets[n].objects) {
					t.Fatalf("%s:%d: got %v\nwant %v", file, i+1, got.objects, sets[n].objects)
				}
			}
		}
		t.Logf("%s: %d snapshots", filepath.Base(file), compared)
	}
}
