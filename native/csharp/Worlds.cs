// Worlds for C#: snapshots, also of worlds with areas, interpolation, and subscriptions of the client, over a
// shared library that was built with UPLINK_CLIENT. The headers world.hpp, clock.hpp, objects.hpp, snapshot.hpp,
// interpolate.hpp and snapshot_world.hpp in include/uplink have units, ranges and how long results are valid.
using System;
using System.Runtime.InteropServices;

namespace Uplink
{
    /// <summary>Objects of one type, by ascending id. They are a view of the memory of what returned them.</summary>
    [StructLayout(LayoutKind.Sequential)]
    public struct Objects
    {
        internal UIntPtr n, components;
        internal IntPtr objects, rows;

        public int Count { get { return (int)n; } }
        public int Components { get { return (int)components; } }

        public int Id(int i) { return (ushort)Marshal.ReadInt16(objects, 4 * Checked(i)); }

        /// <summary>An id whose generation changed is another object.</summary>
        public int Generation(int i) { return Marshal.ReadByte(objects, 4 * Checked(i) + 2); }

        /// <summary>Copies the integers of object i to an array with Components elements.</summary>
        public void Row(int i, int[] to) { Marshal.Copy(RowPointer(i), to, 0, Components); }

        internal IntPtr RowPointer(int i) { return IntPtr.Add(rows, 4 * Components * Checked(i)); }

        int Checked(int i)
        {
            if (i < 0 || i >= Count) throw new ArgumentOutOfRangeException("i");
            return i;
        }
    }

    public enum ObjectClass { Number, Angle, Quat, Integer, Bytes }

    /// <summary>A field of a row without a schema.</summary>
    [StructLayout(LayoutKind.Sequential)]
    public struct ObjectField
    {
        public ObjectClass Class;
        public int Components, Lo, Hi;
    }

    public enum Interpolation { Linear, Hermite, Nearest }

    /// <summary>Names of fields are null if objects have none. Times are in ns; 0 is the default.</summary>
    public sealed class InterpolatorConfig
    {
        public Interpolation Method;
        public bool Adaptive;
        public string Position, Velocity, Orientation, Teleports;
        public ulong Interval, Delay, Jitter, MaxDelay, Extrapolate, Gap;
        public double Loss, Late;
    }

    [StructLayout(LayoutKind.Sequential)]
    public struct InterpolatorStats
    {
        public ulong Added, Late, Duplicate, Restarts, Hitches, Delay;
    }

    public struct Vector
    {
        public double X, Y, Z;
    }

    public struct Quaternion
    {
        public double X, Y, Z, W;
    }

    /// <summary>The part of an object that is interpolated.</summary>
    public struct Pose
    {
        public Vector Position, Velocity;
        public Quaternion Orientation;
        public uint Teleports;
    }

    /// <summary>A world at one time, valid until the next call of a method of its owner.</summary>
    [StructLayout(LayoutKind.Sequential)]
    public struct Sample
    {
        const int PoseSize = 88;

        ulong time;
        int starved, reserved;
        Objects objects;
        IntPtr poses;

        /// <summary>Of the server, in ns.</summary>
        public ulong Time { get { return time; } }

        /// <summary>Whether the time is after the newest snapshot.</summary>
        public bool Starved { get { return starved != 0; } }

        /// <summary>Those of the snapshot up to the time, for fields that are not interpolated.</summary>
        public Objects Objects { get { return objects; } }

        /// <summary>The pose of object i.</summary>
        public Pose Pose(int i)
        {
            if (i < 0 || i >= objects.Count) throw new ArgumentOutOfRangeException("i");
            IntPtr at = IntPtr.Add(poses, PoseSize * i);
            return new Pose
            {
                Position = new Vector { X = Real(at, 0), Y = Real(at, 1), Z = Real(at, 2) },
                Velocity = new Vector { X = Real(at, 3), Y = Real(at, 4), Z = Real(at, 5) },
                Orientation = new Quaternion { X = Real(at, 6), Y = Real(at, 7), Z = Real(at, 8), W = Real(at, 9) },
                Teleports = (uint)Marshal.ReadInt32(at, 80)
            };
        }

