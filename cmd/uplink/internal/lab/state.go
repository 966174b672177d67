package lab

import (
	"encoding/json"
	"errors"
	"net/http"
)

// maxChange is the longest body of a change in bytes.
const maxChange = 4 << 10

// Traffic is what the game's clients sent in the last second or so, in bits a second where nothing else is said.
type Traffic struct {
	Seconds float64 `json:"seconds"`
	Calls   float64 `json:"calls_per_s"`
	// Full is what the calls take as an engine packs them, without deltas: the baseline to compare with. Sent is what
	// they took, with headers of messages; around either come the headers of datagrams, seals, UDP and IP.
	Full   float64 `json:"full_bits_per_s"`
	Sent   float64 `json:"sent_bits_per_s"`
	Around float64 `json:"around_bits_per_s"`
	// Delivered is the share of frames that arrived, of those that were given up or arrived.
	Delivered float64 `json:"delivered"`
	// RTT is the mean of the round trips that the clients measured last.
	RTT float64 `json:"rtt_ms"`
	// Redundancy is the most older payloads that ride along with a client's now.
	Redundancy int `json:"redundancy"`
	// Mismatches counts the frames since the start that differ from the recording.
	Mismatches uint64 `json:"mismatches"`
	// Switched of the Clients have the codec that was chosen.
	Switched int `json:"switched"`
	Clients  int `json:"clients"`
}

// Actor is a recorded player.
type Actor struct {
	Name string `json:"name"`
	RPC  string `json:"rpc"`
}

// state is what GET state answers.
type state struct {
	Settings values  `json:"settings"`
	Limits   Limits  `json:"limits"`
	Traffic  Traffic `json:"traffic"`
	Actors   []Actor `json:"actors"`
}

func (l *Lab) state() state {
	return state{
		Settings: l.game.Settings().values(), Limits: limits,
		Traffic: l.game.Traffic(), Actors: l.stage.Actors(),
	}
}

func (l *Lab) getState(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(l.state()) // who has gone needs no answer
}

func (l *Lab) postState(w http.ResponseWriter, r *http.Request) {
	v, err := parseChange(http.MaxBytesReader(w, r.Body, maxChange))
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		http.Error(w, "the body is too large: want at most 4096 bytes", http.StatusRequestEntityTooLarge)
		return
	}
	if err == nil {
		err = l.change(v)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	l.getState(w, r)
}

// change makes one change after the other, so that none undoes another.
func (l *Lab) change(v values) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, err := v.apply(l.game.Settings())
	if err != nil {
		return err
	}
	return l.game.Change(s)
}
