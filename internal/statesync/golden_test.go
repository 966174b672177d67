package statesync_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/snapshot"
	"github.com/uplink-rpc/uplink/internal/statesync"
	"github.com/uplink-rpc/uplink/internal/uplinktest/randomrow"
)

// updateLog is the content of a file of updates: the schema and the velocities, then each packet
// with its decoded inputs and objects and the ack after it:
//
//	field NAME KIND N LO HI
//	velocity FIELD OF PERTICK
//	rest FIELD
//	packet HEX = TICK        or lost, late or missing
//	inputs TICK PLAYER HEX   or missing
//	object ID GENERATION ROW or gone
//	ack HEX
type updateLog struct{ strings.Builder }

func (l *updateLog) begin(s *snapshot.Schema, cfg *statesync.Config) {
	kinds := map[schema.Class]string{schema.ClassNumber: "motion", schema.ClassQuat: "quat", schema.ClassInteger: "flags", schema.ClassAngle: "angle", schema.ClassBytes: "bytes"}
	for _, f := range s.Fields() {
		fmt.Fprintln(l, "field", f.Name, kinds[f.Class], f.N, f.Lo, f.Hi)
	}
	for _, v := range cfg.Velocities {
		fmt.Fprintln(l, "velocity", v.Field, v.Of, v.PerTick)
	}
	if cfg.Rest != "" {
		fmt.Fprintln(l, "rest", cfg.Rest)
	}
}

// packet writes a packet with its update, or with a word for the reason why there is none.
func (l *updateLog) packet(p []byte, u *statesync.Update, reason string, ack statesync.Ack) {
	if u == nil {
		fmt.Fprintf(l, "packet %x = %s\n", p, reason)
		return
	}
	fmt.Fprintf(l, "packet %x = %d\n", p, u.Tick)
	for _, in := range u.Inputs {
		if in.Missing {
			fmt.Fprintln(l, "inputs", in.Tick, "missing")
		}
		for _, i := range in.Inputs {
			fmt.Fprintf(l, "inputs %d %d %x\n", in.Tick, i.Player, i.Data)
		}
	}
	for _, o := range u.Objects {
		if o.Gone {
			fmt.Fprintln(l, "object", o.ID, "gone")
			continue
		}
		fmt.Fprintf(l, "object %d %d", o.ID, o.Generation)
		for _, v := range o.Row {
			fmt.Fprint(l, " ", v)
		}
		fmt.Fprintln(l)
	}
	fmt.Fprintf(l, "ack %x\n", ack.Append(nil))
}

// kindsVelocities are those of testdata/kinds.golden.
var kindsVelocities = []schema.Velocity{
	{Field: "Place", Of: "Speed", PerTick: schema.StepsPerTick(1. / 60)}, {Field: "Heading", Of: "Turning", PerTick: schema.StepsPerTick(-1. / 30)},
}

// TestGoldenKinds compares a session with fields of all kinds with testdata/kinds.golden: packets
// that are lost, late or twice, objects that appear, go and are replaced, and two restarts.
func TestGoldenKinds(t *testing.T) {
	objects, err := snapshot.NewSchema(
		snapshot.Field{Name: "Ammo", Class: schema.ClassInteger, N: 1, Lo: -5, Hi: 1 << 20},
		snapshot.Field{Name: "Place", Class: schema.ClassNumber, N: 3, Lo: -90_000, Hi: 90_000},
		snapshot.Field{Name: "Name", Class: schema.ClassBytes, N: 4, Lo: 0, Hi: 9},
		snapshot.Field{Name: "Heading", Class: schema.ClassAngle, N: 1, Lo: 0, Hi: 4095},
		snapshot.Field{Name: "Turning", Class: schema.ClassNumber, N: 1, Lo: -2000, Hi: 2000},
		snapshot.Field{Name: "Aim", Class: schema.ClassQuat, N: 4, Lo: -511, Hi: 511},
		snapshot.Field{Name: "Wheels", Class: schema.ClassAngle, N: 3, Lo: -512, Hi: 511},
		snapshot.Field{Name: "Speed", Class: schema.ClassNumber, N: 3, Lo: -4000, Hi: 4000},
		snapshot.Field{Name: "Fuel", Class: schema.ClassNumber, N: 2, Lo: 10, Hi: 100_000},
		snapshot.Field{Name: "Asleep", Class: schema.ClassInteger, N: 1, Lo: 0, Hi: 1},
	)
	must(t, err)
	cfg := statesync.Config{Rest: "Asleep", Budget: 90, Velocities: kindsVelocities}
	s, r := pair(t, objects, cfg)
	rng := rand.New(rand.NewPCG(11, 1))
	rows, generations := map[uint16]*randomrow.Object{}, map[uint16]uint8{}
	var log updateLog
	log.begin(objects, &cfg)
	var sky, acks [][]byte
	set := objects.NewSet()
	for tick := range int64(180) {
		set.Reset()
		for id := uint16(3); id < 100; id += 7 {
			switch o := rows[id]; {
			case o == nil && rng.IntN(20) == 0, o != nil && rng.IntN(150) == 0:
				rows[id] = randomrow.New(rng, objects)
				generations[id]++
			case rng.IntN(200) == 0:
				delete(rows, id)
			}
			if o := rows[id]; o != nil {
				o.Step(rng)
				must(t, set.Add(snapshot.Object{ID: id, Generation: generations[id]}, o.Row))
			}
		}
		for i := range set.Len() {
			must(t, s.Prioritize(set.Object(i).ID, float64(1+i%3)))
		}
		if tick == 20 {
			s.SetViewer(10)
		}
		if tick%9 != 5 {
			must(t, s.AddInputs(tick, statesync.Input{Player: 1, Data: []byte{byte(tick / 8)}}, statesync.Input{Player: 4, Data: []byte{7, byte(tick / 30), 1}[:1+tick/40%3]}))
		}
		packet, _, err := s.Append(nil, tick*3/2, set)
		must(t, err)
		if rng.IntN(12) == 0 {
			log.packet(packet, nil, "lost", statesync.Ack{})
		} else {
			sky = append(sky, packet)
		}
		if n := len(sky); n > 1 && rng.IntN(8) == 0 { // reordered
			sky[n-1], sky[n-2] = sky[n-2], sky[n-1]
		}
		for len(sky) > 2 {
			u, err := r.Decode(sky[0])
			log.packet(sky[0], u, reasonOf(err), r.Ack())
			if sky = sky[1:]; rng.IntN(25) == 0 {
				sky = append(sky, packet) // twice
			}
			a := r.Ack()
			a.Reset = tick == 70 || tick == 130
			acks = append(acks, a.Append(nil))
		}
		for ; len(acks) > 3; acks = acks[1:] {
			a, _, err := statesync.ParseAck(acks[0])
			must(t, err)
			must(t, s.Ack(a))
		}
	}
	if st := r.Stats(); st.Reordered == 0 || st.Duplicate == 0 || s.Stats().Starts < 2 {
		t.Errorf("%+v, %+v", st, s.Stats())
	}
	golden(t, "testdata/kinds.golden", log.String())
}

// reasonOf returns the word for an error of a receiver.
func reasonOf(err error) string {
	for word, target := range map[string]error{"late": snapshot.ErrLate, "missing": snapshot.ErrBaselineMissing, "desync": snapshot.ErrDesync, "malformed": snapshot.ErrMalformed} {
		if errors.Is(err, target) {
			return word
		}
	}
	return ""
}