        static double Real(IntPtr at, int i) { return BitConverter.Int64BitsToDouble(Marshal.ReadInt64(at, 8 * i)); }
    }

    /// <summary>A client's clock in ticks of a world's server.</summary>
    [StructLayout(LayoutKind.Sequential)]
    public struct Ticks
    {
        public double Server, Hz;
        public ulong OneWay, Rtt;

        /// <summary>The tick in which the server uses a call that is sent now. target: ns that its jitter buffer lets calls wait.</summary>
        public double Input(ulong target) { return Server + (Rtt / 2.0 + target) / 1e9 * Hz; }

        /// <summary>The tick that interpolation with a delay in ns shows now.</summary>
        public double Shown(ulong delay) { return Server - ((double)OneWay + delay) / 1e9 * Hz; }
    }

    static class NativeWorlds
    {
        [StructLayout(LayoutKind.Sequential)]
        internal struct Config
        {
            public ulong interval;
            public int method, adaptive;
            public IntPtr position, velocity, orientation, teleports;
            public ulong delay, jitter;
            public double loss, late;
            public ulong maxDelay, extrapolate, gap;
        }

        [StructLayout(LayoutKind.Sequential)]
        internal struct Info
        {
            public int number, distance;
        }

        [StructLayout(LayoutKind.Sequential)]
        internal struct Snapshot
        {
            public ulong tick, received;
        }

        [DllImport(Native.Library)] internal static extern double uplink_world_ticks(IntPtr w);
        [DllImport(Native.Library)] internal static extern int uplink_world_clock(IntPtr w, ulong now, ulong minRtt, ulong rtt, out Ticks t);
        [DllImport(Native.Library)] internal static extern int uplink_world_processed(IntPtr w, int rpc, out ulong next);
        [DllImport(Native.Library)] internal static extern int uplink_client_subscribe(IntPtr c, byte[] name, IntPtr w, int ackHz, out int world);
        [DllImport(Native.Library)] internal static extern int uplink_client_unsubscribe(IntPtr c, int world);
        [DllImport(Native.Library)] internal static extern int uplink_object_type_create(IntPtr a, IntPtr schema, out IntPtr type);
        [DllImport(Native.Library)] internal static extern int uplink_object_type_of_fields(IntPtr a, [In] ObjectField[] fields, UIntPtr n, out IntPtr type);
        [DllImport(Native.Library)] internal static extern void uplink_object_type_destroy(IntPtr t);
        [DllImport(Native.Library)] internal static extern UIntPtr uplink_object_type_components(IntPtr t);
        [DllImport(Native.Library)] internal static extern int uplink_object_type_restore(IntPtr t, IntPtr row, IntPtr frame);
        [DllImport(Native.Library)]
        internal static extern int uplink_snapshot_decoder_create(IntPtr a, IntPtr type, [In] byte[] initial, UIntPtr n, UIntPtr maxObjects, out IntPtr decoder);
        [DllImport(Native.Library)] internal static extern void uplink_snapshot_decoder_destroy(IntPtr d);
        [DllImport(Native.Library)]
        internal static extern int uplink_snapshot_decoder_decode(IntPtr d, [In] byte[] payload, UIntPtr n, out Info info, out Objects objects);
        [DllImport(Native.Library)] internal static extern UIntPtr uplink_snapshot_decoder_ack(IntPtr d, [Out] byte[] to);
        [DllImport(Native.Library)]
        internal static extern int uplink_area_decoder_create(IntPtr a, [In] IntPtr[] types, UIntPtr n, UIntPtr maxObjects, out IntPtr decoder);
        [DllImport(Native.Library)] internal static extern void uplink_area_decoder_destroy(IntPtr d);
        [DllImport(Native.Library)] internal static extern int uplink_area_decoder_decode(IntPtr d, [In] byte[] message, UIntPtr n, out Info info);
        [DllImport(Native.Library)] internal static extern void uplink_area_decoder_shown(IntPtr d, UIntPtr type, out Objects objects);
        [DllImport(Native.Library)] internal static extern UIntPtr uplink_area_decoder_ack(IntPtr d, [Out] byte[] to);
        [DllImport(Native.Library)] internal static extern int uplink_interpolator_create(IntPtr a, IntPtr type, ref Config c, out IntPtr interpolator);
        [DllImport(Native.Library)] internal static extern void uplink_interpolator_destroy(IntPtr i);
        [DllImport(Native.Library)] internal static extern int uplink_interpolator_add(IntPtr i, ulong now, ulong time, ref Objects objects);
        [DllImport(Native.Library)] internal static extern int uplink_interpolator_sample(IntPtr i, ulong now, out Sample s);
        [DllImport(Native.Library)] internal static extern void uplink_interpolator_reset(IntPtr i);
        [DllImport(Native.Library)] internal static extern void uplink_interpolator_get_stats(IntPtr i, out InterpolatorStats s);
        [DllImport(Native.Library)]
        internal static extern int uplink_snapshot_world_create(IntPtr a, [In] IntPtr[] types, [In] IntPtr[] interpolation, UIntPtr n, UIntPtr maxObjects, out IntPtr world);
        [DllImport(Native.Library)] internal static extern void uplink_snapshot_world_destroy(IntPtr w);
        [DllImport(Native.Library)] internal static extern IntPtr uplink_snapshot_world_base(IntPtr w);
        [DllImport(Native.Library)] internal static extern int uplink_snapshot_world_newest(IntPtr w, out Snapshot s);
        [DllImport(Native.Library)] internal static extern void uplink_snapshot_world_objects(IntPtr w, UIntPtr type, out Objects objects);
        [DllImport(Native.Library)] internal static extern int uplink_snapshot_world_restore(IntPtr w, UIntPtr type, IntPtr row, IntPtr frame);
        [DllImport(Native.Library)] internal static extern int uplink_snapshot_world_sample(IntPtr w, UIntPtr type, ulong now, out Sample s);
        [DllImport(Native.Library)] internal static extern void uplink_snapshot_world_interpolation(IntPtr w, UIntPtr type, out InterpolatorStats s);

