// Package predict is client-side prediction: a client applies its own inputs at once, and corrects
// the result when the server's state arrives. A [Predictor] keeps the inputs that the server has
// not processed. When a state of the server comes with the last input processed in it, the
// Predictor goes back to that state and applies the later inputs again. The displayed state then
// differs from the prediction only if the server decided otherwise, or lost an input.
//
// The package has no clock, no goroutine and no network: the game passes inputs and states. See
// docs/prediction.md.
package predict
