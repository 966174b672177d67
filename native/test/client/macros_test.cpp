// The public headers, included after names that Windows, Unreal Engine and others define as macros, and
// after the standard headers that they use.
#include <cstddef>
#include <cstdint>
#include <stddef.h>
#include <stdint.h>

#define near
#define far
#define small char
#define hyper __int64
#define pascal
#define interface struct
#define IN
#define OUT
#define OPTIONAL
#define ERROR 0
#define DELETE 0x00010000
#define NO_ERROR 0
#define TRUE 1
#define FALSE 0
#define min(a, b) ((a) < (b) ? (a) : (b))
#define max(a, b) ((a) > (b) ? (a) : (b))
#define GetObject GetObjectW
#define SendMessage SendMessageW
#define check(expression)                                                                                    \
  {}
#define checkf(expression, ...)                                                                              \
  {}
#define verify(expression)                                                                                   \
  {}
#define ensure(expression) (!!(expression))
#define TEXT(x) L##x
#define PI 3.14f
#define UI UI_ST
#define emit
#define slots
#define signals public
#define None 0L
#define Bool int
#define Status int

#include "uplink/client.hpp"
#include "uplink/clock.hpp"
#include "uplink/codec.hpp"
#include "uplink/interpolate.hpp"
#include "uplink/loop.hpp"
#include "uplink/objects.hpp"
#include "uplink/predict.hpp"
#include "uplink/smoother.hpp"
#include "uplink/snapshot_world.hpp"
#include "uplink/socket.hpp"
#include "uplink/state_world.hpp"
#include "uplink/uplink.h"
#include "uplink/uplink_state.h"
#include "uplink/uplink_worlds.h"
#include "uplink/world.hpp"

static_assert(sizeof(uplink::Pose) == sizeof(uplink_pose), "one layout");