        internal static Config Of(InterpolatorConfig c, Texts texts)
        {
            return new Config
            {
                interval = c.Interval, method = (int)c.Method, adaptive = c.Adaptive ? 1 : 0, position = texts.Add(c.Position),
                velocity = texts.Add(c.Velocity), orientation = texts.Add(c.Orientation), teleports = texts.Add(c.Teleports), delay = c.Delay,
                jitter = c.Jitter, loss = c.Loss, late = c.Late, maxDelay = c.MaxDelay, extrapolate = c.Extrapolate, gap = c.Gap
            };
        }
    }

    /// <summary>A world of the server. It must outlive the client.</summary>
    public abstract class World : Handle
    {
        internal abstract IntPtr Base { get; }

        /// <summary>0 before the first offer of the server.</summary>
        public double TicksPerSecond { get { return NativeWorlds.uplink_world_ticks(Base); } }

        /// <summary>The client's clock in ticks of the server. It returns false before the first message of a session.</summary>
        public bool Clock(UplinkClient client, out Ticks t)
        {
            Stats s = client.Stats;
            return NativeWorlds.uplink_world_clock(Base, UplinkClient.Now, s.MinRtt, s.Rtt, out t) != 0;
        }

        /// <summary>Whether the newest message has the number of calls of an RPC that the server has processed, for Predictor.Correct.</summary>
        public bool Processed(int rpc, out ulong next) { return NativeWorlds.uplink_world_processed(Base, rpc, out next) != 0; }

        /// <summary>Subscribes a client, whose ClientConfig.Worlds is above 0. Returns the number of events about the world.</summary>
        public int Subscribe(UplinkClient client, string name, int ackHz = 0)
        {
            int world;
            UplinkException.Check(NativeWorlds.uplink_client_subscribe(client.Pointer, Native.Text(name), Base, ackHz, out world), "subscribe");
            return world;
        }

