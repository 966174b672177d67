package web

import (
	"encoding/json"

	"github.com/uplink-rpc/uplink/examples/cubes/world"
)

const (
	// MaxViewers is the maximum number of concurrent viewers.
	MaxViewers = 16
	// backlog is the number of messages queued for a viewer.
	backlog = 120
	// figuresInterval is the number of ticks between two messages with figures.
	figuresInterval = world.TickRate / 2
)

// Message is a message for a viewer: a binary picture, or figures in JSON.
type Message struct {
	Text     bool
	Contents []byte
}

// Viewer receives the pictures and figures of a Live.
type Viewer struct {
	// Messages is closed after RemoveViewer or if the viewer is too slow.
	Messages  chan Message
	needsFull bool // the next picture must be complete
}

// AddViewer returns a new viewer, or nil if there are MaxViewers already. The caller must call
// RemoveViewer.
func (l *Live) AddViewer() *Viewer {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.viewers) == MaxViewers {
		return nil
	}
	v := &Viewer{Messages: make(chan Message, backlog), needsFull: true}
	l.viewers[v] = struct{}{}
	return v
}

// RemoveViewer removes a viewer. It may be called more than once.
func (l *Live) RemoveViewer(v *Viewer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drop(v)
}

func (l *Live) drop(v *Viewer) {
	if _, in := l.viewers[v]; in {
		delete(l.viewers, v)
		close(v.Messages)
	}
}

// Figures are the measurements of the last half second; see session.Meter.
type Figures struct {
	Kbits    float64 `json:"kbits"`
	Packets  float64 `json:"packets"`  // datagrams per second
	Error    float64 `json:"error"`    // cm, mean
	ErrorP99 float64 `json:"errorP99"` // cm
	Turn     float64 `json:"turn"`     // degrees
	Pops     int     `json:"pops"`
	Delay    float64 `json:"delay"`   // ms
	Updates  float64 `json:"updates"` // cubes per second
	Wait     int     `json:"wait"`    // ticks, longest time between two updates of a cube
	Moving   int     `json:"moving"`
	RTT      float64 `json:"rtt"` // ms, measured by the client
	// UpKbits is the bandwidth that the client uses, in kbit/s.
	UpKbits  float64  `json:"upKbits"`
	Settings Settings `json:"settings"`
}

// broadcast sends the changed cubes to all viewers, and figures every figuresInterval ticks.
func (l *Live) broadcast() {
	s := l.session
	var server world.Visual
	left := func(n int) *world.Visual {
		server.FromBody(&s.Bodies()[n])
		return &server
	}
	right := func(n int) *world.Visual {
		if !s.Drawing {
			return left(n)
		}
		return &s.Drawn[n]
	}
	picture := l.shown.update(nil, 0, left)
	picture = l.shown.update(picture, 1, right)
	var whole []byte
	for v := range l.viewers {
		if !v.needsFull {
			l.send(v, Message{Contents: picture})
			continue
		}
		if v.needsFull = false; whole == nil {
			whole = l.shown.all(nil)
		}
		l.send(v, Message{Contents: whole})
	}
	if l.session.Meter.Ticks >= figuresInterval {
		figures := Message{Text: true, Contents: l.figures()}
		for v := range l.viewers {
			l.send(v, figures)
		}
		l.session.Meter.Reset()
	}
}

// send queues a message for a viewer. A viewer whose queue is full is removed; its page reconnects.
func (l *Live) send(v *Viewer, m Message) {
	select {
	case v.Messages <- m:
	default:
		l.drop(v)
	}
}

func (l *Live) figures() []byte {
	m, up := &l.session.Meter, l.steering.conn.Stats()
	const cm = 100
	f := Figures{
		Kbits: m.Kbits(), Packets: float64(m.Datagrams) / m.Seconds(),
		Error: cm * m.Position.Mean(), ErrorP99: cm * m.Position.Quantile(0.99), Turn: m.Turn.Mean(),
		Pops: m.Pops, Delay: m.MeanDelay().Seconds() * 1000, Updates: float64(m.Updates) / m.Seconds(), Wait: m.Wait,
		RTT: up.RTT.Seconds() * 1000, UpKbits: up.SentBitsPerSecond / 1000, Settings: l.settings,
	}
	for i := range l.session.Bodies() {
		if l.session.Bodies()[i].Moving() {
			f.Moving++
		}
	}
	b, err := json.Marshal(f)
	if err != nil {
		panic(err) // JSON cannot represent infinities or NaN
	}
	return b
}
