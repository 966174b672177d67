package pcap

const (
	microseconds = 0xa1b2c3d4
	nanoseconds  = 0xa1b23c4d

	fileHeader   = 24
	recordHeader = 16
)

func isClassic(magic uint32) bool { return magic == microseconds || magic == nanoseconds }

// classic copies a pcap file.
func (c *rewriter) classic() error {
	if _, err := c.begin(); err != nil {
		return err
	}
	header, err := c.read(fileHeader)
	if err != nil {
		return err
	}
	link := LinkType(c.order.Uint32(header[20:])) // its upper half speaks of other things
	c.order.PutUint32(header[16:], snapLen(c.order.Uint32(header[16:])))
	if err := c.write(header); err != nil {
		return err
	}
	for {
		if more, err := c.begin(); err != nil || !more {
			return err
		}
		if err := c.classicRecord(link); err != nil {
			return err
		}
	}
}

func (c *rewriter) classicRecord(link LinkType) error {
	b, err := c.read(recordHeader)
	if err != nil {
		return err
	}
	size, length := c.order.Uint32(b[8:]), c.order.Uint32(b[12:])
	if size > maxPacket {
		return c.errorf("it says that it has %d bytes, the limit is %d", size, maxPacket)
	}
	if b, err = c.read(int(size)); err != nil {
		return err
	}
	if data := c.packet(link, b[recordHeader:], length); data != nil {
		c.order.PutUint32(b[8:], uint32(len(data)))
		c.order.PutUint32(b[12:], length+uint32(len(data))-size)
		b = append(append(c.record[:0], b[:recordHeader]...), data...)
		c.record = b
	}
	return c.write(b)
}
