package trace

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/uplink-rpc/uplink/schema"
)

// parseField parses the cells of field i in the current row into f.
func (r *Reader) parseField(f *schema.Frame, i int) error {
	c := &r.fields[i]
	switch {
	case c.field.IsBytes():
		return r.parseBytes(f, i)
	case isInteger(c.field.Kind):
		return r.parseIntegers(f, i)
	}
	for k := range c.at {
		v, err := parseNumber(r.cell(c, k))
		if err != nil {
			return c.error(k, err)
		}
		c.values[k] = v
	}
	if err := r.schema.QuantizeField(f, i, c.values); err != nil {
		return c.rangeError(err)
	}
	return nil
}

func (r *Reader) cell(c *cells, k int) string { return strings.TrimSpace(r.record[c.at[k]]) }

// error returns err with the column of value k.
func (c *cells) error(k int, err error) error { return fmt.Errorf("column %q: %w", c.columns[k], err) }

// rangeError returns err with the column of the value that is out of range. For quaternions it
// names all columns.
func (c *cells) rangeError(err error) error {
	var e *schema.RangeError
	if errors.As(err, &e) {
		if v, ok := e.Value.(float64); ok {
			same := func(x float64) bool { return x == v || math.IsNaN(x) && math.IsNaN(v) }
			if k := slices.IndexFunc(c.values, same); k >= 0 {
				return c.error(k, err)
			}
		}
	}
	return fmt.Errorf("columns %s: %w", list(c.columns), err)
}

func (r *Reader) parseBytes(f *schema.Frame, i int) error {
	c := &r.fields[i]
	text := r.cell(c, 0)
	var err error
	if r.bytes, err = hex.AppendDecode(r.bytes[:0], []byte(text)); err != nil {
		return c.error(0, fmt.Errorf("%w; want bytes as hexadecimal digits, two each", err))
	}
	if err := r.schema.SetBytes(f, i, r.bytes); err != nil {
		return c.error(0, err)
	}
	return nil
}

func isInteger(k schema.Kind) bool {
	c, _ := k.Class()
	return c == schema.ClassInteger
}

// parseIntegers parses integers of up to 64 bits exactly.
func (r *Reader) parseIntegers(f *schema.Frame, i int) error {
	c := &r.fields[i]
	for k := range c.at {
		text := r.cell(c, k)
		var err error
		if c.field.Kind == schema.KindInt {
			var v int64
			if v, err = r.parseInt(c.field, text); err == nil {
				c.values[k], err = float64(v), r.schema.SetInt(f, i, k, v)
			}
		} else {
			var v uint64
			if v, err = r.parseUint(c.field, text); err == nil {
				c.values[k], err = float64(v), r.schema.SetUint(f, i, k, v)
			}
		}
		if err != nil {
			return c.error(k, err)
		}
	}
	return nil
}

func (r *Reader) parseUint(field *schema.Field, text string) (uint64, error) {
	if v, err := strconv.ParseUint(text, 10, 64); err == nil {
		return v, nil
	}
	if field.Kind == schema.KindBool {
		if v, err := strconv.ParseBool(text); err == nil {
			if v {
				return 1, nil
			}
			return 0, nil
		}
	}
	v, err := parseNumber(text)
	if err != nil {
		return 0, err
	}
	if !exact(v) || v < 0 {
		highest := uint64(math.MaxUint64) >> (64 - field.Width)
		return 0, r.wholeError(field, text, fmt.Sprintf("0 to %d", highest))
	}
	return uint64(v), nil
}

func (r *Reader) parseInt(field *schema.Field, text string) (int64, error) {
	if v, err := strconv.ParseInt(text, 10, 64); err == nil {
		return v, nil
	}
	v, err := parseNumber(text)
	if err != nil {
		return 0, err
	}
	if !exact(v) {
		lowest := int64(math.MinInt64) >> (64 - field.Width)
		return 0, r.wholeError(field, text, fmt.Sprintf("%d to %d", lowest, -(lowest+1)))
	}
	return int64(v), nil
}

// exact reports whether a number such as 3.0 or 1e3 is an integer and was not rounded.
func exact(v float64) bool { return v == math.Trunc(v) && math.Abs(v) <= 1<<53 }

func (r *Reader) wholeError(f *schema.Field, text, limit string) error {
	return &schema.RangeError{RPC: r.schema.RPC(), Field: f.Name, Value: clip(text), Limit: "a whole number, " + limit}
}

// parseNumber parses a decimal number. A number that is too large becomes infinite, which every
// field refuses.
func parseNumber(text string) (float64, error) {
	if text == "" {
		return 0, errors.New("empty, want a number")
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0, fmt.Errorf("%q is not a number", clip(text))
	}
	return v, nil
}
