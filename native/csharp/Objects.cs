// Objects for C#: decoders of snapshots with and without areas, interpolation and smoothing, for programs
// with a connection of their own. The headers objects.hpp, snapshot.hpp, interpolate.hpp and smoother.hpp in
// include/uplink state units, ranges and how long results are valid.
using System;
using System.Runtime.InteropServices;

namespace Uplink
{
    /// <summary>Lists objects of one type by ascending id. It is a view of memory of the decoder, world or
    /// sample that returned it: use after the next change of that throws an
    /// InvalidOperationException.</summary>
    public struct Objects
    {
        internal NativeObjects.View View;
        readonly Handle owner;
        readonly int changes;

        internal Objects(Handle owner, NativeObjects.View view)
        {
            this.owner = owner;
            changes = owner == null ? 0 : owner.Changes;
            View = view;
        }

        public int Count { get { return (int)View.n; } }
        public int Components { get { return (int)View.components; } }

        public int Id(int i) { return Kept((ushort)Marshal.ReadInt16(View.objects, 4 * Checked(i))); }

        /// <summary>The generation of object i. The same id with another generation is another
        /// object.</summary>
        public int Generation(int i) { return Kept(Marshal.ReadByte(View.objects, 4 * Checked(i) + 2)); }

        /// <summary>The age of the state of object i relative to the snapshot, in ticks, or in snapshots if
        /// the Objects come from an AreaDecoder. Always 0 without areas.</summary>
        public long Age(int i)
        {
            Checked(i);
            return View.ages == IntPtr.Zero ? 0 : Kept(Marshal.ReadInt64(View.ages, 8 * i));
        }

        /// <summary>Copies the integers of object i to an array with Components elements.</summary>
        public void Row(int i, int[] to)
        {
            Marshal.Copy(RowPointer(i), to, 0, Components);
            GC.KeepAlive(owner);
        }

        internal IntPtr RowPointer(int i) { return IntPtr.Add(View.rows, 4 * Components * Checked(i)); }

        T Kept<T>(T value)
        {
            GC.KeepAlive(owner);
            return value;
        }

        int Checked(int i)
        {
            if (owner != null) owner.CheckView(changes);
            if (i < 0 || i >= Count) throw new ArgumentOutOfRangeException("i");
            return i;
        }
    }

    public enum ObjectClass { Number, Angle, Quat, Integer, Bytes }

    /// <summary>A field of the rows of an ObjectType without a schema.</summary>
    [StructLayout(LayoutKind.Sequential)]
    public struct RowField
    {
        internal uint structSize;
        public ObjectClass Class;
        public int Components, Lo, Hi;
    }

    public enum Interpolation { Linear, Hermite, Nearest }

    /// <summary>Names of fields are null if the objects have no such field. Times are in ns; 0 means the
    /// default.</summary>
    public sealed class InterpolatorConfig
    {
        public Interpolation Method;
        public bool Adaptive;
        /// <summary>Names of fields: Position and Velocity have 2 or 3 numbers, Orientation is a quat or
        /// angles, and Blended lists up to 8 further fields of numbers or angles to interpolate.</summary>
        public string Position, Velocity, Orientation, Teleports;
        public string[] Blended;
        public ulong Interval, Delay, Jitter, MaxDelay, Extrapolate, Gap;
        public double Loss, Late;
    }

    [StructLayout(LayoutKind.Sequential)]
    public struct InterpolatorStats
    {
        internal uint structSize;
        public ulong Added, Late, Duplicate, Restarts, Hitches, Starved, Delay;
    }

    public struct Vector3d
    {
        public double X, Y, Z;
    }

    public struct Quaterniond
    {
        public double X, Y, Z, W;
    }

    /// <summary>The part of an object that is interpolated.</summary>
    [StructLayout(LayoutKind.Sequential)]
    public struct ObjectPose
    {
        public Vector3d Position, Velocity;
        public Quaterniond Orientation;
        public uint Teleports;
        /// <summary>The angles of the orientation and then those of the blended fields, at most 4, in
        /// degrees. They are interpolated along the shorter arc.</summary>
        public Angles Angles;
        /// <summary>The numbers of the blended fields, at most 8.</summary>
        public Numbers Numbers;
    }

    public struct Angles
    {
        internal double A, B, C, D;

        public double this[int i]
        {
            get { return i == 0 ? A : i == 1 ? B : i == 2 ? C : D; }
            set
            {
                if (i == 0) A = value;
                else if (i == 1) B = value;
                else if (i == 2) C = value;
                else D = value;
            }
        }
    }

