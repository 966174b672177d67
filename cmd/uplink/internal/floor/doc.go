// Package floor asks how few bits a frame of a trace could take. It is no codec: it sees the whole trace, the frames
// after each one too, and sends nothing of what it has fitted. What it finds is what a codec of the same kind, a weighted
// sum of features with noise of a slowly changing width, would need if it knew all that in advance. Causal, the weights
// are fitted to the frames before each one alone, however long that takes, and widths come from the past: the shape of
// the noise and the chances of flags stay fitted in hindsight. See docs/codec.md.
package floor
