package adaptive

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/uplink-rpc/uplink/internal/codec/fnv"
	"github.com/uplink-rpc/uplink/internal/codec/quat"
	"github.com/uplink-rpc/uplink/internal/rpcdelta/cost"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/uplinktest/vectors"
)

// vectorSchemas have every kind of field and every family of predictions. The second one has angles
// without scalars, the finest quaternion and a wide range; the third one has a single scalar and
// counters that step. In the last one products wrap: velocity factors and bounds are the largest.
var vectorSchemas = []struct {
	name, json string
	frames     int
}{
	{"everything", `{"rpc":"Everything","rate_hz":60,"fields":[
		{"name":"Chat","kind":"bytes","max":24},
		{"name":"Location","kind":"vec3","resolution":0.1,"velocity":"Velocity"},
		{"name":"Velocity","kind":"vec3","resolution":0.1},
		{"name":"Aim","kind":"quat","bits":12,"velocity":"Spin"},
		{"name":"Spin","kind":"vec3","resolution":0.01},
		{"name":"Facing","kind":"quat","bits":10},
		{"name":"View","kind":"angle","count":2,"bits":16},
		{"name":"Mouse","kind":"scalar","count":3,"resolution":1},
		{"name":"Normal","kind":"unitvec","bits":12},
		{"name":"Tick","kind":"uint","width":32},
		{"name":"Clock","kind":"uint","width":48},
		{"name":"Balance","kind":"int","width":40},
		{"name":"Small","kind":"int","count":3,"width":7},
		{"name":"Big","kind":"uint","width":64},
		{"name":"Buttons","kind":"bits","width":16},
		{"name":"Sets","kind":"bits","count":2,"width":50},
		{"name":"Alive","kind":"bool","count":2},
		{"name":"Tag","kind":"fixed","size":4}]}`, 110},
	{"fine", `{"rpc":"Fine","rate_hz":30,"fields":[
		{"name":"Yaw","kind":"angle","bits":12},
		{"name":"Far","kind":"vec2","resolution":0.001,"min":-2000000,"max":2000000},
		{"name":"Turn","kind":"quat","bits":20},
		{"name":"Positive","kind":"vec2","resolution":1,"min":5,"max":5000},
		{"name":"State","kind":"uint","width":8}]}`, 90},
	{"small", `{"rpc":"Small","rate_hz":20,"fields":[
		{"name":"Yaw","kind":"angle","bits":10},
		{"name":"Throttle","kind":"scalar","resolution":0.01,"min":0,"max":1},
		{"name":"Tick","kind":"uint","count":2,"width":16},
		{"name":"Look","kind":"quat","bits":3}]}`, 120},
	{"extreme", `{"rpc":"Extreme","rate_hz":60,"fields":[
		{"name":"X","kind":"vec2","resolution":0.001,"min":-2147483.647,"max":2147483.647,"velocity":"V","velocity_scale":120000},
		{"name":"V","kind":"vec2","resolution":1,"min":-2147483647,"max":2147483647},
		{"name":"Q","kind":"quat","bits":20,"velocity":"W"},
		{"name":"W","kind":"vec3","resolution":900},
		{"name":"Yaw","kind":"angle","bits":24},
		{"name":"S","kind":"scalar","resolution":1,"count":2,"min":-2147483647,"max":2147483647},
		{"name":"I","kind":"int","width":32},
		{"name":"U","kind":"uint","width":32}]}`, 90},
}

// vectorFrame is a frame of a session.
type vectorFrame struct {
	Seq   int      `json:"seq"`
	Ints  []int32  `json:"ints"`
	Bytes []string `json:"bytes,omitempty"`
}

