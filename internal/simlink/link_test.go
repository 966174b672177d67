package simlink

import (
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

func parse(args ...string) (Config, error) {
	c := Config{RTT: 80 * time.Millisecond, Loss: 0.05, Burst: 1, Seed: 1}
	f := pflag.NewFlagSet("test", pflag.ContinueOnError)
	f.SetOutput(io.Discard)
	c.AddFlags(f)
	err := f.Parse(args)
	return c, err
}

func TestFlags(t *testing.T) {
	for args, want := range map[string]Config{
		"":                       {RTT: 80 * time.Millisecond, Loss: 0.05, Burst: 1, Seed: 1},
		"--loss 0.1 --seed 7":    {RTT: 80 * time.Millisecond, Loss: 0.1, Burst: 1, Seed: 7},
		"--loss 12.5% --burst 4": {RTT: 80 * time.Millisecond, Loss: 0.125, Burst: 4, Seed: 1},
		"--rtt 1s --jitter 5ms":  {RTT: time.Second, Jitter: 5 * time.Millisecond, Loss: 0.05, Burst: 1, Seed: 1},
		"--loss 100%":            {RTT: 80 * time.Millisecond, Loss: 1, Burst: 1, Seed: 1},
	} {
		got, err := parse(strings.Fields(args)...)
		if err != nil || got != want || got.Validate() != nil {
			t.Errorf("%s: %+v, %v", args, got, err)
		}
	}
	for _, loss := range []string{"5", "-0.1", "101%", "x", "5%%", "", "NaN", "inf"} {
		if c, err := parse("--loss=" + loss); err == nil {
			t.Errorf("--loss %q is taken as %v", loss, c.Loss)
		}
	}
	f := pflag.NewFlagSet("test", pflag.ContinueOnError)
	new(Config).AddFlags(f)
	for _, name := range FlagNames {
		if f.Lookup(name) == nil {
			t.Errorf("no flag --%s", name)
		}
	}
}

func TestValidate(t *testing.T) {
	for want, change := range map[string]func(*Config){
		"--rtt -1ns: want 0s to 1m0s":             func(c *Config) { c.RTT = -1 },
		"--jitter 1h0m0s: want 0s to 1m0s":        func(c *Config) { c.Jitter = time.Hour },
		"--loss 1.5: want a share of 0 to 1":      func(c *Config) { c.Loss = 1.5 },
		"--loss NaN: want a share of 0 to 1":      func(c *Config) { c.Loss = math.NaN() },
		"--burst 0: want 1 to 1000000 packets":    func(c *Config) { c.Burst = 0 },
		"--burst +Inf: want 1 to 1000000 packets": func(c *Config) { c.Burst = math.Inf(1) },
	} {
		c, _ := parse()
		change(&c)
		if err := c.Validate(); err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
		if _, err := c.Network(); err == nil {
			t.Errorf("a network of %+v", c)
		}
	}
}

// TestDirections expects both ways to take the round trip, and to lose different packets.
func TestDirections(t *testing.T) {
	c := Config{RTT: 81 * time.Nanosecond, Jitter: 3, Loss: 0.5, Burst: 2, Seed: 9}
	up, down := c.Up(), c.Down()
	if up.Delay+down.Delay != c.RTT || up.Seed == down.Seed {
		t.Errorf("%+v\n%+v", up, down)
	}
	up.Delay, up.Seed = down.Delay, down.Seed
	if up != down {
		t.Errorf("%+v\n%+v", up, down)
	}
	if want := "RTT 81ns, jitter 3ns, loss 50 % in bursts of 2"; c.String() != want {
		t.Errorf("%s", &c)
	}
	if c.Drained() != 105 {
		t.Error(c.Drained())
	}
	for _, c := range []Config{{Burst: 5, Seed: 3}, {RTT: 1}, {Jitter: 1}, {Loss: 0.1}} {
		if c.Perfect() != (c.Seed == 3) {
			t.Errorf("%+v", c)
		}
	}
}
