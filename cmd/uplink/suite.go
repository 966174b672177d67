package main

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/uplink-rpc/uplink/transport"
)

// suite is a flag: how datagrams are sealed. Its names are shorter than the transport's, which it takes too.
type suite transport.Suite

var suiteNames = map[transport.Suite]string{
	transport.AES128GCM: "gcm", transport.AES128CTRHMAC8: "compact", transport.None: "none",
}

func (s *suite) String() string { return suiteNames[transport.Suite(*s)] }

func (s *suite) Type() string { return "suite" }

// Set implements pflag.Value.
func (s *suite) Set(text string) error {
	for value, name := range suiteNames {
		if text == name || text == value.String() {
			*s = suite(value)
			return nil
		}
	}
	return errors.New("want gcm, compact or none")
}

// suiteText says what a suite costs.
func suiteText(s transport.Suite) string {
	if s == transport.None {
		return "not sealed"
	}
	return fmt.Sprintf("sealed by %s, %d bytes a datagram", suiteNames[s], s.Overhead())
}

// addSuiteFlag adds --suite; gcm is the default.
func addSuiteFlag(f *pflag.FlagSet, s *transport.Suite) {
	*s = transport.AES128GCM
	f.Var((*suite)(s), "suite", "how datagrams are sealed: gcm (16 bytes each), compact (8) or none")
}

// sealing is how the datagrams of a command are sealed that sends some.
type sealing struct {
	suite    transport.Suite
	insecure bool
}

// addFlags adds --suite, and --insecure, which allows what its help says and the suite none.
func (s *sealing) addFlags(f *pflag.FlagSet, insecure string) {
	addSuiteFlag(f, &s.suite)
	f.BoolVar(&s.insecure, "insecure", false, insecure)
}

func (s *sealing) check() error {
	if s.suite == transport.None && !s.insecure {
		return errors.New("--suite none: it protects nothing; for measurements --insecure allows it")
	}
	return nil
}

// suites is for configs.
func (s *sealing) suites() []transport.Suite { return []transport.Suite{s.suite} }
