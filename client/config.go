package client

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/uplink-rpc/uplink/internal/endpoint"
	"github.com/uplink-rpc/uplink/internal/message"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/rpcdelta/prior"
	"github.com/uplink-rpc/uplink/internal/streams"
	"github.com/uplink-rpc/uplink/token"
	"github.com/uplink-rpc/uplink/transport"
)

// defaultBindTimeout is the default of Config.Transport.BindTimeout.
const defaultBindTimeout = 5 * time.Second

// Config configures a [Conn]. The zero value of each field means its default.
type Config struct {
	// Token is the connect token from the game's backend (package token). It is valid for one
	// connection. Without a token, only loopback addresses are allowed.
	Token token.Token
	// Renew returns a new token for each attempt to reconnect. If Renew is nil, a client that used
	// a token cannot reconnect. An error counts as an attempt. The context is canceled when the
	// connection is closed. If Token was used before, Dial calls Renew with the context of Dial.
	Renew func(context.Context) (token.Token, error)
	// Assign, if set, is used instead of Renew, and returns the server's address too: for games
	// with several servers.
	//
	// If the server does not answer for about 1.25 s while the client calls RPCs, the client gets
	// another server from Assign, or a token for another one behind the same address from Renew,
	// and connects to it. If its own server answers before it is ready there, it stays.
	Assign func(context.Context) (addr string, t token.Token, err error)
	// Preset is a choice between delay and bandwidth: [LowLatency], [Balanced] or [LowBandwidth].
	// It sets Suites and the BindConfig.Delay of unreliable RPCs unless they are set. Without a
	// preset, the default, frames are sent at once as with LowLatency, and have no deadline: the
	// defaults neither delay nor drop a call of an unknown game. Balanced saves most for typical
	// games; see docs/choosing.md.
	Preset Preset
	// Tick makes unreliable RPCs share datagrams: payloads are collected and sent once per Tick, by
	// [Conn.Flush], or when a datagram is full. At least 1 ms; at 0, the default, each payload is
	// sent at once in its own datagram.
	Tick time.Duration
	// Bandwidth limits the mean bit rate of all sent datagrams but path size probes, with all
	// headers down to IP, in bits/s; 0, the default, means no limit. The connection reduces
	// redundancy and puts up to 4 frames into each payload of an unreliable RPC that uses the
	// adaptive codec, as it also does if the path is congested. Urgent frames leave at once, unless
	// one did shortly before. It never drops a call: traffic above the limit is sent and counted.
	Bandwidth int
	// NoReconnect ends a connection for good when it is lost; [Conn.Err] then returns the cause,
	// and so do other methods. Otherwise the client reconnects, as often as necessary, unless the
	// server kicks the player.
	NoReconnect bool
	// OnEvent, if set, is called with each change of [Conn.State], and with each attempt to
	// reconnect: one call after the other, in order, by goroutines of the connection, Dial or
	// [Conn.Close]. It must return quickly and must not call Conn.Close. A panic ends the session
	// with transport.ErrPanic.
	OnEvent func(Event)
	// OnQuality, if set, is called about once per second while there is a session, as OnMessage is.
	OnQuality func(Quality)
	// OnMessage, if set, is called with each message of ds.Player.SendReliable, in order, on the
	// goroutine that receives for the connection. It must return quickly and must not call
	// [Conn.Close]. The message is valid until it returns. A panic ends the session with
	// transport.ErrPanic.
	OnMessage func(message []byte)
	// Handlers, if set, are the RPCs that the server can call: see [Handle].
	Handlers *Handlers
	// Network opens the socket; nil means UDP. Tests and demos use transport/simnet.
	Network transport.Network
	// Logger logs the events of the connection and its bindings; nil means no logs.
	Logger *slog.Logger
	// Transport contains the limits and times of the connection.
	Transport Transport
	// Tuning has settings of the codec that the preset and the default choose well for most games.
	Tuning Tuning
	// Hooks has further callbacks.
	Hooks Hooks
}

