package rpcdelta

// Vec2 is a point or vector in the plane. A field of this type needs
// resolution=.
type Vec2 struct{ X, Y float64 }

// Vec3 is a point or vector in space. A field of this type needs resolution=.
type Vec3 struct{ X, Y, Z float64 }

// UnitVec is a direction; it need not come normalized, and leaves with length
// 1. bits= is the size of each of its two components (default 12).
type UnitVec struct{ X, Y, Z float64 }

// Quat is a rotation; it need not come normalized, and leaves with length 1 and
// its largest component positive. bits= is the size of each of its smallest
// three (default 12).
type Quat struct{ X, Y, Z, W float64 }

// Rotator is a rotation as three angles in degrees. They wrap, and leave as
// -180 up to, not including, 180. bits= divides the turn (default 16).
type Rotator struct{ Pitch, Yaw, Roll float64 }

// Angle is one angle in degrees. It wraps, and leaves as -180 up to, not
// including, 180. bits= divides the turn (default 16).
type Angle float64
