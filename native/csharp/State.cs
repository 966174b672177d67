// State synchronization for C#, which calls a shared library built with UPLINK_CRYPTO. It needs Worlds.cs.
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
        internal uint structSize;
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

    /// <summary>The input of a player, valid during the event Updated.</summary>
    public struct PlayerInput
    {
        public int Player;
        internal Handle Owner;
        internal int Changes;
        internal IntPtr Memory;

        public int Size { get; internal set; }

        /// <summary>Copies the input to an array and returns its size.</summary>
        public int CopyTo(byte[] to)
        {
            Owner.CheckView(Changes);
            return Native.CopyTo(Memory, Size, to);
        }

        /// <summary>A copy of the input.</summary>
        public byte[] Data
        {
            get
            {
                Owner.CheckView(Changes);
                return Native.Copy(Memory, Size);
            }
        }
    }

    static class NativeState
    {
        [StructLayout(LayoutKind.Sequential)]
        internal struct Config
        {
            public uint struct_size;
            public int objects, updates, inputBytes;
            public IntPtr rest;
        }

        [StructLayout(LayoutKind.Sequential)]
        internal struct ObjectUpdate
        {
            public uint struct_size;
            public int id, generation, removed;
            public IntPtr components;
        }

        [StructLayout(LayoutKind.Sequential)]
        internal struct Inputs
        {
            public uint struct_size;
            public int missing;
            public long tick;
            public IntPtr data;
            public UIntPtr size;
        }

        [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
        internal delegate void Updated(IntPtr context, IntPtr world, ref StateUpdate u);

        [DllImport(Native.Library)]
        internal static extern int uplink_state_world_create(IntPtr a, Schema s, ref Config c, Updated updated, IntPtr context, out IntPtr world);
        [DllImport(Native.Library)] internal static extern void uplink_state_world_destroy(IntPtr w);
        [DllImport(Native.Library)] internal static extern IntPtr uplink_state_world_receiver(StateWorld w);
        [DllImport(Native.Library)] internal static extern IntPtr uplink_state_world_base(StateWorld w);
        [DllImport(Native.Library)] internal static extern void uplink_state_receiver_object(IntPtr r, UIntPtr i, ref ObjectUpdate o);
        [DllImport(Native.Library)] internal static extern int uplink_state_receiver_get(IntPtr r, UIntPtr i, Frame f);
        [DllImport(Native.Library)] internal static extern void uplink_state_receiver_inputs(IntPtr r, UIntPtr i, ref Inputs t);
        [DllImport(Native.Library)] internal static extern int uplink_next_input(ref Inputs t, out int player, out IntPtr data, out UIntPtr n);
    }

    /// <summary>A world that the server offers as state.</summary>
    public sealed class StateWorld : ClientWorld
    {
        // Static, so that it is not collected while the library can call it.
        static readonly NativeState.Updated updated = OnUpdated;

        GCHandle self;
        int objects, inputs; // counts of the update that is passed to Updated, otherwise 0

        /// <summary>Called in UplinkClient.Run for each decoded packet. It must not call the client. If it
        /// throws, Run processes the remaining datagrams and then throws the exception.</summary>
        public event Action<StateWorld, StateUpdate> Updated;

        public StateWorld(Schema objects, StateConfig config = null)
        {
            config = config ?? new StateConfig();
            var c = new NativeState.Config
            {
                struct_size = Layout<NativeState.Config>.Size, objects = config.Objects, updates = config.Updates, inputBytes = config.InputBytes
            };
            self = GCHandle.Alloc(this, GCHandleType.Weak);
            IntPtr pointer;
            int e;
            using (var texts = new Texts())
            {
                c.rest = texts.Add(config.Rest);
                e = NativeState.uplink_state_world_create(IntPtr.Zero, objects, ref c, updated, GCHandle.ToIntPtr(self), out pointer);
            }
            if (e != 0) self.Free();
            UplinkException.Check(e, "state");
            Created(pointer, objects);
        }

#if UNITY_5_3_OR_NEWER
        [AOT.MonoPInvokeCallback(typeof(NativeState.Updated))] // for ahead-of-time compilers
#endif
        static void OnUpdated(IntPtr context, IntPtr world, ref StateUpdate u)
        {
            var w = GCHandle.FromIntPtr(context).Target as StateWorld;
            if (w == null || w.Updated == null) return;
            w.objects = u.Objects;
            w.inputs = u.Inputs;
            try { w.Updated(w, u); }
            catch (Exception e) { w.Thrown = w.Thrown ?? e; } // an exception must not unwind through the library
            w.objects = w.inputs = 0;
            w.Changes++;
        }

        /// <summary>Returns updated object i, during the event Updated. If the object was not removed, it
        /// sets frame, which must have the world's schema, to its values.</summary>
        public StateObject Object(int i, Frame frame)
        {
            IntPtr receiver = NativeState.uplink_state_world_receiver(this);
            if (i < 0 || i >= objects) throw new ArgumentOutOfRangeException("i");
            var o = new NativeState.ObjectUpdate { struct_size = Layout<NativeState.ObjectUpdate>.Size };
            NativeState.uplink_state_receiver_object(receiver, Native.Size(i), ref o);
            if (o.removed == 0)
                UplinkException.Check(NativeState.uplink_state_receiver_get(receiver, Native.Size(i), frame), "object", i);
            GC.KeepAlive(this);
            return new StateObject { Id = o.id, Generation = o.generation, Removed = o.removed != 0 };
        }

        /// <summary>Adds the inputs of all players in a tick that no earlier packet contained to list, and
        /// returns the tick. missing is set if the server has no inputs for it.</summary>
        public long Inputs(int i, List<PlayerInput> list, out bool missing)
        {
            IntPtr receiver = NativeState.uplink_state_world_receiver(this);
            if (i < 0 || i >= inputs) throw new ArgumentOutOfRangeException("i");
            var t = new NativeState.Inputs { struct_size = Layout<NativeState.Inputs>.Size };
            NativeState.uplink_state_receiver_inputs(receiver, Native.Size(i), ref t);
            missing = t.missing != 0;
            int player;
            IntPtr data;
            UIntPtr n;
            while (NativeState.uplink_next_input(ref t, out player, out data, out n) != 0)
            {
                list.Add(new PlayerInput { Player = player, Owner = this, Changes = Changes, Memory = data, Size = (int)n });
            }
            GC.KeepAlive(this);
            return t.tick;
        }

        internal override IntPtr Base { get { return NativeState.uplink_state_world_base(this); } }

        internal override void Destroy(IntPtr pointer)
        {
            NativeState.uplink_state_world_destroy(pointer);
            self.Free();
        }
    }
}