// Transport contains settings of a connection that most games need not change.
type Transport struct {
	// Suites are the permitted cipher suites; default that of Preset, transport.AES128GCM and
	// transport.ChaCha20Poly1305.
	Suites []transport.Suite
	// Insecure permits the published development key on addresses other than loopback, and the
	// suite None. It is for measurements.
	Insecure bool
	// LocalHandovers permits the server to hand the client over to addresses of any loopback,
	// private or link-local network. By default these are refused, unless the server itself has an
	// address of the same kind: a server on the internet must not reach the player's own network.
	LocalHandovers bool
	// Timeout is the time without a datagram from the server after which the connection is lost;
	// default 15 s.
	Timeout time.Duration
	// BindTimeout limits how long [Bind], [SubscribeSnapshots] and [SubscribeState] wait for the
	// server if their context has no deadline; default 5 s.
	BindTimeout time.Duration
	// KeyLog, if set, receives a line with the secrets of each session. It defeats the encryption
	// and is for debugging; see docs/wireshark.md.
	KeyLog io.Writer
	// StreamRate is the maximum rate of all streams of a session together, in bytes/s with all
	// headers; default 256 KiB/s, at least 4 KiB/s. With Bandwidth it is at most half of that. On a
	// congested path it is less.
	StreamRate int
	// ReliableQueue is the maximum number of bytes of reliable data for the server that wait to be
	// sent or acknowledged: messages, requests and calls. The default is 256 KiB, the minimum 32
	// KiB. Beyond it, sending returns transport.ErrBacklog. See [Conn.ReliableRoom] and
	// [Conn.WaitReliable].
	ReliableQueue int
}

// Tuning contains the settings of the codec of RPCs.
type Tuning struct {
	// Codec encodes the frames; default [rpcdelta.Adaptive].
	Codec rpcdelta.Codec
	// Redundancy is the number of earlier payloads whose frames each payload of an unreliable RPC
	// repeats. rpcdelta.RedundancyAuto, the default, follows the packet loss. [Conn.SetRedundancy]
	// changes it later.
	Redundancy int
	// Delivery is the share of frames that rpcdelta.RedundancyAuto aims to deliver; default 0.9995.
	Delivery float64
	// RedundancyBytes limits the size of a payload with redundant frames; default 256 bytes.
	RedundancyBytes int
	// FlushOnly makes unreliable RPCs share datagrams without a Tick: payloads are sent by
	// [Conn.Flush] or when a datagram is full. Tick must be 0.
	FlushOnly bool
	// Prior is the prior from which streams of the adaptive codec start, if the server has it too.
	// Otherwise, and if Prior is nil, they start from the built-in prior. RPCStats counts the
	// bindings that fell back to it.
	Prior *prior.Prior
	// Ring is the number of frames of each RPC that are kept as baselines, 2 to 256; default 64.
	Ring int
}

// Hooks contains callbacks of a connection that few games need.
type Hooks struct {
	// OnUnreliable, if set, is called with each message of ds.Player.SendUnreliable that arrives,
	// as OnMessage is, in the order of arrival.
	OnUnreliable func(message []byte)
	// OnStream, if set, is called with each stream that the server opens with ds.Player.OpenStream,
	// on a goroutine of its own. When it returns, the stream ends. It must not call [Conn.Close]. A
	// panic ends the session with transport.ErrPanic.
	OnStream func(transport.StreamReader)
}

