package simlink

import (
	"errors"
	"strconv"
	"strings"
)

// share is a flag whose value is a part of a whole: 0.05 or 5%.
type share float64

func (s *share) String() string { return strconv.FormatFloat(float64(*s), 'g', -1, 64) }

func (s *share) Type() string { return "share" }

// Set implements pflag.Value.
func (s *share) Set(text string) error {
	v, err := ParseShare(text)
	if err == nil {
		*s = share(v)
	}
	return err
}

// ParseShare reads a part of a whole, 0 to 1: 0.05 or 5%.
func ParseShare(text string) (float64, error) {
	number, percent := strings.CutSuffix(text, "%")
	v, err := strconv.ParseFloat(number, 64)
	if percent {
		v /= 100
	}
	if err != nil || !(v >= 0 && v <= 1) {
		return 0, errors.New("want 0 to 1, or a percentage such as 5%")
	}
	return v, nil
}