// vectorEvent is a step of a session: the learning of an accepted frame, or a payload that is coded
// from the state so far.
type vectorEvent struct {
	Learn   *uint64  `json:"learn,omitempty"`
	Frames  uint8    `json:"frames,omitempty"` // of the payload whose newest frame it was
	Repeats bool     `json:"repeats,omitempty"`
	Hash    string   `json:"hash,omitempty"`
	Parts   []string `json:"parts,omitempty"` // hash of each part of the state alone

	Newest  uint64          `json:"newest,omitempty"`
	Base    *uint64         `json:"base,omitempty"`
	Header  string          `json:"header,omitempty"`
	Free    uint            `json:"free,omitempty"`
	Payload *string         `json:"payload,omitempty"`
	Steps   []vectorPart    `json:"steps,omitempty"`
	Guesses []vectorPredict `json:"predictions,omitempty"`
}

// vectorPart is a part of a payload, with the steps of the range coder.
type vectorPart struct {
	Frame    int     `json:"frame"`
	What     string  `json:"what"`
	Field    string  `json:"field,omitempty"`
	K        int     `json:"k,omitempty"`
	Residual *int64  `json:"residual,omitempty"`
	Ops      [][]any `json:"ops,omitempty"`
}

// vectorPredict has what one frame is predicted from.
type vectorPredict struct {
	Seq        int64           `json:"seq"`
	Rates      [5]int64        `json:"rates"` // r1, r12, r24, rd, rdd
	Class      int             `json:"class"`
	Share      int16           `json:"share"`
	Components []vectorFeature `json:"components"`
}

type vectorFeature struct {
	Field    string   `json:"field"`
	K        int      `json:"k"`
	Features []int64  `json:"features"`
	Offset   int64    `json:"offset"`
	Expected [3]int32 `json:"expected"`
}

// vectorTracer collects the parts of a payload.
type vectorTracer struct {
	fields []schema.Field
	frame  int
	ops    [][]any
	parts  []vectorPart
}

func (x *vectorTracer) step(s step) {
	switch s.kind {
	case stepBit:
		x.ops = append(x.ops, []any{"bit", s.value, s.p0})
	case stepRaw:
		x.ops = append(x.ops, []any{"raw", s.value, s.bits})
	case stepSymbol:
		x.ops = append(x.ops, []any{"symbol", s.value, s.shape, s.row})
	}
}

func (x *vectorTracer) add(p vectorPart) {
	p.Frame, p.Ops = x.frame, x.ops
	if len(p.Ops) > 0 {
		x.parts = append(x.parts, p)
	}
	x.ops = nil
}

// Frame, Count, Flags, Contents and Component implement [cost.Meter].
func (x *vectorTracer) Frame(i int)   { x.frame = i }
func (x *vectorTracer) Count(float64) { x.add(vectorPart{What: "count"}) }
func (x *vectorTracer) Flags(f int, _ float64) {
	x.add(vectorPart{What: "flags", Field: x.fields[f].Name})
}

func (x *vectorTracer) Contents(f int, _ float64) {
	x.add(vectorPart{What: "contents", Field: x.fields[f].Name})
}

func (x *vectorTracer) Component(f, k int, _ float64, _ cost.Predictor, residual int64) {
	p := vectorPart{What: "component", Field: x.fields[f].Name, K: k}
	if residual != cost.NoResidual {
		p.Residual = &residual
	}
	x.add(p)
}

