// Worlds for C#: subscriptions of the client and their clock, and worlds as snapshots, with and without
// areas. It calls a shared library built with UPLINK_CRYPTO. The headers world.hpp, clock.hpp and
// snapshot_world.hpp in include/uplink state units, ranges and how long results are valid.
using System;
using System.Runtime.InteropServices;

namespace Uplink
{
    /// <summary>A client's estimate of the ticks of a world's server.</summary>
    [StructLayout(LayoutKind.Sequential)]
    public struct Ticks
    {
        internal uint structSize;
        public double Server, Hz;

        /// <summary>The rate of the ticks, measured over the last seconds, relative to Hz.</summary>
        public double Rate;
        public ulong OneWay, Rtt;

        /// <summary>The tick in which the server will use a call that is sent now. p is the pace of the RPC,
        /// see UplinkClient.Pace.</summary>
        public double Input(Pace p) { return Server + (Rtt / 2.0 + p.Target) / 1e9 * Hz * Rate; }

        /// <summary>The tick that interpolation with the given delay in ns shows now.</summary>
        public double Shown(ulong delay) { return Server - (OneWay * Rate + delay) / 1e9 * Hz; }
    }

    static class NativeWorlds
    {
        [StructLayout(LayoutKind.Sequential)]
        internal struct Snapshot
        {
            public uint struct_size;
            public ulong tick, received;
        }

        [DllImport(Native.Library)] internal static extern double uplink_world_ticks(IntPtr w);
        [DllImport(Native.Library)] internal static extern int uplink_world_clock(IntPtr w, ulong now, ulong minRtt, ulong rtt, ref Ticks t);
        [DllImport(Native.Library)] internal static extern int uplink_world_processed(IntPtr w, int rpc, out ulong next);
        [DllImport(Native.Library)] internal static extern int uplink_client_subscribe(UplinkClient c, byte[] name, IntPtr w, int ackHz, out int world);
        [DllImport(Native.Library)] internal static extern int uplink_client_unsubscribe(UplinkClient c, int world);
        [DllImport(Native.Library)]
        internal static extern int uplink_snapshot_world_create(IntPtr a, [In] IntPtr[] types, [In] IntPtr[] interpolation, UIntPtr n, UIntPtr maxObjects, out IntPtr world);
        [DllImport(Native.Library)] internal static extern void uplink_snapshot_world_destroy(IntPtr w);
        [DllImport(Native.Library)] internal static extern IntPtr uplink_snapshot_world_base(SnapshotWorld w);
        [DllImport(Native.Library)] internal static extern int uplink_snapshot_world_newest(SnapshotWorld w, ref Snapshot s);
        [DllImport(Native.Library)] internal static extern void uplink_snapshot_world_objects(SnapshotWorld w, UIntPtr type, ref NativeObjects.View objects);
        [DllImport(Native.Library)] internal static extern int uplink_snapshot_world_restore(SnapshotWorld w, UIntPtr type, IntPtr row, Frame f);
        [DllImport(Native.Library)] internal static extern int uplink_snapshot_world_sample(SnapshotWorld w, UIntPtr type, ulong now, ref NativeObjects.NativeSample s);
        [DllImport(Native.Library)] internal static extern void uplink_snapshot_world_interpolation(SnapshotWorld w, UIntPtr type, ref InterpolatorStats s);
    }

    /// <summary>A world of the server. A client that has subscribed to the world keeps it alive.</summary>
    public abstract class ClientWorld : Handle
    {
        /// The exception that a callback of the program has thrown in UplinkClient.Run, or null.
        internal Exception Thrown;

        /// The pointer for functions of all kinds of worlds. Keep this object alive during the call.
        internal abstract IntPtr Base { get; }

        /// <summary>The number of ticks per second, or 0 before the first offer of the server.</summary>
        public double TicksPerSecond
        {
            get
            {
                double hz = NativeWorlds.uplink_world_ticks(Base);
                GC.KeepAlive(this);
                return hz;
            }
        }

        /// <summary>Sets t to the client's estimate of the server's ticks. It returns false before the first
        /// message of a session.</summary>
        public bool Clock(UplinkClient client, out Ticks t)
        {
            Stats s = client.Stats;
            t = new Ticks { structSize = Layout<Ticks>.Size };
            bool known = NativeWorlds.uplink_world_clock(Base, UplinkClient.Now, s.MinRtt, s.Rtt, ref t) != 0;
            GC.KeepAlive(this);
            return known;
        }

        /// <summary>Sets next to the sequence number after the last processed call of an RPC, for
        /// Predictor.Correct. It returns false if the newest message does not contain it.</summary>
        public bool Processed(int rpc, out ulong next)
        {
            bool known = NativeWorlds.uplink_world_processed(Base, rpc, out next) != 0;
            GC.KeepAlive(this);
            return known;
        }

