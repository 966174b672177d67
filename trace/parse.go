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
	unused := 64 - c.field.Width // bits
	for k := range c.at {
		text := r.cell(c, k)
		if c.field.Kind == schema.KindBool {
			if v, err := strconv.ParseBool(text); err == nil {
				text = "0"
				if v {
					text = "1"
				}
			}
		}
		var err error
		if c.field.Kind == schema.KindInt {
			var v int64
			lowest := int64(math.MinInt64) >> unused
			if v, err = parseInteger(r, c.field, text, strconv.ParseInt, lowest, -(lowest+1)); err == nil {
				c.values[k], err = float64(v), r.schema.SetInt(f, i, k, v)
			}
		} else {
			var v uint64
			if v, err = parseInteger(r, c.field, text, strconv.ParseUint, 0, math.MaxUint64>>unused); err == nil {
				c.values[k], err = float64(v), r.schema.SetUint(f, i, k, v)
			}
		}
		if err != nil {
			return c.error(k, err)
		}
	}
	return nil
}

// parseInteger parses an integer, or a number such as 3.0 or 1e3 that is one and was not rounded.
func parseInteger[T int64 | uint64](
	r *Reader, f *schema.Field, text string, parse func(string, int, int) (T, error), lowest, highest T,
) (T, error) {
	if v, err := parse(text, 10, 64); err == nil {
		return v, nil
	}
	v, err := parseNumber(text)
	if err == nil && (v != math.Trunc(v) || math.Abs(v) > 1<<53 || v < 0 && lowest == 0) {
		limit := fmt.Sprintf("a whole number, %d to %d", lowest, highest)
		err = &schema.RangeError{RPC: r.schema.RPC(), Field: f.Name, Value: clip(text), Limit: limit}
	}
	return T(v), err
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