        /// <summary>Ends a subscription by its number. Full: try again.</summary>
        public static Error Unsubscribe(UplinkClient client, int world)
        {
            return (Error)NativeWorlds.uplink_client_unsubscribe(client.Pointer, world);
        }
    }

    /// <summary>A world by snapshots, with and without areas.</summary>
    public sealed class SnapshotWorld : World
    {
        /// <summary>The first type is that of the world, the others have the names of their schemas. interpolation is null, or has an element for each type, of which some are null.</summary>
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
                    pinned[i] = GCHandle.Alloc(NativeWorlds.Of(interpolation[i], texts), GCHandleType.Pinned);
                    configs[i] = pinned[i].AddrOfPinnedObject();
                }
                int e = NativeWorlds.uplink_snapshot_world_create(IntPtr.Zero, schemas, configs, Native.Size(types.Length), Native.Size(maxObjects), out Pointer);
                foreach (GCHandle h in pinned)
                    if (h.IsAllocated) h.Free();
                UplinkException.Check(e, "snapshots");
            }
        }

        /// <summary>The newest snapshot: its tick, and when it arrived. It returns false before the first one of a session.</summary>
        public bool Newest(out ulong tick, out ulong received)
        {
            NativeWorlds.Snapshot s;
            bool any = NativeWorlds.uplink_snapshot_world_newest(Pointer, out s) != 0;
            tick = s.tick;
            received = s.received;
            return any;
        }

        /// <summary>The objects of a type in the newest snapshot, valid until UplinkClient.Run.</summary>
        public Objects Objects(int type)
        {
            Objects o;
            NativeWorlds.uplink_snapshot_world_objects(Pointer, Native.Size(type), out o);
            return o;
        }

        /// <summary>Sets a frame of the type's schema to object i of this world.</summary>
        public void Get(int type, Objects objects, int i, Frame frame)
        {
            int e = NativeWorlds.uplink_snapshot_world_restore(Pointer, Native.Size(type), objects.RowPointer(i), frame.Pointer);
            UplinkException.Check(e, "object " + i);
        }

        /// <summary>What to show of a type now. It returns false before the first snapshot, and without interpolation.</summary>
        public bool Sample(int type, out Sample s) { return NativeWorlds.uplink_snapshot_world_sample(Pointer, Native.Size(type), UplinkClient.Now, out s) != 0; }

        public InterpolatorStats Interpolation(int type)
        {
            InterpolatorStats s;
            NativeWorlds.uplink_snapshot_world_interpolation(Pointer, Native.Size(type), out s);
            return s;
        }

        internal override IntPtr Base { get { return NativeWorlds.uplink_snapshot_world_base(Pointer); } }

        internal override void Destroy(IntPtr pointer) { NativeWorlds.uplink_snapshot_world_destroy(pointer); }
    }

    /// <summary>The rows of objects, for decoders and interpolators over a connection of the program. It must outlive them.</summary>
    public sealed class ObjectType : Handle
    {
        public ObjectType(Schema schema) { UplinkException.Check(NativeWorlds.uplink_object_type_create(IntPtr.Zero, schema.Pointer, out Pointer), "object type"); }

        /// <summary>A type without a schema.</summary>
        public ObjectType(params ObjectField[] fields)
        {
            UplinkException.Check(NativeWorlds.uplink_object_type_of_fields(IntPtr.Zero, fields, Native.Size(fields.Length), out Pointer), "object type");
        }

        public int Components { get { return (int)NativeWorlds.uplink_object_type_components(Pointer); } }

        /// <summary>Sets a frame of the schema to object i.</summary>
        public void Get(Objects objects, int i, Frame frame)
        {
            UplinkException.Check(NativeWorlds.uplink_object_type_restore(Pointer, objects.RowPointer(i), frame.Pointer), "object " + i);
        }

        internal override void Destroy(IntPtr pointer) { NativeWorlds.uplink_object_type_destroy(pointer); }
    }

    /// <summary>Decodes the payloads of a world, over a connection of the program.</summary>
    public sealed class SnapshotDecoder : Handle
    {
        /// <summary>initial is the coded initial state; null if it is empty.</summary>
        public SnapshotDecoder(ObjectType type, byte[] initial = null, int maxObjects = 0)
        {
            UIntPtr n = Native.Size(initial == null ? 0 : initial.Length);
            UplinkException.Check(NativeWorlds.uplink_snapshot_decoder_create(IntPtr.Zero, type.Pointer, initial, n, Native.Size(maxObjects), out Pointer), "decoder");
        }

        /// <summary>number has the low bits of the snapshot's number. Errors are normal on a lossy path.</summary>
        public Error Decode(byte[] payload, int size, out int number, out Objects objects)
        {
            NativeWorlds.Info info;
            int e = NativeWorlds.uplink_snapshot_decoder_decode(Pointer, payload, Native.Size(size), out info, out objects);
            number = info.number;
            return (Error)e;
        }

        /// <summary>Writes an ack to to, which has Decoder.MaxAck bytes, and returns its size.</summary>
        public int Ack(byte[] to) { return (int)NativeWorlds.uplink_snapshot_decoder_ack(Pointer, to); }

        internal override void Destroy(IntPtr pointer) { NativeWorlds.uplink_snapshot_decoder_destroy(pointer); }
    }

    /// <summary>Decodes the messages of a world with areas, over a connection of the program.</summary>
    public sealed class AreaDecoder : Handle
    {
        public AreaDecoder(ObjectType[] types, int maxObjects = 0)
        {
            IntPtr[] pointers = Array.ConvertAll(types, t => t.Pointer);
            UplinkException.Check(NativeWorlds.uplink_area_decoder_create(IntPtr.Zero, pointers, Native.Size(types.Length), Native.Size(maxObjects), out Pointer), "decoder");
        }

        public Error Decode(byte[] message, int size, out int number)
        {
            NativeWorlds.Info info;
            int e = NativeWorlds.uplink_area_decoder_decode(Pointer, message, Native.Size(size), out info);
            number = info.number;
            return (Error)e;
        }

        /// <summary>The objects of a type that the message shows that was decoded last.</summary>
        public Objects Shown(int type)
        {
            Objects o;
            NativeWorlds.uplink_area_decoder_shown(Pointer, Native.Size(type), out o);
            return o;
        }

        public int Ack(byte[] to) { return (int)NativeWorlds.uplink_area_decoder_ack(Pointer, to); }

        internal override void Destroy(IntPtr pointer) { NativeWorlds.uplink_area_decoder_destroy(pointer); }
    }

    /// <summary>Shows snapshots of a type a little in the past, over a connection of the program. Times are in ns.</summary>
    public sealed class Interpolator : Handle
    {
        public Interpolator(ObjectType type, InterpolatorConfig config)
        {
            using (var texts = new Texts())
            {
                NativeWorlds.Config c = NativeWorlds.Of(config, texts);
                UplinkException.Check(NativeWorlds.uplink_interpolator_create(IntPtr.Zero, type.Pointer, ref c, out Pointer), "interpolator");
            }
        }

        /// <summary>Adds a snapshot of a server's time, which arrived at now. Duplicate, Stale: it is not needed.</summary>
        public Error Add(ulong now, ulong time, Objects objects) { return (Error)NativeWorlds.uplink_interpolator_add(Pointer, now, time, ref objects); }

        /// <summary>What to show at now. It returns false before the first snapshot.</summary>
        public bool Sample(ulong now, out Sample s) { return NativeWorlds.uplink_interpolator_sample(Pointer, now, out s) != 0; }

        public void Reset() { NativeWorlds.uplink_interpolator_reset(Pointer); }

        public InterpolatorStats Stats
        {
            get
            {
                InterpolatorStats s;
                NativeWorlds.uplink_interpolator_get_stats(Pointer, out s);
                return s;
            }
        }

        internal override void Destroy(IntPtr pointer) { NativeWorlds.uplink_interpolator_destroy(pointer); }
    }
}