func (cfg Config) withDefaults() (Config, error) {
	cfg.Tuning.Codec = cmp.Or(cfg.Tuning.Codec, rpcdelta.DefaultCodec)
	if s := cfg.Preset.Suite; len(cfg.Transport.Suites) == 0 && s != 0 && s != transport.AES128GCM {
		cfg.Transport.Suites = []transport.Suite{s, transport.AES128GCM, transport.ChaCha20Poly1305}
	}
	cfg.Tuning.Ring = cmp.Or(cfg.Tuning.Ring, rpcdelta.DefaultRing)
	cfg.Transport.BindTimeout = cmp.Or(cfg.Transport.BindTimeout, defaultBindTimeout)
	cfg.Transport.StreamRate = cmp.Or(cfg.Transport.StreamRate, streams.DefaultRate)
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	_, badCodec := rpcdelta.ParseCodec(cfg.Tuning.Codec.String())
	sending := rpcdelta.EncoderConfig{Redundancy: cfg.Tuning.Redundancy, Delivery: cfg.Tuning.Delivery, RedundancyBytes: cfg.Tuning.RedundancyBytes}
	badSending := sending.Check()
	switch {
	case cfg.Tuning.Ring < 2 || cfg.Tuning.Ring > rpcdelta.MaxRing:
		return cfg, fmt.Errorf("client: Config.Tuning.Ring is %d, want 2 to %d", cfg.Tuning.Ring, rpcdelta.MaxRing)
	case badCodec != nil:
		return cfg, fmt.Errorf("client: Config.Tuning.Codec is %v, want %s", cfg.Tuning.Codec, strings.Join(message.Codecs(), " or "))
	case badSending != nil:
		return cfg, fmt.Errorf("client: Config: %s", strings.TrimPrefix(badSending.Error(), "rpcdelta: "))
	case cfg.Tick != 0 && (cfg.Tick < time.Millisecond || cfg.Tuning.FlushOnly):
		return cfg, fmt.Errorf("client: Config.Tick is %v, want at least %v, or 0, and 0 with FlushOnly", cfg.Tick, time.Millisecond)
	case cfg.Bandwidth < 0:
		return cfg, fmt.Errorf("client: Config.Bandwidth is %d bits/s, want at least 0", cfg.Bandwidth)
	case cfg.Transport.StreamRate < streams.MinRate:
		return cfg, fmt.Errorf("client: Config.Transport.StreamRate is %d bytes/s, want at least %d", cfg.Transport.StreamRate, streams.MinRate)
	case cfg.Transport.BindTimeout < 0:
		return cfg, fmt.Errorf("client: Config.Transport.BindTimeout is %v, want at least 0", cfg.Transport.BindTimeout)
	}
	return cfg, nil
}

func (cfg *Config) transport(t token.Token) endpoint.Config {
	return endpoint.Config{
		ReliableQueue: cfg.Transport.ReliableQueue,
		Network:       cfg.Network, Token: t, Suites: cfg.Transport.Suites, Insecure: cfg.Transport.Insecure,
		Timeout: cfg.Transport.Timeout, Tick: endpoint.OnWake, KeyLog: cfg.Transport.KeyLog, Logger: cfg.Logger,
	}
}

func (cfg *Config) coalesces() bool { return cfg.Tick != 0 || cfg.Tuning.FlushOnly }

// prior returns the prior that bindings ask for, or nil if the codec uses none.
func (cfg *Config) prior() *prior.Prior {
	switch {
	case cfg.Tuning.Codec != rpcdelta.Adaptive:
		return nil
	case cfg.Tuning.Prior == nil:
		return prior.Generic()
	}
	return cfg.Tuning.Prior
}

// withBindTimeout returns ctx, with BindTimeout as its timeout unless it has a deadline.
func (cfg *Config) withBindTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, cfg.Transport.BindTimeout)
}

// maxReliable is the maximum size of a payload of a reliable RPC, in bytes.
const maxReliable = 8 << 10

// BindConfig describes how an RPC is called. The zero value of each field means its default.
type BindConfig struct {
	// RateHz is the declared number of calls per second; default 60.
	RateHz float64
	// Reliable sends frames over the reliable channel: all of them arrive, in order. Each frame is
	// coded as a delta from the previous one. Frames that are not acknowledged when the connection
	// is lost may be lost with it.
	Reliable bool
	// Delay lets frames of an unreliable RPC wait for later ones, depending on what changed in
	// them; default that of Config.Preset. It requires the adaptive codec. For a fixed number of
	// calls per payload, tag all fields urgent=false.
	Delay DelayPolicy
}

func (cfg BindConfig) withDefaults(conn *Config, rateHz float64) (BindConfig, error) {
	if err := cfg.Delay.check(&cfg, rateHz, conn.Tuning.Codec); err != nil {
		return cfg, err
	}
	if (cfg.Delay == DelayPolicy{}) && !cfg.Reliable && conn.Tuning.Codec == rpcdelta.Adaptive {
		cfg.Delay = conn.Preset.DelayPolicy
	}
	return cfg, nil
}
