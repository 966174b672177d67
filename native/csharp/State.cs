// State synchronization for C#, which calls a shared library built with UPLINK_CLIENT. It needs Worlds.cs.
// include/uplink/state.hpp and state_world.hpp state units, ranges and limits.
using System;
using System.Collections.Generic;
using System.Runtime.InteropServices;

namespace Uplink
{
    /// <summary>Limits of a receiver; 0 means the default. Rest is the name of the integer field whose value
    /// is above its minimum while an object is at rest, or null.</summary>
    public sealed class StateConfig
    {
        public string Rest;
        public int Objects, Updates, InputBytes;
    }

    /// <summary>A decoded packet, valid during the event Updated.</summary>
    [StructLayout(LayoutKind.Sequential)]
    public struct StateUpdate
    {
        public ulong Number;
        public long Tick;
        UIntPtr objects, inputs;
        int late, first;

        public int Objects { get { return (int)objects; } }
        public int Inputs { get { return (int)inputs; } }
        public bool Late { get { return late != 0; } }
        public bool First { get { return first != 0; } }
    }

    public struct StateObject
    {
        public int Id;
        public int Generation;
        public bool Removed;
    }

    public struct PlayerInput
    {
        public int Player;
        public byte[] Data;
    }

    static class NativeState
    {
        [StructLayout(LayoutKind.Sequential)]
        internal struct Config
        {
            public IntPtr rest;
            public int objects, updates, inputBytes, reserved;
        }

        [StructLayout(LayoutKind.Sequential)]
        internal struct ObjectUpdate
        {
            public int id, generation, removed;
            public IntPtr components;
        }

        [StructLayout(LayoutKind.Sequential)]
        internal struct Inputs
        {
            public long tick;
            public IntPtr data;
            public UIntPtr size;
            public int missing, reserved;
        }

        [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
        internal delegate void Updated(IntPtr context, IntPtr world, ref StateUpdate u);

        [DllImport(Native.Library)]
        internal static extern int uplink_state_world_create(IntPtr a, IntPtr schema, ref Config c, Updated updated, IntPtr context, out IntPtr world);
        [DllImport(Native.Library)] internal static extern void uplink_state_world_destroy(IntPtr w);
        [DllImport(Native.Library)] internal static extern IntPtr uplink_state_world_receiver(IntPtr w);
        [DllImport(Native.Library)] internal static extern IntPtr uplink_state_world_base(IntPtr w);
        [DllImport(Native.Library)] internal static extern void uplink_state_receiver_object(IntPtr r, UIntPtr i, out ObjectUpdate o);
        [DllImport(Native.Library)] internal static extern int uplink_state_receiver_get(IntPtr r, UIntPtr i, IntPtr frame);
        [DllImport(Native.Library)] internal static extern void uplink_state_receiver_inputs(IntPtr r, UIntPtr i, out Inputs t);
        [DllImport(Native.Library)] internal static extern int uplink_next_input(ref Inputs t, out int player, out IntPtr data, out UIntPtr n);
    }

#if !UNITY_5_3_OR_NEWER
    // Unity's compiler for iOS and WebGL looks for this attribute by its name.
    sealed class MonoPInvokeCallbackAttribute : Attribute
    {
        public MonoPInvokeCallbackAttribute(Type type) { }
    }
#endif

    /// <summary>A world that the server offers as state.</summary>
    public sealed class StateWorld : World
    {
        // Static, so that it is not collected while the library can call it.
        static readonly NativeState.Updated updated = OnUpdated;

        GCHandle self;

        /// <summary>Called in UplinkClient.Run for each decoded packet. It must not call the client or throw.</summary>
        public event Action<StateWorld, StateUpdate> Updated;

        public StateWorld(Schema objects, StateConfig config = null)
        {
            config = config ?? new StateConfig();
            var c = new NativeState.Config { objects = config.Objects, updates = config.Updates, inputBytes = config.InputBytes };
            self = GCHandle.Alloc(this, GCHandleType.Weak);
            int e;
            using (var texts = new Texts())
            {
                c.rest = texts.Add(config.Rest);
                e = NativeState.uplink_state_world_create(IntPtr.Zero, objects.Pointer, ref c, updated, GCHandle.ToIntPtr(self), out Pointer);
            }
            UplinkException.Check(e, "state");
        }

        [MonoPInvokeCallback(typeof(NativeState.Updated))]
        static void OnUpdated(IntPtr context, IntPtr world, ref StateUpdate u)
        {
            var w = GCHandle.FromIntPtr(context).Target as StateWorld;
            if (w != null && w.Updated != null) w.Updated(w, u);
        }

        IntPtr Receiver { get { return NativeState.uplink_state_world_receiver(Pointer); } }

        /// <summary>Returns updated object i, during the event Updated. If the object was not removed, it
        /// sets frame, which must have the world's schema, to its values.</summary>
        public StateObject Object(int i, Frame frame)
        {
            NativeState.ObjectUpdate o;
            NativeState.uplink_state_receiver_object(Receiver, Native.Size(i), out o);
            if (o.removed == 0)
                UplinkException.Check(NativeState.uplink_state_receiver_get(Receiver, Native.Size(i), frame.Pointer), "object " + i);
            return new StateObject { Id = o.id, Generation = o.generation, Removed = o.removed != 0 };
        }

        /// <summary>Adds the inputs of all players in a tick that no earlier packet contained to list, and
        /// returns the tick. missing is set if the server has no inputs for it.</summary>
        public long Inputs(int i, List<PlayerInput> list, out bool missing)
        {
            NativeState.Inputs t;
            NativeState.uplink_state_receiver_inputs(Receiver, Native.Size(i), out t);
            missing = t.missing != 0;
            int player;
            IntPtr data;
            UIntPtr n;
            while (NativeState.uplink_next_input(ref t, out player, out data, out n) != 0)
            {
                list.Add(new PlayerInput { Player = player, Data = Native.Copy(data, n) });
            }
            return t.tick;
        }

        internal override IntPtr Base { get { return NativeState.uplink_state_world_base(Pointer); } }

        internal override void Destroy(IntPtr pointer)
        {
            NativeState.uplink_state_world_destroy(pointer);
            if (self.IsAllocated) self.Free();
        }
    }
}
