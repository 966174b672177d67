// The public headers, included after names that Windows, X11, Unreal Engine, Qt and others define as macros,
// and after the standard headers that they use.
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
#define Success ANOTHER_Success
#define Always ANOTHER_Always
#define True ANOTHER_True
#define False ANOTHER_False
#define Above ANOTHER_Above
#define Below ANOTHER_Below
#define Convex ANOTHER_Convex
#define Complex ANOTHER_Complex
#define Nonconvex ANOTHER_Nonconvex
#define CurrentTime ANOTHER_CurrentTime
#define KeyPress ANOTHER_KeyPress
#define KeyRelease ANOTHER_KeyRelease
#define ButtonPress ANOTHER_ButtonPress
#define FocusIn ANOTHER_FocusIn
#define FocusOut ANOTHER_FocusOut
#define Expose ANOTHER_Expose
#define GrayScale ANOTHER_GrayScale
#define Unsorted ANOTHER_Unsorted
#define YSorted ANOTHER_YSorted
#define ControlMask ANOTHER_ControlMask
#define CursorShape ANOTHER_CursorShape
#define FontChange ANOTHER_FontChange
#define InputFocus ANOTHER_InputFocus
#define Button1 ANOTHER_Button1
#define NotUseful ANOTHER_NotUseful
#define WhenMapped ANOTHER_WhenMapped
#define FirstExtensionError ANOTHER_FirstExtensionError
#define CreateWindow ANOTHER_CreateWindow
#define DrawText ANOTHER_DrawText
#define LoadImage ANOTHER_LoadImage
#define CopyFile ANOTHER_CopyFile
#define DeleteFile ANOTHER_DeleteFile
#define MoveFile ANOTHER_MoveFile
#define GetMessage ANOTHER_GetMessage
#define PostMessage ANOTHER_PostMessage
#define ReportEvent ANOTHER_ReportEvent
#define CreateEvent ANOTHER_CreateEvent
#define OpenEvent ANOTHER_OpenEvent
#define GetClassName ANOTHER_GetClassName
#define GetUserName ANOTHER_GetUserName
#define SetPort ANOTHER_SetPort
#define AddPort ANOTHER_AddPort
#define GetCurrentTime ANOTHER_GetCurrentTime
#define GetFreeSpace ANOTHER_GetFreeSpace
#define CreateMutex ANOTHER_CreateMutex
#define FindText ANOTHER_FindText
#define ReplaceText ANOTHER_ReplaceText
#define RegisterClass ANOTHER_RegisterClass
#define DefineDosDevice ANOTHER_DefineDosDevice
#define GetJob ANOTHER_GetJob
#define GetProp ANOTHER_GetProp
#define SetProp ANOTHER_SetProp
#define StartDoc ANOTHER_StartDoc
#define CreateService ANOTHER_CreateService
#define PlaySound ANOTHER_PlaySound
#define nil ANOTHER_nil
#define Nil ANOTHER_Nil
#define YES ANOTHER_YES
#define NO ANOTHER_NO
#define require ANOTHER_require
#define Yield()
#define major(device) ((device) >> 8)
#define minor(device) ((device)&255)
#define makedev(major_part, minor_part) 0
#undef linux
#undef unix
#define linux 1
#define unix 1
#define cdecl
#define stdcall
#define CONST const
#define VOID void
#define DOMAIN 1
#define OVERFLOW 3
#define UNDERFLOW 4
#define STRICT 1
#define IGNORE 0
#define INFINITE 0xFFFFFFFF
#define ABSOLUTE 1
#define RELATIVE 2
#define MB_OK 0
#define BOOL int
#define INDEX_NONE -1
#define FORCEINLINE inline
#define checkSlow(expression)
#define checkNoEntry()
#define ensureMsgf(expression, ...) (!!(expression))
#define LIKELY(x) (!!(x))
#define UNLIKELY(x) (!!(x))
#define PURE_VIRTUAL(function, ...)                                                                          \
  { __VA_ARGS__ }
#define UPROPERTY(...)
#define UFUNCTION(...)
#define UCLASS(...)
#define USTRUCT(...)
#define GENERATED_BODY(...)
#define UE_LOG(...)
#define foreach for
#define forever for (;;)

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
