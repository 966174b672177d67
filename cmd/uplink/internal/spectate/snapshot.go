package spectate

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/uplink-rpc/uplink/internal/schema"
)

// Snapshot is a snapshot of a world as sent to a player.
type Snapshot struct {
	World   string   `json:"world"`
	Player  uint64   `json:"player"`
	Seconds float64  `json:"seconds"` // since the start of the file
	Tick    uint64   `json:"tick"`
	Objects []Object `json:"objects"`
}

// Object is an object of a snapshot.
type Object struct {
	Type       string `json:"type"`
	ID         uint16 `json:"id"`
	Generation uint8  `json:"generation"`
	Age        uint64 `json:"age,omitempty"` // age of the state relative to the snapshot, in ticks
	Fields     Fields `json:"fields"`
}

// Fields are the fields of an object, in the order of its type.
type Fields []Field

// Field is the value of a field: a number, a list of numbers, a boolean or a text.
type Field struct {
	Name  string
	Value any
}

// MarshalJSON returns an object with a member for each field.
func (f Fields) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i, each := range f {
		if i > 0 {
			b = append(b, ',')
		}
		name, err := json.Marshal(each.Name)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(each.Value)
		if err != nil {
			return nil, err
		}
		b = append(append(append(b, name...), ':'), value...)
	}
	return append(b, '}'), nil
}

// WriteText writes a line with the tick, and one for each object.
func (s *Snapshot) WriteText(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "tick %d at %.3f s: %d objects\n", s.Tick, s.Seconds, len(s.Objects))
	for _, o := range s.Objects {
		fmt.Fprintf(&b, "  %s %d.%d", o.Type, o.ID, o.Generation)
		for _, f := range o.Fields {
			fmt.Fprintf(&b, " %s=%v", f.Name, f.Value)
		}
		if o.Age > 0 {
			fmt.Fprintf(&b, " (%d ticks older)", o.Age)
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// values returns the fields of the frame.
func (t *objectType) values() (out Fields) {
	fields := t.source.Fields()
	for i := range fields {
		out = append(out, Field{fields[i].Name, t.value(&fields[i], i)})
	}
	return out
}

func (t *objectType) value(f *schema.Field, i int) any {
	if f.IsBytes() {
		return text(t.source.BytesOf(t.frame, i))
	}
	var values []any
	switch f.Kind {
	case schema.KindBool:
		values = each(f, func(k int) any { return t.source.Uint(t.frame, i, k) != 0 })
	case schema.KindUint, schema.KindBits:
		values = each(f, func(k int) any { return t.source.Uint(t.frame, i, k) })
	case schema.KindInt:
		values = each(f, func(k int) any { return t.source.Int(t.frame, i, k) })
	default:
		restored := t.source.RestoreField(nil, t.frame, i)
		values = each(f, func(k int) any { return number(restored[k]) })
	}
	if len(values) == 1 {
		return values[0]
	}
	return values
}

// each returns value of all values of a field.
func each(f *schema.Field, value func(k int) any) (values []any) {
	for k := range f.Values() {
		values = append(values, value(k))
	}
	return values
}

// number is a value. Its text omits the digits that quantization does not preserve.
type number float64

func (n number) String() string { return strconv.FormatFloat(float64(n), 'g', 10, 64) }

// MarshalJSON returns the digits of String.
func (n number) MarshalJSON() ([]byte, error) { return []byte(n.String()), nil }

// text returns a byte string as text if it is printable, otherwise in hexadecimal.
func text(b []byte) string {
	s := string(b)
	if utf8.Valid(b) && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return s
	}
	return "0x" + hex.EncodeToString(b)
}
