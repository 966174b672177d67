// Package peer holds what users would pick instead of this project's codecs, each behind one interface: compressors on
// the differences of frames, serializers of whole calls, and the schemes of engines. None is a copy of somebody's code;
// where one differs from what it stands for, its file says so.
package peer
