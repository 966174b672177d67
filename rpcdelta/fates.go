package rpcdelta

// Fates counts what became of what an encoder sent, as far as acks have told. What
// was on its way when an epoch ended stays unknown and is not counted.
type Fates struct {
	// Processed and Lost count payloads: a lost one never came, or came too late. Those
	// lost before anything of an epoch came are not counted.
	Processed, Lost uint64
	// Delivered and Missed count frames: those that the decoder gave out in order, and
	// those between them of which no copy came in time.
	Delivered, Missed uint64
}

// Add adds all that o counted.
func (f *Fates) Add(o *Fates) {
	f.Processed += o.Processed
	f.Lost += o.Lost
	f.Delivered += o.Delivered
	f.Missed += o.Missed
}

// Fates is what became of payloads and frames so far. A reliable encoder has no
// acks, and knows of none.
func (e *Encoder) Fates() Fates { return e.fates }