    public struct Numbers
    {
        internal Angles First, Last;

        public double this[int i]
        {
            get { return i < 4 ? First[i] : Last[i - 4]; }
            set
            {
                if (i < 4) First[i] = value;
                else Last[i - 4] = value;
            }
        }
    }

    /// <summary>A world at one time, valid until the next sample of its type, and until the next change of its owner.</summary>
    public struct Sample
    {
        const int PoseSize = 184;

        readonly NativeObjects.NativeSample sample;
        readonly Objects objects;
        readonly Handle owner;
        readonly int changes;

        internal Sample(Handle owner, ref NativeObjects.NativeSample s)
        {
            this.owner = owner;
            changes = owner.Changes;
            sample = s;
            objects = new Objects(owner, s.objects);
        }

        /// <summary>The server time in ns.</summary>
        public ulong Time { get { return sample.time; } }

        /// <summary>True if Time is later than the newest snapshot.</summary>
        public bool Starved { get { return sample.starved != 0; } }

        /// <summary>The objects of the newest snapshot that is not after Time, for fields that are not
        /// interpolated.</summary>
        public Objects Objects { get { return objects; } }

        /// <summary>The pose of object i.</summary>
        public ObjectPose Pose(int i)
        {
            owner.CheckView(changes);
            if (i < 0 || i >= objects.Count) throw new ArgumentOutOfRangeException("i");
            IntPtr at = IntPtr.Add(sample.poses, PoseSize * i);
            var pose = new ObjectPose
            {
                Position = new Vector3d { X = Real(at, 0), Y = Real(at, 1), Z = Real(at, 2) },
                Velocity = new Vector3d { X = Real(at, 3), Y = Real(at, 4), Z = Real(at, 5) },
                Orientation = new Quaterniond { X = Real(at, 6), Y = Real(at, 7), Z = Real(at, 8), W = Real(at, 9) },
                Teleports = (uint)Marshal.ReadInt32(at, 80), Angles = Four(at, 11), Numbers = new Numbers { First = Four(at, 15), Last = Four(at, 19) }
            };
            GC.KeepAlive(owner);
            return pose;
        }

        static Angles Four(IntPtr at, int i) { return new Angles { A = Real(at, i), B = Real(at, i + 1), C = Real(at, i + 2), D = Real(at, i + 3) }; }

        static double Real(IntPtr at, int i) { return BitConverter.Int64BitsToDouble(Marshal.ReadInt64(at, 8 * i)); }
    }

    static class NativeObjects
    {
        [StructLayout(LayoutKind.Sequential)]
        internal struct View
        {
            public uint struct_size;
            public UIntPtr n, components;
            public IntPtr objects, rows, ages;

            internal static View Empty { get { return new View { struct_size = Layout<View>.Size }; } }
        }

        [StructLayout(LayoutKind.Sequential)]
        internal struct NativeSample
        {
            public uint struct_size;
            public int starved;
            public ulong time;
            public View objects;
            public IntPtr poses;

            internal static NativeSample Empty { get { return new NativeSample { struct_size = Layout<NativeSample>.Size }; } }
        }

        [StructLayout(LayoutKind.Sequential)]
        internal struct Config
        {
            public uint struct_size;
            public ulong interval;
            public int method, adaptive;
            public IntPtr position, velocity, orientation, teleports;
            public IntPtr blended0, blended1, blended2, blended3, blended4, blended5, blended6, blended7;
            public ulong delay, jitter;
            public double loss, late;
            public ulong maxDelay, extrapolate, gap;
        }

        [StructLayout(LayoutKind.Sequential)]
        internal struct Info
        {
            public uint struct_size;
            public int number, distance;
        }

