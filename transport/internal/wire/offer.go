package wire

// Offer is the payload of a hello's message.
type Offer struct {
	Suites uint8  // bit i: the client speaks suite i
	Token  []byte // sealed
}

// AppendOffer appends an offer.
func AppendOffer(b []byte, o Offer) []byte { return append(append(b, o.Suites), o.Token...) }

// ParseOffer reads an offer; an empty one is [ErrMalformed].
func ParseOffer(b []byte) (Offer, error) {
	if len(b) < 1 {
		return Offer{}, ErrMalformed
	}
	return Offer{Suites: b[0], Token: b[1:]}, nil
}
