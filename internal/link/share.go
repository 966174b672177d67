package link

import (
	"fmt"
	"strconv"
	"strings"
)

// share is a flag whose value is a part of a whole: 0.05 or 5%.
type share float64

func (s *share) String() string { return strconv.FormatFloat(float64(*s), 'g', -1, 64) }

func (s *share) Type() string { return "share" }

// Set implements pflag.Value.
func (s *share) Set(text string) error {
	number, percent := strings.CutSuffix(text, "%")
	v, err := strconv.ParseFloat(number, 64)
	if percent {
		v /= 100
	}
	if err != nil || !(v >= 0 && v <= 1) {
		return fmt.Errorf("want 0 to 1, or a percentage such as 5%%")
	}
	*s = share(v)
	return nil
}