        /// <summary>Subscribes a client whose ClientConfig.Worlds is above 0 to the world. Returns the number
        /// of the world in events.</summary>
        public int Subscribe(UplinkClient client, string name, int ackHz = 0)
        {
            int world;
            UplinkException.Check(NativeWorlds.uplink_client_subscribe(client, Native.Text(name), Base, ackHz, out world), "subscribe to " + name);
            client.Add(this, world);
            return world;
        }

        /// <summary>Ends the subscription with a number. Backlog: try again later.</summary>
        public static UplinkError Unsubscribe(UplinkClient client, int world)
        {
            int e = NativeWorlds.uplink_client_unsubscribe(client, world);
            if (e == 0) client.Remove(world);
            return (UplinkError)e;
        }
    }

    /// <summary>A world that the server offers as snapshots, with or without areas.</summary>
    public sealed class SnapshotWorld : ClientWorld
    {
        readonly int types;

        /// <summary>The first type is the type of the world; the others are identified by the names of their
        /// schemas. interpolation is null, or contains an element for each type, which may be null.</summary>
        public SnapshotWorld(Schema[] types, InterpolatorConfig[] interpolation = null, int maxObjects = 0)
        {
            var schemas = new IntPtr[types.Length];
            var configs = new IntPtr[types.Length];
            var pinned = new GCHandle[types.Length];
            using (var texts = new Texts())
            {
                for (int i = 0; i < types.Length; i++)
                {
                    schemas[i] = types[i].Pointer;
                    if (interpolation == null || interpolation[i] == null) continue;
                    NativeObjects.Config config = NativeObjects.Of(interpolation[i], texts);
                    NativeObjects.Check(types[i], ref config);
                    pinned[i] = GCHandle.Alloc(config, GCHandleType.Pinned);
                    configs[i] = pinned[i].AddrOfPinnedObject();
                }
                IntPtr pointer;
                int e = NativeWorlds.uplink_snapshot_world_create(IntPtr.Zero, schemas, configs, Native.Size(types.Length), Native.Size(maxObjects), out pointer);
                foreach (GCHandle h in pinned)
                    if (h.IsAllocated) h.Free();
                UplinkException.Check(e, "snapshots");
                Created(pointer);
                foreach (Schema t in types) Keep(t);
                this.types = types.Length;
            }
        }

        /// <summary>Sets tick and received to the tick and the time of arrival of the newest snapshot. It
        /// returns false before the first one of a session.</summary>
        public bool Newest(out ulong tick, out ulong received)
        {
            var s = new NativeWorlds.Snapshot { struct_size = Layout<NativeWorlds.Snapshot>.Size };
            bool any = NativeWorlds.uplink_snapshot_world_newest(this, ref s) != 0;
            tick = s.tick;
            received = s.received;
            return any;
        }

        /// <summary>The objects of a type in the newest snapshot, valid until UplinkClient.Run.</summary>
        public Objects Objects(int type)
        {
            NativeObjects.View view = NativeObjects.View.Empty;
            NativeWorlds.uplink_snapshot_world_objects(this, Native.Size(type), ref view);
            return new Objects(this, view);
        }

        /// <summary>Sets a frame of the type's schema to object i of this world.</summary>
        public void Get(int type, Objects objects, int i, Frame frame)
        {
            if (type < 0 || type >= types) throw new ArgumentOutOfRangeException("type");
            UplinkException.Check(NativeWorlds.uplink_snapshot_world_restore(this, Native.Size(type), objects.RowPointer(i), frame), "object", i);
        }

        /// <summary>Sets s to the objects of a type to show now, valid until the next Sample of the type or
        /// UplinkClient.Run. It returns false before the first snapshot, and for a type without
        /// interpolation.</summary>
        public bool Sample(int type, out Sample s)
        {
            NativeObjects.NativeSample sample = NativeObjects.NativeSample.Empty;
            bool any = NativeWorlds.uplink_snapshot_world_sample(this, Native.Size(type), UplinkClient.Now, ref sample) != 0;
            s = new Sample(this, ref sample);
            return any;
        }

        public InterpolatorStats Interpolation(int type)
        {
            var s = new InterpolatorStats { structSize = Layout<InterpolatorStats>.Size };
            NativeWorlds.uplink_snapshot_world_interpolation(this, Native.Size(type), ref s);
            return s;
        }

        internal override IntPtr Base { get { return NativeWorlds.uplink_snapshot_world_base(this); } }

        internal override void Destroy(IntPtr pointer) { NativeWorlds.uplink_snapshot_world_destroy(pointer); }
    }
}
