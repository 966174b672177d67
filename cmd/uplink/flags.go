package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/uplink-rpc/uplink/internal/jsonlog"
	"github.com/uplink-rpc/uplink/internal/message"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/simlink"
	"github.com/uplink-rpc/uplink/transport"
)

// debugUsage is the help of --debug.
const debugUsage = "serve /debug/pprof and /debug/vars too, to this machine only (behind a proxy, with --http-token), and add sessions to exemplars"

// overwriteFlag is the flag that permits replacing existing files.
const overwriteFlag = "overwrite"

// existing adds a hint to the error of an existing file.
func existing(err error) error {
	if errors.Is(err, fs.ErrExist) {
		return hintedError{err, "choose another name, or add --" + overwriteFlag + " to replace it"}
	}
	return err
}

// eachUsage is the help of --json for commands that print a result per trace.
const eachUsage = "print JSON: an object, or an array for several traces"

// codecFlag parses --codec.
func codecFlag(name string) (rpcdelta.Codec, error) {
	codec, err := rpcdelta.ParseCodec(name)
	if err != nil {
		return 0, usageError{fmt.Errorf("--codec %q: want %s", name, strings.Join(message.Codecs(), " or "))}
	}
	return codec, nil
}

// checkRing validates --ring.
func checkRing(frames int) error {
	if frames < 2 || frames > rpcdelta.MaxRing {
		return fmt.Errorf("--ring %d: want 2 to %d frames", frames, rpcdelta.MaxRing)
	}
	return nil
}

// linkFlags are the flags that --distance excludes.
var linkFlags = append([]string{"ack-hz", "downlink"}, simlink.FlagNames...)

// checkDistance validates --distance, which excludes the flags of a link.
func checkDistance(cmd *cobra.Command, frames int) error {
	if !cmd.Flags().Changed("distance") {
		return nil
	}
	if frames == 0 {
		return errors.New("--distance 0: want at least 1 frame")
	}
	for _, name := range linkFlags {
		if cmd.Flags().Changed(name) {
			return fmt.Errorf("--%s: there is no link with --distance; leave one of them out", name)
		}
	}
	return nil
}

// redundancy is the flag --redundancy: redundant frames per payload.
type redundancy int

func (r *redundancy) String() string {
	switch *r {
	case rpcdelta.RedundancyAuto:
		return "auto"
	case rpcdelta.RedundancyOff:
		return "off"
	}
	return strconv.Itoa(int(*r))
}

func (r *redundancy) Type() string { return "frames" }

func (r *redundancy) Set(text string) error {
	n, err := strconv.Atoi(text)
	switch {
	case text == "auto":
		*r = rpcdelta.RedundancyAuto
	case text == "off" || text == "0":
		*r = rpcdelta.RedundancyOff
	case err != nil || n < 1 || n > rpcdelta.MaxRedundancy:
		return fmt.Errorf("want auto, off or 1 to %d redundant frames", rpcdelta.MaxRedundancy)
	default:
		*r = redundancy(n)
	}
	return nil
}

// suite is the flag --suite. It accepts short names and the names of package transport.
type suite transport.Suite

var suiteNames = map[transport.Suite]string{
	transport.AES128GCM: "gcm", transport.AES128CTRHMAC8: "compact", transport.None: "none",
	transport.ChaCha20Poly1305: "chacha", transport.ChaCha20SipHash8: "chacha-compact",
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
	return errors.New("want gcm, chacha, compact, chacha-compact or none")
}

// suiteText describes a suite and its overhead.
func suiteText(s transport.Suite) string {
	if s == transport.None {
		return "not encrypted"
	}
	return fmt.Sprintf("encrypted with %s, %d bytes per datagram", suiteNames[s], s.Overhead())
}

// addSuiteFlag adds --suite; gcm is the default.
func addSuiteFlag(f *pflag.FlagSet, s *transport.Suite) {
	*s = transport.AES128GCM
	f.Var((*suite)(s), "suite", "cipher suite: gcm or chacha (16-byte tag), compact or chacha-compact (8-byte tag), or none")
}

// sealing is the cipher suite of a command that opens connections.
type sealing struct {
	suite    transport.Suite
	insecure bool
	flags    *pflag.FlagSet
}

// addFlags adds --suite and --insecure. insecure is the help of the latter.
func (s *sealing) addFlags(f *pflag.FlagSet, insecure string) {
	addSuiteFlag(f, &s.suite)
	s.flags = f
	f.BoolVar(&s.insecure, "insecure", false, insecure)
}

func (s *sealing) check() error {
	if s.suite == transport.None && !s.insecure {
		return errors.New("--suite none: it does not encrypt; --insecure permits it, for measurements")
	}
	return nil
}

// suites returns the suites for a client's config: without --suite, those of the preset.
func (s *sealing) suites() []transport.Suite {
	if !s.chosen() {
		return nil
	}
	return []transport.Suite{s.suite}
}

// permitted returns the suites for a server's config: without --suite, each client chooses.
func (s *sealing) permitted() []transport.Suite {
	if !s.chosen() {
		return []transport.Suite{
			transport.AES128CTRHMAC8, transport.ChaCha20SipHash8, transport.AES128GCM, transport.ChaCha20Poly1305,
		}
	}
	return []transport.Suite{s.suite}
}

// chosen reports whether --suite was set.
func (s *sealing) chosen() bool { return s.flags.Changed("suite") }

// logFormat is the flag --log-format.
type logFormat string

const (
	textLog logFormat = "text"
	jsonLog logFormat = "json"
)

func (l *logFormat) String() string { return string(*l) }

func (l *logFormat) Type() string { return "format" }

// Set implements pflag.Value.
func (l *logFormat) Set(text string) error {
	f := logFormat(text)
	if f != textLog && f != jsonLog {
		return errors.New("want text or json")
	}
	*l = f
	return nil
}

// logging holds the flags for logs.
type logging struct {
	format logFormat
	level  slog.Level
}

func (l *logging) addFlags(c *cobra.Command) {
	l.format = textLog
	c.Flags().Var(&l.format, "log-format", "format of log records on standard error: text or json")
	c.Flags().TextVar(&l.level, "log-level", slog.LevelInfo, "minimum `level` of log records: debug, info, warn or error")
}

func (l *logging) logger(w io.Writer) *slog.Logger {
	if l.format == jsonLog {
		return slog.New(jsonlog.New(w, l.level))
	}
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: l.level}))
}
