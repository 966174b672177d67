package protocol

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/uplink-rpc/uplink/internal/replication/areas"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/snapshot"
	"github.com/uplink-rpc/uplink/internal/statesync"
)

var classes = []string{"number", "angle", "quat", "integer", "bytes"} // by schema.Class

// Objects returns the words for a description of objects.
func Objects(fields []snapshot.Field) []string {
	words := make([]string, len(fields))
	for i, f := range fields {
		words[i] = fmt.Sprintf("%s:%d:%d:%d", classes[f.Class], f.N, f.Lo, f.Hi)
	}
	return words
}

// ParseObjects parses words of [Objects].
func ParseObjects(words []string) (*snapshot.Schema, error) {
	fields := make([]snapshot.Field, len(words))
	for i, word := range words {
		class, rest, _ := strings.Cut(word, ":")
		numbers, err := ParseInts[int32](strings.ReplaceAll(rest, ":", ","), 32)
		if err != nil || len(numbers) != 3 {
			return nil, fmt.Errorf("field %.60q, want CLASS:N:LO:HI", word)
		}
		fields[i] = snapshot.Field{Name: strconv.Itoa(i), Class: schema.Class(len(classes)), N: int(numbers[0]), Lo: numbers[1], Hi: numbers[2]}
		for c, name := range classes {
			if name == class {
				fields[i].Class = schema.Class(c)
			}
		}
	}
	return snapshot.NewSchema(fields...)
}

// Velocities returns the words for velocities, whose fields are named by their indexes.
func Velocities(all []schema.Velocity) []string {
	words := make([]string, len(all))
	for i, v := range all {
		words[i] = fmt.Sprintf("%s:%s:%d", v.Field, v.Of, v.PerTick)
	}
	return words
}

// ParseVelocities parses words of [Velocities].
func ParseVelocities(words []string) ([]schema.Velocity, error) {
	out := make([]schema.Velocity, len(words))
	for i, word := range words {
		parts := strings.Split(word, ":")
		if len(parts) != 3 {
			return nil, fmt.Errorf("velocity %.60q, want FIELD:OF:FACTOR", word)
		}
		factor, err := strconv.ParseInt(parts[2], 10, 64)
		if err != nil {
			return nil, err
		}
		out[i] = schema.Velocity{Field: parts[0], Of: parts[1], PerTick: factor}
	}
	return out, nil
}

// Snapshot returns the result of a decoded snapshot.
func Snapshot(info snapshot.Info, set *snapshot.Set) string {
	words := []string{strconv.Itoa(int(info.Seq))}
	for i := range set.Len() {
		words = append(words, object(set.Object(i), set.Row(i)))
	}
	return strings.Join(words, " ")
}

// View returns the result of a decoded message of a world with areas.
func View(number uint16, distance int, d *areas.Decoder, types int) string {
	words := []string{strconv.Itoa(int(number)), strconv.Itoa(distance)}
	for typ := range types {
		set := d.Shown(typ)
		for i := range set.Len() {
			words = append(words, fmt.Sprintf("%d/%s", typ, object(set.Object(i), set.Row(i))))
		}
	}
	return strings.Join(words, " ")
}

func object(o snapshot.Object, row []int32) string {
	return fmt.Sprintf("%d.%d:%s", o.ID, o.Generation, Ints(row))
}

// Update returns the result of a decoded state packet.
func Update(u *statesync.Update) string {
	words := []string{strconv.Itoa(int(u.Seq)), strconv.FormatInt(u.Tick, 10)}
	for _, t := range u.Inputs {
		if t.Missing {
			words = append(words, fmt.Sprintf("missing:%d", t.Tick))
			continue
		}
		word := fmt.Sprintf("tick:%d", t.Tick)
		for _, in := range t.Inputs {
			word += fmt.Sprintf(":%d:%s", in.Player, Bytes(in.Data))
		}
		words = append(words, word)
	}
	for _, o := range u.Objects {
		if o.Gone {
			words = append(words, strconv.Itoa(int(o.ID)))
			continue
		}
		words = append(words, object(o.Object, o.Row))
	}
	return strings.Join(words, " ")
}

// Ack returns the result of parseack for an ack of size bytes.
func Ack(a *rpcdelta.Ack, size int) string {
	reset := "none"
	if a.ResetReason != nil {
		reset = Reason(a.ResetReason)
	}
	return fmt.Sprintf("%d %d %d %d %d %016x %d %s %d", a.RPC, a.Epoch, digit(!a.None), a.Seq, a.Len, a.Window, digit(a.Whole), reset, size)
}

func digit(b bool) int {
	if b {
		return 1
	}
	return 0
}
