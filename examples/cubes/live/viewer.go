package live

import (
	"encoding/json"

	"github.com/uplink-rpc/uplink/examples/cubes/game"
)

const (
	// MaxViewers is how many may look at a time.
	MaxViewers = 16
	// backlog is how many messages may wait for a viewer.
	backlog = 120
	// tellEvery is how many ticks lie between two figures.
	tellEvery = game.Rate / 2
)

// Message is one for a viewer: a picture, or figures in JSON.
type Message struct {
	Text     bool
	Contents []byte
}

// Viewer is somebody who looks.
type Viewer struct {
	// Messages are for it, closed when it was too slow.
	Messages <-chan Message
	messages chan Message
	fresh    bool // it needs the whole picture
}

// Look adds a viewer, until Leave, or gives nil if there are too many.
func (l *Live) Look() *Viewer {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.viewers) == MaxViewers {
		return nil
	}
	c := make(chan Message, backlog)
	v := &Viewer{Messages: c, messages: c, fresh: true}
	l.viewers[v] = struct{}{}
	return v
}

// Leave takes a viewer out.
func (l *Live) Leave(v *Viewer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drop(v)
}

func (l *Live) drop(v *Viewer) {
	if _, in := l.viewers[v]; in {
		delete(l.viewers, v)
		close(v.messages)
	}
}

// Figures are what was measured in the last half of a second, as package session does.
type Figures struct {
	Tick     int     `json:"tick"`
	Kbits    float64 `json:"kbits"`
	Packets  float64 `json:"packets"`  // datagrams a second
	Error    float64 `json:"error"`    // cm, mean of cubes that move
	ErrorP99 float64 `json:"errorP99"` // cm
	ErrorMax float64 `json:"errorMax"` // cm
	Turn     float64 `json:"turn"`     // degrees
	Pops     int     `json:"pops"`
	Delay    float64 `json:"delay"`   // ms
	Updates  float64 `json:"updates"` // cubes a second
	Wait     int     `json:"wait"`    // ticks, since the longest update of a cube
	Refused  int     `json:"refused"`
	Moving   int     `json:"moving"`
	RTT      float64 `json:"rtt"` // ms, as the client measures it
	// UpKbits is what the client sends, with the RPC.
	UpKbits  float64  `json:"upKbits"`
	Settings Settings `json:"settings"`
}

// show sends viewers what changed, and figures from time to time.
func (l *Live) show() {
	s := l.session
	var server game.Seen
	left := func(n int) *game.Seen {
		server.See(&s.Bodies()[n])
		return &server
	}
	right := func(n int) *game.Seen {
		if !s.Shown {
			return left(n)
		}
		return &s.Drawn[n]
	}
	picture := l.shown.update(nil, 0, left, false)
	picture = l.shown.update(picture, 1, right, false)
	var whole []byte
	for v := range l.viewers {
		if !v.fresh {
			l.send(v, Message{Contents: picture})
			continue
		}
		if v.fresh = false; whole == nil {
			whole = l.shown.all(nil)
		}
		l.send(v, Message{Contents: whole})
	}
	if l.session.Meter.Ticks >= tellEvery {
		figures := Message{Text: true, Contents: l.figures()}
		for v := range l.viewers {
			l.send(v, figures)
		}
		l.session.Meter.Reset()
	}
}

// send hands a viewer a message, or lets go of one that does not keep up: it comes back by itself.
func (l *Live) send(v *Viewer, m Message) {
	select {
	case v.messages <- m:
	default:
		l.drop(v)
	}
}

func (l *Live) figures() []byte {
	m, up := &l.session.Meter, l.steering.conn.Stats()
	const cm = 100
	f := Figures{
		Tick: int(l.session.Now() / game.Tick), Kbits: m.Kbits(), Packets: float64(m.Datagrams) / m.Seconds(),
		Error: cm * m.Position.Mean(), ErrorP99: cm * m.Position.Quantile(0.99), ErrorMax: cm * m.Position.Max, Turn: m.Turn.Mean(),
		Pops: m.Pops, Delay: m.MeanDelay().Seconds() * 1000, Updates: float64(m.Updates) / m.Seconds(), Wait: m.Wait, Refused: m.Refused,
		RTT: up.RTT.Seconds() * 1000, UpKbits: up.SentBitsPerSecond / 1000, Settings: l.settings,
	}
	for i := range l.session.Bodies() {
		if l.session.Bodies()[i].Moving() {
			f.Moving++
		}
	}
	b, err := json.Marshal(f)
	if err != nil {
		panic(err) // numbers that JSON has no form for
	}
	return b
}