// vectorSession records a session. The sequences of accepted frames, their payloads, and the
// payloads to be coded are random.
func vectorSession(t *testing.T, source string, n int) []vectors.Section {
	t.Helper()
	s, err := schema.Parse([]byte(source))
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(11, uint64(n)))
	walk := &vectorWalk{r, s, make([]int64, s.Components()), map[int]quat.Precise{}, 60}
	if s.RPC() == "Extreme" {
		walk.jump = 5
	}
	f := s.NewFrame()
	for i := range s.Layouts() {
		for k := range s.Layouts()[i].N {
			lo, _ := s.Layouts()[i].ComponentRange(k)
			f.Ints[s.Layouts()[i].At+k] = int32(max(0, lo))
		}
	}
	frames := s.NewFrames(n)
	var listed []vectorFrame
	for i := range frames {
		if r.IntN(12) != 0 { // sometimes nothing changes
			walk.next(f)
		}
		if err := s.Check(f); err != nil {
			t.Fatal(err)
		}
		frames[i].CopyFrom(f)
		v := vectorFrame{Seq: i, Ints: frames[i].Ints}
		for _, b := range frames[i].Bytes {
			v.Bytes = append(v.Bytes, hex.EncodeToString(b))
		}
		listed = append(listed, v)
	}

	m := Generic().Compile(FieldsOf(s))
	state := m.NewState(64)
	known := NewFrames(s.Components(), s.Strings(), 64+LearnReach)
	events := []vectorEvent{{Hash: fmt.Sprintf("%04x", state.Hash()), Parts: state.vectorParts()}}
	var coder Coder
	code := func(newest, count int, base *uint64, free uint) {
		p := Payload{Newest: uint64(newest), FreeBits: free, Repeats: count > 2}
		for i := newest - count + 1; i <= newest; i++ {
			p.Frames = append(p.Frames, &frames[i])
		}
		if base != nil {
			p.Base, p.HasBase = *base, true
		} else {
			p.Newest = MaxFrames - 1 // as in package rpcdelta: a keyframe does not depend on it
		}
		e := vectorEvent{Newest: uint64(newest), Base: base, Frames: uint8(count), Repeats: p.Repeats, Free: free}
		head := []byte{}
		if free > 0 {
			head = []byte{0xff << free}
			e.Header = hex.EncodeToString(head)
		}
		out := coder.Encode(head, &p, state, known)
		payload := hex.EncodeToString(out)
		e.Payload = &payload
		if len(events)%4 == 1 || count > 1 {
			x := &vectorTracer{fields: s.Fields()}
			measuring := (*payloadCodec[measuring])(&coder.codec)
			measuring.trace = x.step
			coder.Measure(x, &p, state, known)
			measuring.trace = nil
			e.Steps = x.parts
			e.Guesses = state.vectorPredictions(&p, known, s)
			for i := range e.Guesses {
				e.Guesses[i].Seq += int64(newest) - int64(p.Newest)
			}
		}
		again := Payload{Newest: p.Newest, Base: p.Base, HasBase: p.HasBase, FreeBits: free, Frames: newFramePointers(s)}
		if err := coder.Decode(out, &again, state, known); err != nil || len(again.Frames) != count {
			t.Fatalf("payload %d: %v", newest, err)
		}
		for i, f := range again.Frames {
			if !f.Equal(p.Frames[i]) {
				t.Fatalf("payload %d: frame %d differs", newest, i)
			}
		}
		events = append(events, e)
	}
	code(0, 1, nil, 0)
	code(4, 3, nil, 0)
	last := Shape{Frames: 1}
	for i := 0; i < n-1; i++ {
		if i > 10 && r.IntN(6) == 0 {
			continue // lost
		}
		shape := last
		if i > n/2 && i%3 != 0 {
			shape = Shape{}
		} else if i > n/2 {
			shape = Shape{Frames: uint8(2 + r.IntN(3)), Repeats: r.IntN(2) == 0}
		}
		state.Learn(uint64(max(0, i-89)), known)
		known.Put(uint64(i), &frames[i], shape)
		state.Learn(uint64(i), known)
		seq := uint64(i)
		events = append(events, vectorEvent{
			Learn: &seq, Frames: shape.Frames, Repeats: shape.Repeats,
			Hash: fmt.Sprintf("%04x", state.Hash()), Parts: state.vectorParts(),
		})
		if i%6 == 5 {
			distance := []int{1, 2, 4, 6, 11, 30}[r.IntN(6)]
			count := min(distance, 1+r.IntN(4))
			if newest := i + distance; newest < n {
				code(newest, count, &seq, uint(r.IntN(8)))
			}
		}
	}
	var description any
	if err := json.Unmarshal([]byte(source), &description); err != nil {
		t.Fatal(err)
	}
	return []vectors.Section{
		{Name: "schema", Value: description},
		{Name: "velocity_factors", Value: map[string]any{"factors": s.PerTick()}},
		{Name: "ring", Value: 64},
		{Name: "prior", Value: fmt.Sprintf("%016x", Generic().hash)},
		{Name: "frames", Value: listed},
		{Name: "events", Value: events},
	}
}

