package replication

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/uplink-rpc/uplink/internal/codec/objectfields"
	"github.com/uplink-rpc/uplink/schema"
	"github.com/uplink-rpc/uplink/snapshot"
)

// Fields returns a description of each field of an object, for offers.
func Fields(s *schema.Schema) (fields []string) {
	for _, f := range s.Fields() {
		fields = append(fields, f.String())
	}
	return fields
}

// ParseFields parses descriptions of Fields. It returns a schema with these fields and that of the
// rows of objects. If only the latter is too large, it returns the first with the error. Any input
// is safe.
func ParseFields(name string, descriptions []string) (*schema.Schema, *snapshot.Schema, error) {
	var fields []schema.Field
	for _, d := range descriptions {
		f, err := parseField(d)
		if err != nil {
			return nil, nil, fmt.Errorf("field %q: %w", d, err)
		}
		fields = append(fields, f)
	}
	source, err := schema.New(name, 0, fields)
	if err != nil {
		return nil, nil, err
	}
	for i, d := range descriptions {
		if got := source.Fields()[i].String(); got != d {
			return nil, nil, fmt.Errorf("field %q: it is read as %q", d, got)
		}
	}
	var rows []snapshot.Field
	for _, f := range objectfields.Of(source) {
		rows = append(rows, snapshot.Field(f))
	}
	s, err := snapshot.NewSchema(rows...)
	return source, s, err
}

func parseField(description string) (f schema.Field, err error) {
	words := strings.Split(description, " ")
	if len(words) < 2 {
		return f, errors.New("want a name and a kind")
	}
	f.Name, f.Kind = words[0], schema.Kind(words[1])
	for _, word := range words[2:] {
		option, value, _ := strings.Cut(word, "=")
		switch option {
		case "count":
			f.Count, err = strconv.Atoi(value)
		case "resolution":
			f.Resolution, err = strconv.ParseFloat(value, 64)
		case "bits":
			f.Bits, err = strconv.Atoi(value)
		case "width":
			f.Width, err = strconv.Atoi(value)
		case "size":
			f.Size, err = strconv.Atoi(value)
		case "max":
			f.Max = new(float64)
			*f.Max, err = strconv.ParseFloat(value, 64)
		case "steps":
			err = parseSteps(&f, value)
		case "velocity":
			f.Velocity = value
		case "velocity_scale":
			f.VelocityScale, err = strconv.ParseFloat(value, 64)
		default:
			err = fmt.Errorf("unknown option %s", option)
		}
		if err != nil {
			return f, err
		}
	}
	return f, nil
}

// parseSteps parses bounds in steps of the resolution, which precedes them.
func parseSteps(f *schema.Field, value string) error {
	lo, hi, _ := strings.Cut(value, "..")
	for _, bound := range []struct {
		text string
		to   **float64
	}{{lo, &f.Min}, {hi, &f.Max}} {
		steps, err := strconv.ParseInt(bound.text, 10, 32)
		if err != nil {
			return err
		}
		at := float64(steps) * f.Resolution
		*bound.to = &at
	}
	return nil
}
