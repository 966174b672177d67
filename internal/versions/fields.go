package versions

import (
	"errors"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"

	"github.com/uplink-rpc/uplink/internal/schema"
)

// Descriptions returns the description of each field, see [schema.Field.String].
func Descriptions(s *schema.Schema) (fields []string) {
	for _, f := range s.Fields() {
		fields = append(fields, f.String())
	}
	return fields
}

// Fingerprint returns the fingerprint of the schema with these descriptions, see
// [schema.Schema.Fingerprint].
func Fingerprint(name string, descriptions []string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(name))
	for _, d := range descriptions {
		h.Write([]byte("\n" + d))
	}
	return h.Sum64()
}

// Parse returns the schema of an RPC or object whose fields the other end describes. Any input is
// safe.
func Parse(name string, descriptions []string) (*schema.Schema, error) {
	fields := make([]schema.Field, 0, min(len(descriptions), schema.MaxFields))
	for _, d := range descriptions {
		f, err := parseField(d)
		if err != nil {
			return nil, fmt.Errorf("field %q: %w", d, err)
		}
		fields = append(fields, f)
	}
	s, err := schema.New(name, 0, fields)
	if err != nil {
		return nil, err
	}
	for i, d := range descriptions {
		if got := s.Fields()[i].String(); got != d {
			return nil, fmt.Errorf("field %q: it is read as %q", d, got)
		}
	}
	return s, nil
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