        [DllImport(Native.Library)] internal static extern int uplink_object_type_create(IntPtr a, Schema s, out IntPtr type);
        [DllImport(Native.Library)] internal static extern int uplink_object_type_of_fields(IntPtr a, [In] RowField[] fields, UIntPtr n, out IntPtr type);
        [DllImport(Native.Library)] internal static extern void uplink_object_type_destroy(IntPtr t);
        [DllImport(Native.Library)] internal static extern UIntPtr uplink_object_type_components(ObjectType t);
        [DllImport(Native.Library)] internal static extern int uplink_object_type_restore(ObjectType t, IntPtr row, Frame f);
        [DllImport(Native.Library)]
        internal static extern int uplink_snapshot_decoder_create(IntPtr a, ObjectType t, [In] byte[] initial, UIntPtr n, UIntPtr maxObjects, out IntPtr decoder);
        [DllImport(Native.Library)] internal static extern void uplink_snapshot_decoder_destroy(IntPtr d);
        [DllImport(Native.Library)]
        internal static extern int uplink_snapshot_decoder_decode(SnapshotDecoder d, [In] byte[] payload, UIntPtr n, ref Info info, ref View objects);
        [DllImport(Native.Library)] internal static extern UIntPtr uplink_snapshot_decoder_ack(SnapshotDecoder d, [Out] byte[] to);
        [DllImport(Native.Library)]
        internal static extern int uplink_area_decoder_create(IntPtr a, [In] IntPtr[] types, UIntPtr n, UIntPtr maxObjects, out IntPtr decoder);
        [DllImport(Native.Library)] internal static extern void uplink_area_decoder_destroy(IntPtr d);
        [DllImport(Native.Library)] internal static extern int uplink_area_decoder_decode(AreaDecoder d, [In] byte[] message, UIntPtr n, ref Info info);
        [DllImport(Native.Library)] internal static extern void uplink_area_decoder_shown(AreaDecoder d, UIntPtr type, ref View objects);
        [DllImport(Native.Library)] internal static extern UIntPtr uplink_area_decoder_ack(AreaDecoder d, [Out] byte[] to);
        [DllImport(Native.Library)]
        internal static extern int uplink_interpolation_problem(Schema s, ref Config c, [Out] byte[] to, UIntPtr capacity);
        [DllImport(Native.Library)] internal static extern int uplink_interpolator_create(IntPtr a, ObjectType t, ref Config c, out IntPtr interpolator);
        [DllImport(Native.Library)]
        internal static extern int uplink_smoother_create(IntPtr a, ref Smoothing s, out IntPtr problem, out IntPtr smoother);
        [DllImport(Native.Library)] internal static extern void uplink_smoother_destroy(IntPtr s);
        [DllImport(Native.Library)] internal static extern void uplink_smoother_correct(Smoother s, ref ObjectPose from, ref ObjectPose to);
        [DllImport(Native.Library)] internal static extern void uplink_smoother_reset(Smoother s);
        [DllImport(Native.Library)] internal static extern void uplink_smoother_step(Smoother s, double seconds);
        [DllImport(Native.Library)] internal static extern int uplink_smoother_settled(Smoother s);
        [DllImport(Native.Library)] internal static extern void uplink_smoother_drawn(Smoother s, ref ObjectPose p, out ObjectPose drawn);
        [DllImport(Native.Library)] internal static extern void uplink_interpolator_destroy(IntPtr i);
        [DllImport(Native.Library)] internal static extern int uplink_interpolator_add(Interpolator i, ulong now, ulong time, ref View objects);
        [DllImport(Native.Library)] internal static extern int uplink_interpolator_sample(Interpolator i, ulong now, ref NativeSample s);
        [DllImport(Native.Library)] internal static extern void uplink_interpolator_reset(Interpolator i);
        [DllImport(Native.Library)] internal static extern void uplink_interpolator_get_stats(Interpolator i, ref InterpolatorStats s);

        static IntPtr Blended(InterpolatorConfig c, int i, Texts texts)
        {
            if (c.Blended != null && c.Blended.Length > 8) throw new ArgumentException("at most 8 blended fields", "Blended");
            return texts.Add(c.Blended != null && i < c.Blended.Length ? c.Blended[i] : null);
        }

        /// Throws if a field does not exist or has the wrong kind. The message names the possible fields.
        internal static void Check(Schema schema, ref Config c)
        {
            var text = new byte[512];
            if (uplink_interpolation_problem(schema, ref c, text, Native.Size(text.Length)) == 0) return;
            throw new ArgumentException(System.Text.Encoding.UTF8.GetString(text, 0, Array.IndexOf(text, (byte)0)));
        }

        internal static Config Of(InterpolatorConfig c, Texts texts)
        {
            return new Config
            {
                struct_size = Layout<Config>.Size, interval = c.Interval, method = (int)c.Method, adaptive = c.Adaptive ? 1 : 0, position = texts.Add(c.Position),
                velocity = texts.Add(c.Velocity), orientation = texts.Add(c.Orientation), teleports = texts.Add(c.Teleports),
                blended0 = Blended(c, 0, texts), blended1 = Blended(c, 1, texts), blended2 = Blended(c, 2, texts), blended3 = Blended(c, 3, texts),
                blended4 = Blended(c, 4, texts), blended5 = Blended(c, 5, texts), blended6 = Blended(c, 6, texts), blended7 = Blended(c, 7, texts), delay = c.Delay,
                jitter = c.Jitter, loss = c.Loss, late = c.Late, maxDelay = c.MaxDelay, extrapolate = c.Extrapolate, gap = c.Gap
            };
        }
    }

