package udp

// maxBatch is how many datagrams one system call reads or writes at most.
const maxBatch = 256

// ReadBatch waits for at least one datagram, and reads those that wait already, at most len(into). It sets N
// and Addr of each of the n that it returns; otherwise it is as ReadFrom. It keeps the memory of into until
// the next call.
func (b *batcher) ReadBatch(into []Datagram) (n int, err error) {
	if len(into) == 0 {
		return 0, nil
	}
	for {
		n, err = b.readBatch(into[:min(len(into), maxBatch)])
		if err == nil || !transient(err) {
			return n, err
		}
	}
}

// WriteBatch sends the datagrams in order and returns how many it has sent. If these are not all, the error is
// about the next one, which was not sent; the caller may go on behind it. It does not wait for the network,
// only for room in the kernel's buffer.
func (b *batcher) WriteBatch(out []Datagram) (sent int, err error) {
	for sent < len(out) {
		n, err := b.writeBatch(out[sent:min(len(out), sent+maxBatch)])
		sent += n
		if err != nil {
			return sent, err
		}
	}
	return sent, nil
}
