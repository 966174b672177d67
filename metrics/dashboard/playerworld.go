package dashboard

// worldCounts are the counts of a world of one player since it was offered.
type worldCounts struct{ messages, bits, keyframes, sharing, acked, unsent, resets uint64 }

// trackedWorld is a world as one player receives it.
type trackedWorld struct {
	name             string
	tickHz           float64
	ready            bool
	objects, waiting int
	baseline, ack    uint64 // age in ticks

	counts [recent + 1]worldCounts // ring of the counts of the last steps
	steps  int
}

// sum returns the counts of the last seconds, and their number.
func (w *trackedWorld) sum() (c worldCounts, seconds int) {
	seconds = min(w.steps-1, recent)
	if seconds < 1 {
		return c, 0
	}
	now, then := &w.counts[(w.steps-1)%len(w.counts)], &w.counts[(w.steps-1-seconds)%len(w.counts)]
	return worldCounts{
		since(now.messages, then.messages), since(now.bits, then.bits), since(now.keyframes, then.keyframes), since(now.sharing, then.sharing),
		since(now.acked, then.acked), since(now.unsent, then.unsent), since(now.resets, then.resets),
	}, seconds
}

// ms returns a time in ticks in milliseconds.
func (w *trackedWorld) ms(ticks uint64) figure { return figure(float64(ticks) / w.tickHz * 1000) }

// playerWorld contains the figures of a world of one player: means of the last ten seconds, and the
// present state.
type playerWorld struct {
	Name     string `json:"name"`
	Ready    bool   `json:"ready"` // the client has subscribed
	Bits     figure `json:"bits"`  // per second, with all headers down to IP
	Messages figure `json:"messages"`
	Acked    figure `json:"acked"`    // share of the messages
	Keyframe figure `json:"keyframe"` // likewise
	Sharing  figure `json:"sharing"`  // players who share an encoding
	Objects  int    `json:"objects"`
	Waiting  int    `json:"waiting"`
	Unsent   uint64 `json:"unsent"`
	Resets   uint64 `json:"resets"`

	Baseline   uint64 `json:"baseline"` // age in ticks
	Ack        uint64 `json:"ack"`      // likewise
	BaselineMs figure `json:"baseline_ms"`
	AckMs      figure `json:"ack_ms"`
}

func newPlayerWorld(w *trackedWorld) playerWorld {
	c, n := w.sum()
	return playerWorld{
		Name: w.name, Ready: w.ready, Bits: figure(float64(c.bits) / float64(n)), Messages: figure(float64(c.messages) / float64(n)),
		Acked: min(1, share(c.acked, c.messages)), Keyframe: share(c.keyframes, c.messages), Sharing: share(c.sharing, c.messages),
		Objects: w.objects, Waiting: w.waiting, Unsent: c.unsent, Resets: c.resets,
		Baseline: w.baseline, Ack: w.ack, BaselineMs: w.ms(w.baseline), AckMs: w.ms(w.ack),
	}
}
