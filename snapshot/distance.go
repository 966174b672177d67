package snapshot

// Distance says how many snapshots before a payload's its baseline is, 0 for none that was sent, as its header has it.
func Distance(payload []byte) (int, error) {
	h, _, err := parseHeader(payload)
	return int(h.distance), err
}