func newFramePointers(s *schema.Schema) (p []*schema.Frame) {
	all := s.NewFrames(MaxFrames)
	for i := range all {
		p = append(p, &all[i])
	}
	return p
}

// vectorParts returns the hash of each part of the state, in the order of the state's hash.
func (s *State) vectorParts() []string {
	l := &s.learned
	parts := [6]fnv.Hash{fnv.Offset, fnv.Offset, fnv.Offset, fnv.Offset, fnv.Offset, fnv.Offset}
	for i := range l.components {
		parts[0] = l.components[i].hash(parts[0])
	}
	for i := range l.inputs {
		for class := range classes {
			parts[1] = fold16(parts[1], l.inputs[i][class][:])
		}
	}
	for i := range l.lists {
		parts[2] = l.lists[i].hash(parts[2])
	}
	for i := range l.groups {
		g := &l.groups[i]
		parts[3] = fold16(parts[3], g.bias[:])
		parts[3] = fold16(parts[3], g.w[:])
		parts[3] = parts[3].Add(uint64(g.uses)<<16 | uint64(uint16(g.stepRate)))
	}
	parts[4] = l.bitModels.hash(parts[4])
	parts[5] = l.counts.hash(parts[5])
	var out []string
	for _, p := range parts {
		out = append(out, fmt.Sprintf("%016x", uint64(p)))
	}
	return out
}

// vectorPredictions returns what each frame of the payload but a keyframe is predicted from.
func (s *State) vectorPredictions(p *Payload, known *Frames, sc *schema.Schema) (out []vectorPredict) {
	v, l := s.open(p, known)
	v.first = int64(p.Newest) - int64(len(p.Frames)) + 1
	v.gap = span{v.base, v.first}
	ref := v.base
	for i, frame := range p.Frames {
		v.frames = p.Frames[:i]
		seq := v.first + int64(i)
		if i > 0 || p.HasBase {
			var refs refFrames
			refs.load(&v, seq, ref)
			x := vectorPredict{Seq: seq, Rates: [5]int64{refs.r1, refs.r12, refs.r24, refs.rd, refs.rdd}, Class: refs.class, Share: refs.share}
			for j := range s.m.groups {
				g := &s.m.groups[j]
				x.Components = append(x.Components, s.m.vectorFeatures(g, l, &refs, frame.Ints, sc.Fields()[g.field].Name)...)
			}
			out = append(out, x)
		}
		ref = seq
	}
	return out
}

func (m *Model) vectorFeatures(g *group, l *modelState, refs *refFrames, ints []int32, name string) (out []vectorFeature) {
	if g.form != formNumbers && g.form != formQuat {
		return nil
	}
	var orient orientation
	if g.form == formQuat {
		want := uint(3)
		if g.family == familyTurned {
			want = 1
		}
		orient.predict(refs, ints, g, want)
		orient.toComponents(g, int(ints[g.at]), want)
	}
	counts := [families]int{5, 9, 3, 1, 2}
	for k := range g.numComps {
		c, lc := &m.components[g.firstComp+k], &l.components[g.firstComp+k]
		x := vectorFeature{Field: name, K: k}
		var f featureSet
		if g.form == formQuat {
			f = orient.features[k]
			x.Offset = refs.quatOffset(&f, g, lc)
		} else {
			f.compute(refs, ints, g, c, k)
			x.Offset = refs.offset(l, ints, g, c, lc, k)
		}
		x.Features = append(x.Features, f[:counts[g.family]]...)
		for class := range classes {
			x.Expected[class] = lc.classes[class].expected
		}
		out = append(out, x)
	}
	return out
}

