package schema

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// applyTag parses the options of a struct tag such as "resolution=0.1,velocity=Velocity" into f.
func (f *Field) applyTag(tag string) error {
	if tag == "" {
		return nil
	}
	seen := map[string]bool{}
	for option := range strings.SplitSeq(tag, ",") {
		name, value, ok := strings.Cut(strings.TrimSpace(option), "=")
		if !ok || value == "" {
			return fmt.Errorf("tag option %q, want name=value", option)
		}
		if seen[name] {
			return fmt.Errorf("tag option %q: %s is given twice", option, name)
		}
		seen[name] = true
		if err := f.setOption(name, value); err != nil {
			return fmt.Errorf("tag option %q: %w", option, err)
		}
	}
	return nil
}

func (f *Field) setOption(name, value string) (err error) {
	switch name {
	case "kind":
		f.Kind = Kind(value)
	case "resolution":
		f.Resolution, err = strconv.ParseFloat(value, 64)
	case "bits":
		f.Bits, err = strconv.Atoi(value)
	case "width":
		f.Width, err = strconv.Atoi(value)
	case "min":
		f.Min, err = parseBound(value)
	case "max":
		f.Max, err = parseBound(value)
	case "velocity":
		f.Velocity = value
	case "velocity_scale":
		if f.VelocityScale, err = strconv.ParseFloat(value, 64); err == nil && f.VelocityScale == 0 {
			err = errors.New("must not be 0; leave out the velocity instead")
		}
	case "urgent":
		var urgent bool
		urgent, err = strconv.ParseBool(value)
		f.Urgent = &urgent
	default:
		return errors.New("unknown option; known are kind, resolution, bits, width, min, max, velocity, velocity_scale, urgent")
	}
	if number, ok := errors.AsType[*strconv.NumError](err); ok {
		want := map[string]string{"Atoi": "a whole number", "ParseFloat": "a number", "ParseBool": "true or false"}[number.Func]
		return errors.New("want " + want)
	}
	return err
}

func parseBound(value string) (*float64, error) {
	v, err := strconv.ParseFloat(value, 64)
	return &v, err
}
