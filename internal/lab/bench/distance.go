package bench

// atDistance gives the encoder the ack of frame n-Distance before it codes frame n, which so has just that frame as
// its baseline.
func (p *pair) atDistance() error {
	acks := make([][]byte, p.frames)
	for n := range p.frames {
		if n >= p.cfg.Distance {
			if err := p.takeAck(acks[n-p.cfg.Distance], n); err != nil {
				return err
			}
		}
		message, err := p.encode(n)
		if err != nil {
			return err
		}
		p.decode(message)
		acks[n] = p.makeAck()
	}
	return nil
}