// vectorOrientations returns results of the arithmetic of orientations.
func vectorOrientations() []any {
	type elements = [4]int64
	of := func(q quat.Precise) elements { return elements{q.X, q.Y, q.Z, q.W} }
	var out []any
	r := rand.New(rand.NewPCG(3, 4))
	for range 12 {
		bits := []uint{3, 10, 12, 20}[r.IntN(4)]
		limit := int64(1)<<(bits-1) - 1
		g := group{unpackScale: (1<<45/limit*sqrt2Q16 + 1<<15) >> 16, packScale: limit * sqrt2Q16}
		row := func() []int32 {
			c := func() int32 { return int32(r.Int64N(2*limit+1) - limit) }
			return []int32{int32(r.IntN(4)), c(), c(), c()}
		}
		a, b := row(), row()
		p, q := quat.UnpackPrecise(a, g.unpackScale), quat.UnpackPrecise(b, g.unpackScale)
		v := quat.Vector{r.Int64N(1<<33) - 1<<32, r.Int64N(1<<30) - 1<<29, r.Int64N(1 << 10)}
		v.Clamp()
		rate := r.Int64N(1 << 18)
		turned := quat.ExpPrecise(&v)
		small := turned.Mul(q).Smallest(int(a[0]), g.packScale)
		out = append(out, map[string]any{
			"bits": bits, "a": a, "b": b, "unpacked_a": of(p), "unpacked_b": of(q), "product_ab": of(p.Mul(q)),
			"v": v, "exp_v": of(turned), "rate": rate, "extended_ab": of(q.Extrapolate(p, rate)),
			"smallest_of_exp_v_times_b": []int64{small.X, small.Y, small.Z}, "index": a[0],
		})
	}
	return out
}

// priorVector is a prior that knows some fields of a schema, and the hash of the start of streams.
type priorVector struct {
	Schema json.RawMessage `json:"schema"`
	File   string          `json:"file"`
	Prior  string          `json:"prior"` // its hash
	Hash   string          `json:"hash"`
	Parts  []string        `json:"parts"`
}

func priorVectors(t *testing.T) (all []priorVector) {
	for i, v := range vectorSchemas {
		s, err := schema.Parse([]byte(v.json))
		if err != nil {
			t.Fatal(err)
		}
		fields := FieldsOf(s)
		file := RandomPrior(rand.New(rand.NewPCG(uint64(i), 5)), fields, ParamLengths(fields))
		p, err := ParsePrior(file)
		if err != nil {
			t.Fatal(err)
		}
		state := p.Compile(fields).NewState(64)
		all = append(all, priorVector{
			json.RawMessage(v.json), hex.EncodeToString(file), fmt.Sprintf("%016x", p.Hash()),
			fmt.Sprintf("%04x", state.Hash()), state.vectorParts(),
		})
	}
	return all
}

// TestVectors writes or compares testdata/vectors/adaptive*.json and priors.json.
func TestVectors(t *testing.T) {
	var logs, chances []any
	for _, x := range []int64{0, 1, 2, 3, 4, 7, 19, 100, 511, 512, 65535, 1 << 30, 1<<62 - 1} {
		logs = append(logs, []any{x, log2(x)})
	}
	for _, x := range []int16{-20000, -16384, -6773, -2048, -64, -1, 0, 1, 63, 64, 2048, 16383, 20000} {
		var w flagWeights
		chances = append(chances, []any{x, w.probability(x, 0)})
	}
	sections := []vectors.Section{
		{Name: "log", Value: logs},
		{Name: "chance_of_sum", Value: chances},
		{Name: "orientations", Value: vectorOrientations()},
	}
	vectors.Check(t, "testdata/vectors/adaptive.json", sections...)
	vectors.Check(t, "testdata/vectors/priors.json", vectors.Section{Name: "priors", Value: priorVectors(t)})
	for _, s := range vectorSchemas {
		vectors.Check(t, "testdata/vectors/adaptive_"+s.name+".json", vectorSession(t, s.json, s.frames)...)
	}
}