    /// <summary>Describes the rows of objects, for decoders and interpolators.</summary>
    public sealed class ObjectType : Handle
    {
        internal readonly Schema Schema;

        public ObjectType(Schema schema)
        {
            IntPtr pointer;
            UplinkException.Check(NativeObjects.uplink_object_type_create(IntPtr.Zero, schema, out pointer), "object type");
            Created(pointer, schema);
            Schema = schema;
        }

        /// <summary>Creates a type without a schema.</summary>
        public ObjectType(params RowField[] fields)
        {
            for (int i = 0; i < fields.Length; i++) fields[i].structSize = Layout<RowField>.Size;
            IntPtr pointer;
            UplinkException.Check(NativeObjects.uplink_object_type_of_fields(IntPtr.Zero, fields, Native.Size(fields.Length), out pointer), "object type");
            Created(pointer);
        }

        public int Components { get { return (int)NativeObjects.uplink_object_type_components(this); } }

        /// <summary>Sets a frame of the schema to object i.</summary>
        public void Get(Objects objects, int i, Frame frame)
        {
            UplinkException.Check(NativeObjects.uplink_object_type_restore(this, objects.RowPointer(i), frame), "object", i);
        }

        internal override void Destroy(IntPtr pointer) { NativeObjects.uplink_object_type_destroy(pointer); }
    }

    /// <summary>Decodes the payloads of a world without areas.</summary>
    public sealed class SnapshotDecoder : Handle
    {
        /// <summary>initial is the coded initial state of the world, or null if that is empty.</summary>
        public SnapshotDecoder(ObjectType type, byte[] initial = null, int maxObjects = 0)
        {
            UIntPtr n = Native.Size(initial == null ? 0 : initial.Length);
            IntPtr pointer;
            UplinkException.Check(NativeObjects.uplink_snapshot_decoder_create(IntPtr.Zero, type, initial, n, Native.Size(maxObjects), out pointer), "decoder");
            Created(pointer, type);
        }

        /// <summary>Decodes a payload. number is the low 16 bits of the snapshot's number. Errors are normal
        /// on a lossy path. objects are valid until the next Decode.</summary>
        public UplinkError Decode(byte[] payload, int size, out int number, out Objects objects)
        {
            var info = new NativeObjects.Info { struct_size = Layout<NativeObjects.Info>.Size };
            NativeObjects.View view = NativeObjects.View.Empty;
            Changes++;
            int e = NativeObjects.uplink_snapshot_decoder_decode(this, payload, Native.Size(payload, size), ref info, ref view);
            number = info.number;
            objects = new Objects(this, view);
            return (UplinkError)e;
        }

        /// <summary>Writes an ack to the array to, which has RpcDecoder.MaxAck bytes, and returns its
        /// size.</summary>
        public int Ack(byte[] to) { return (int)NativeObjects.uplink_snapshot_decoder_ack(this, Native.Room(to, RpcDecoder.MaxAck)); }

        internal override void Destroy(IntPtr pointer) { NativeObjects.uplink_snapshot_decoder_destroy(pointer); }
    }

    /// <summary>Decodes the messages of a world with areas.</summary>
    public sealed class AreaDecoder : Handle
    {
        public AreaDecoder(ObjectType[] types, int maxObjects = 0)
        {
            IntPtr[] pointers = Array.ConvertAll(types, t => t.Pointer);
            IntPtr pointer;
            UplinkException.Check(NativeObjects.uplink_area_decoder_create(IntPtr.Zero, pointers, Native.Size(types.Length), Native.Size(maxObjects), out pointer), "decoder");
            Created(pointer);
            foreach (ObjectType t in types) Keep(t);
        }

        public UplinkError Decode(byte[] message, int size, out int number)
        {
            var info = new NativeObjects.Info { struct_size = Layout<NativeObjects.Info>.Size };
            Changes++;
            int e = NativeObjects.uplink_area_decoder_decode(this, message, Native.Size(message, size), ref info);
            number = info.number;
            return (UplinkError)e;
        }

        /// <summary>The objects of a type in the message that was decoded last, valid until the next
        /// Decode.</summary>
        public Objects Shown(int type)
        {
            NativeObjects.View view = NativeObjects.View.Empty;
            NativeObjects.uplink_area_decoder_shown(this, Native.Size(type), ref view);
            return new Objects(this, view);
        }

