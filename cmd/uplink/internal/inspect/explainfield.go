package inspect

import (
	"fmt"
	"slices"
	"strings"

	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/rpcdelta/inspect"
	"github.com/uplink-rpc/uplink/internal/schema"
)

// field explains a field of frame i and returns its bits. place is the position of its numbers, or
// noBit; field advances it past them.
func (t *told) field(s *stream, i, f int, place *int) (sum float64) {
	field := &s.schema.Fields()[f]
	flags, contents := 0., 0.
	var comps []inspect.Part
	for _, part := range t.parts.Parts {
		if part.Frame != i || part.Field != f {
			continue
		}
		sum += part.Bits
		switch part.Kind {
		case inspect.PartFlags:
			flags += part.Bits
		case inspect.PartContents:
			contents += part.Bits
		case inspect.PartComponent:
			comps = append(comps, part)
		}
	}
	frame := t.parts.Frames[i]
	at := noBit
	if c, _ := field.Kind.Class(); *place != noBit && c != schema.ClassInteger && c != schema.ClassBytes {
		at = *place
		*place += int(sum)
	}
	t.add(at, sum, 2, fmt.Sprintf("%s %v", field.Name, field.Kind), "%s", valueText(s.schema, frame, f))
	if flags > 0 {
		t.add(noBit, flags, 3, "flags", "%s", flagText(s, field, comps))
	}
	if contents > 0 {
		t.add(noBit, contents, 3, "contents", "")
	}
	if len(comps) > 0 && !slices.ContainsFunc(comps, func(c inspect.Part) bool { return !c.Held }) {
		t.add(noBit, sum-flags, 3, "all components", "as the reference has them")
		return sum
	}
	for _, c := range comps {
		t.add(noBit, c.Bits, 3, fmt.Sprintf("component %d", c.Component), "%s", partText(&c))
	}
	return sum
}

// flagText describes the bits of a field that belong to no component.
func flagText(s *stream, field *schema.Field, comps []inspect.Part) string {
	alone := len(comps) > 0 && isAlone(&comps[0])
	text := "whether it changed"
	switch {
	case s.cfg.Codec == rpcdelta.RLE && field.Kind == schema.KindAngle && alone:
		text = "of each whether it is not zero"
	case s.cfg.Codec == rpcdelta.RLE && field.Kind == schema.KindQuat && alone:
		return "whether the index is the same, if there is a baseline; the index of the largest component"
	case s.cfg.Codec == rpcdelta.RLE, alone:
		text = "the width that its components share"
	case len(comps) > 1:
		text = "whether it changed, and which components"
	}
	if field.Kind == schema.KindQuat {
		text += ", the index of the largest component"
	}
	return text
}

func isAlone(c *inspect.Part) bool {
	return !c.Held && !c.Forecasts && rpcdelta.PredictorName(c.Predictor) == "none"
}

func partText(c *inspect.Part) string {
	switch {
	case c.Held:
		return fmt.Sprintf("%d, as the reference has it", c.Value)
	case c.Forecasts:
		return fmt.Sprintf("%d = forecast %d (%s) %+d", c.Value, c.Forecast, rpcdelta.PredictorName(c.Predictor), c.Residual)
	case isAlone(c):
		return fmt.Sprintf("%d, coded alone", c.Value)
	}
	return fmt.Sprintf("%d, coded by %s", c.Value, rpcdelta.PredictorName(c.Predictor))
}

func valueText(s *schema.Schema, f *schema.Frame, i int) string {
	field := &s.Fields()[i]
	if field.IsBytes() {
		b := s.BytesOf(f, i)
		return clip(fmt.Sprintf("%d bytes %x", len(b), b))
	}
	values := make([]string, field.Values())
	for k := range values {
		switch field.Kind {
		case schema.KindInt:
			values[k] = fmt.Sprint(s.Int(f, i, k))
		case schema.KindUint, schema.KindBits, schema.KindBool:
			values[k] = fmt.Sprint(s.Uint(f, i, k))
		default:
			values[k] = fmt.Sprintf("%.6g", s.RestoreField(nil, f, i)[k])
		}
	}
	return clip(strings.Join(values, ", "))
}
