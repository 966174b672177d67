// Package adaptive codes frames of quantized components by prediction and adaptive arithmetic
// coding. docs/spec/adaptive.md specifies the format.
//
// # Coding
//
// A [Model] is compiled from the fields of a frame: one group per field, ordered so that a field
// follows the fields that predict it. A payload is coded in these steps, in the same order by the
// encoder and the decoder:
//
//  1. payloadCodec codes the number of frames, then each frame against its reference: the baseline
//     for the first frame, the previous frame for the others. A frame without a reference is a
//     keyframe, which has a static code.
//  2. refFrames collects the frames that predictions read: the reference and up to five older ones.
//  3. Each group has a flag, whether it differs from its reference. Its probability is a logistic
//     function of a few earlier flags and changes.
//  4. Each component of a changed group is predicted as an offset from its reference: a weighted
//     sum of features, such as the component's slope or its derivative's mean. A component has up
//     to four experts (sets of features) and uses the one that had the smallest errors. A
//     quaternion is predicted as a rotation and coded as the smallest three of its elements.
//  5. The residual, the difference from the prediction, is coded by a symbol and raw bits. The
//     component's errors so far give the expected magnitude of the residual. It is adjusted by the
//     contexts: the previous residual of the field, how much earlier residuals of the frame
//     exceeded their expectation, and the size of the predicted offset. The adjusted magnitude
//     selects one of 48 frequency tables, from one of three sets that differ in the weight of their
//     tails.
//
// # Learning
//
// All that adapts is in a [State]. It is a function of the accepted frames in their order, and of
// nothing else: coding a payload does not change it. The decoder accepts a frame when it receives
// it; the encoder learns from acks which frames the decoder has accepted. Both keep these frames in
// a [Frames] ring and learn them when they, or newer ones, become a baseline. A payload is coded
// from the state at its baseline, so that packet loss, reordering and late acks cannot
// desynchronize the two ends. Learning repeats the coding of a frame against an older one and
// updates weights, expert costs, error scales, tables in use and probabilities. All arithmetic is
// in integers, so that the ends agree on every platform.
//
// A stream starts from a [Prior]: the frequency tables and the initial state. [Train] makes one
// from recordings.
//
// # Files
//
//   - field.go, model.go: the fields of a frame and the compiled model
//   - codec.go, codec_frame.go, codec_keyframe.go, payload.go: the coding of a payload
//   - frames.go, refframes.go: the accepted frames and those that predictions read
//   - refframes_predict.go, orientation.go: predictions
//   - bitmodels.go, magnitude.go, tables.go: probabilities and contexts, with their updates
//   - modelstate.go, learn.go: learned state and its updates
//   - prior.go, params.go, train.go: priors and their training
package adaptive