        public int Ack(byte[] to) { return (int)NativeObjects.uplink_area_decoder_ack(this, Native.Room(to, RpcDecoder.MaxAck)); }

        internal override void Destroy(IntPtr pointer) { NativeObjects.uplink_area_decoder_destroy(pointer); }
    }

    /// <summary>Buffers snapshots of objects of one type, and interpolates between them. Times are in
    /// ns.</summary>
    public sealed class Interpolator : Handle
    {
        /// <summary>Throws an ArgumentException if a field of config does not exist or has the wrong kind.
        /// Its message names the possible fields.</summary>
        public Interpolator(ObjectType type, InterpolatorConfig config)
        {
            using (var texts = new Texts())
            {
                NativeObjects.Config c = NativeObjects.Of(config, texts);
                if (type.Schema != null) NativeObjects.Check(type.Schema, ref c);
                IntPtr pointer;
                UplinkException.Check(NativeObjects.uplink_interpolator_create(IntPtr.Zero, type, ref c, out pointer), "interpolator");
                Created(pointer, type);
            }
        }

        /// <summary>Adds a snapshot with the server time time that was received at now. Duplicate and Stale
        /// mean that it was added before or is too old, which is normal on a lossy path.</summary>
        public UplinkError Add(ulong now, ulong time, Objects objects)
        {
            Changes++;
            return (UplinkError)NativeObjects.uplink_interpolator_add(this, now, time, ref objects.View);
        }

        /// <summary>Sets s to the objects to show at now. It returns false before the first
        /// snapshot.</summary>
        public bool Sample(ulong now, out Sample s)
        {
            NativeObjects.NativeSample sample = NativeObjects.NativeSample.Empty;
            Changes++;
            bool any = NativeObjects.uplink_interpolator_sample(this, now, ref sample) != 0;
            s = new Sample(this, ref sample);
            return any;
        }

        public void Reset()
        {
            Changes++;
            NativeObjects.uplink_interpolator_reset(this);
        }

        public InterpolatorStats Stats
        {
            get
            {
                var s = new InterpolatorStats { structSize = Layout<InterpolatorStats>.Size };
                NativeObjects.uplink_interpolator_get_stats(this, ref s);
                return s;
            }
        }

        internal override void Destroy(IntPtr pointer) { NativeObjects.uplink_interpolator_destroy(pointer); }
    }

    /// <summary>The configuration of a Smoother; 0 means the default. include/uplink/smoother.hpp states
    /// units and ranges.</summary>
    [StructLayout(LayoutKind.Sequential)]
    public struct Smoothing
    {
        internal uint structSize;
        public double Slow, Fast, SmallError, LargeError, SmallTurn, LargeTurn, Snap;
    }

    /// <summary>Smooths the corrections of one object: after a correction, its drawn pose approaches the
    /// simulated pose gradually.</summary>
    public sealed class Smoother : Handle
    {
        public Smoother(Smoothing config = default(Smoothing))
        {
            IntPtr problem, pointer;
            config.structSize = Layout<Smoothing>.Size;
            int e = NativeObjects.uplink_smoother_create(IntPtr.Zero, ref config, out problem, out pointer);
            if (problem != IntPtr.Zero) throw new ArgumentException("smoothing: out of range: " + Marshal.PtrToStringAnsi(problem));
            UplinkException.Check(e, "smoother");
            Created(pointer);
        }

        /// <summary>Records that a correction changed the simulated pose. The drawn pose stays where it is,
        /// unless its distance from the new pose is Smoothing.Snap or more: then it jumps to the new
        /// pose.</summary>
        public void Correct(ObjectPose from, ObjectPose to) { NativeObjects.uplink_smoother_correct(this, ref from, ref to); }

        public void Reset() { NativeObjects.uplink_smoother_reset(this); }

        /// <summary>Advances the time. The result does not depend on the frame rate.</summary>
        public void Step(double seconds) { NativeObjects.uplink_smoother_step(this, seconds); }

        /// <summary>True if the drawn pose is the simulated pose.</summary>
        public bool Settled { get { return NativeObjects.uplink_smoother_settled(this) != 0; } }

        /// <summary>The pose at which to draw an object that is simulated at p.</summary>
        public ObjectPose Drawn(ObjectPose p)
        {
            ObjectPose drawn;
            NativeObjects.uplink_smoother_drawn(this, ref p, out drawn);
            return drawn;
        }

        internal override void Destroy(IntPtr pointer) { NativeObjects.uplink_smoother_destroy(pointer); }
    }
}
