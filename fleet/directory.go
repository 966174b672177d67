package fleet

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"regexp"
	"slices"
	"time"

	"github.com/uplink-rpc/uplink/token"
)

// Server is an entry of the directory. [Server.Check] states the limits of its fields.
type Server struct {
	// Name identifies the server: see [CheckName].
	Name string `json:"name"`
	// Addrs are the addresses that clients dial and tokens name.
	Addrs []netip.AddrPort `json:"addrs"`
	// Route is the route id that tokens for the server must have; see token.Claims.Route.
	Route []byte `json:"route,omitempty"`
	// Key is the id of the key with which tokens for the server are issued.
	Key string `json:"key,omitempty"`
	// Players is the current and MaxPlayers the maximum number of players.
	Players    int `json:"players"`
	MaxPlayers int `json:"max_players"`
	// Started is when the process began to announce the server. With it, the directory tells two
	// servers with the same name apart: see [Server.CheckOwner].
	Started time.Time `json:"started,omitzero"`
	// Draining reports whether the server accepts no new players.
	Draining bool `json:"draining,omitempty"`
	// OutageSeconds is the time for which the server admits players while the store fails; see
	// [Config.Outage].
	OutageSeconds int `json:"outage_seconds,omitempty"`
	// Labels are for the game, such as region or map.
	Labels map[string]string `json:"labels,omitempty"`
	// Updated is the time at which the store received the last Announce, by the store's clock.
	// Announce ignores it.
	Updated time.Time `json:"updated"`
}

// MaxServers is the maximum number of servers in the directory.
const MaxServers = 1 << 12

// Limits of the fields of a Server.
const (
	maxPlayers = 1 << 20
	maxOutage  = 1 << 30          // seconds
	maxAddrs   = token.MaxServers // a token names no more
	maxLabels  = 32
	// maxLabelName and maxLabelValue are in bytes.
	maxLabelName, maxLabelValue = 63, 256
)

// ErrInvalid means that the directory does not accept an entry, although the store works.
var ErrInvalid = errors.New("fleet: the directory does not accept the server")

// ErrTaken means that another server has the name of this one. It is an ErrInvalid.
var ErrTaken = fmt.Errorf("%w: another server has its name", ErrInvalid)

var (
	nameFormat = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,63}$`)
	keyFormat  = regexp.MustCompile(`^([0-9a-f]{8})?$`)
)

// CheckName returns an error unless a server's name has 1 to 63 letters, digits, hyphens and
// underscores.
func CheckName(name string) error {
	if !nameFormat.MatchString(name) {
		return fmt.Errorf("the name %.80q: want 1 to 63 letters, digits, hyphens and underscores", name)
	}
	return nil
}

// Check returns an error that wraps [ErrInvalid] and names the field and its limit unless all
// fields are within their limits: at most [token.MaxServers] addresses, 2^20 players, and 32 labels
// of 63 bytes with values of 256. Stores check each server that is announced.
func (s *Server) Check() error {
	invalid := func(field, format string, args ...any) error {
		return fmt.Errorf("%w: %s: %s", ErrInvalid, field, fmt.Sprintf(format, args...))
	}
	if err := CheckName(s.Name); err != nil {
		return invalid("name", "%v", err)
	}
	switch {
	case len(s.Addrs) > maxAddrs:
		return invalid("addrs", "%d addresses, want at most %d", len(s.Addrs), maxAddrs)
	case len(s.Route) > token.MaxRoute:
		return invalid("route", "%d bytes, want at most %d", len(s.Route), token.MaxRoute)
	case !keyFormat.MatchString(s.Key):
		return invalid("key", "%.80q, want 8 hexadecimal digits or nothing", s.Key)
	case s.Players < 0 || s.Players > maxPlayers:
		return invalid("players", "%d, want 0 to %d", s.Players, maxPlayers)
	case s.MaxPlayers < 0 || s.MaxPlayers > maxPlayers:
		return invalid("max_players", "%d, want 0 to %d", s.MaxPlayers, maxPlayers)
	case s.OutageSeconds < 0 || s.OutageSeconds > maxOutage:
		return invalid("outage_seconds", "%d, want 0 to %d", s.OutageSeconds, maxOutage)
	case len(s.Labels) > maxLabels:
		return invalid("labels", "%d labels, want at most %d", len(s.Labels), maxLabels)
	}
	for _, a := range s.Addrs {
		if ip := a.Addr().Unmap(); !ip.IsValid() || ip.Zone() != "" || ip.IsUnspecified() || ip.IsMulticast() || a.Port() == 0 {
			return invalid("addrs", "%v, want an IP address without a zone that clients can dial, and a port", a)
		}
	}
	for name, value := range s.Labels {
		if name == "" || len(name) > maxLabelName || len(value) > maxLabelValue {
			return invalid("labels", "the label %.80q has %d bytes and a value of %d, want names of 1 to %d and values of at most %d",
				name, len(name), len(value), maxLabelName, maxLabelValue)
		}
	}
	return nil
}

// CheckOwner returns an error that wraps [ErrTaken] if the entry that the directory has under the
// name of this server belongs to another one. A server at the same addresses that started later
// takes the entry over: it is the same server after a restart.
func (s *Server) CheckOwner(entry Server) error {
	switch {
	case s.Started.IsZero(), entry.Started.IsZero(), s.Started.Equal(entry.Started):
		return nil
	case slices.Equal(s.Addrs, entry.Addrs) && s.Started.After(entry.Started):
		return nil
	}
	return fmt.Errorf("%w: %s is the server at %v, started at %s: give each server a name of its own; the name of a killed one is free after %v",
		ErrTaken, s.Name, entry.Addrs, entry.Started.UTC().Format(time.RFC3339), ServerTTL)
}

// CheckRoom returns an error that wraps [ErrInvalid] if a directory that contains others other
// servers has no room for this one.
func (s *Server) CheckRoom(others int) error {
	if others >= MaxServers {
		return fmt.Errorf("%w: %s: the directory has %d servers, its maximum", ErrInvalid, s.Name, MaxServers)
	}
	return nil
}

// Full reports whether a server accepts no new players.
func (s *Server) Full() bool { return s.Draining || s.Players >= s.MaxPlayers || len(s.Addrs) == 0 }

// Choose returns a random server among those that accept players and for which suitable, if not
// nil, reports true. The probability is proportional to the server's free capacity. Choosing the
// server with the most free capacity would send it all players who join within the seconds for
// which the directory may be out of date. Servers with fields outside their limits are not chosen.
// Choose reports false if there is none.
func Choose(servers []Server, suitable func(*Server) bool) (chosen Server, ok bool) {
	room := uint64(0) // at most maxPlayers per server
	for i := range servers {
		s := &servers[i]
		if s.Full() || s.Check() != nil || suitable != nil && !suitable(s) {
			continue
		}
		own := uint64(s.MaxPlayers - s.Players)
		if room += own; rand.Uint64N(room) < own {
			chosen, ok = *s, true
		}
	}
	return chosen, ok
}
