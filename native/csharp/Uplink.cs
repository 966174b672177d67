// The codec of RPCs for C#: Unity, Godot, .NET and Mono. It calls the shared library "uplink" with P/Invoke,
// and requires only netstandard2.0. include/uplink/codec.hpp states units, ranges and limits.
//
// A Schema can be used by any thread. A Frame, RpcEncoder or RpcDecoder is for one thread at a time. Dispose
// frees memory of the library; otherwise a garbage collection frees it later. A handle that other handles use
// is freed after them. Use after Dispose throws an ObjectDisposedException. Methods that are used for each
// call or frame do not allocate, except those that return an array or a text.
using System;
using System.Collections.Generic;
using System.Runtime.InteropServices;
using System.Text;
using System.Threading;

namespace Uplink
{
    /// <summary>The type of the values of a field.</summary>
    public enum Kind { Vec2, Vec3, Scalar, Angle, Quat, UnitVec, UInt, Int, Bits, Bool, Fixed, Bytes }

    public enum Codec { Rle, Adaptive }

    /// <summary>Results of the functions of the library; 0 means success.</summary>
    public enum UplinkError
    {
        Ok, NoMemory, Invalid, TooSmall, Malformed, NoBaseline, Duplicate, Stale, Full, Closed, Refused, Authentication, Desync, Backlog, TooFast, Unbound
    }

    /// <summary>An error that a lossy network does not cause.</summary>
    public sealed class UplinkException : Exception
    {
        public UplinkError Error { get; }

        internal UplinkException(UplinkError error, string what)
            : base(what + ": " + Marshal.PtrToStringAnsi(Native.uplink_error_text((int)error)))
        {
            Error = error;
        }

        public static void Check(UplinkError error, string what)
        {
            if (error != UplinkError.Ok) throw new UplinkException(error, what);
        }

        internal static void Check(int error, string what) { Check((UplinkError)error, what); }

        internal static void Check(int error, string what, int i)
        {
            if (error != 0) throw new UplinkException((UplinkError)error, what + " " + i);
        }
    }

    /// <summary>One argument of an RPC. Leave members that the kind does not use at 0 or null.</summary>
    public sealed class Field
    {
        public string Name;
        public Kind Kind;
        public int Count = 1;
        public double Resolution;
        public int Bits;
        public int Width;
        public int Size;
        public double? Min;
        public double? Max;
        public string Velocity;
        public double VelocityScale = 1;
    }

    static class Native
    {
#if (UNITY_IOS || UNITY_TVOS || UNITY_VISIONOS || UNITY_WEBGL || UNITY_SWITCH) && !UNITY_EDITOR
        internal const string Library = "__Internal";
#else
        internal const string Library = "uplink";
#endif

        [StructLayout(LayoutKind.Sequential)]
        internal struct NativeField
        {
            public uint struct_size;
            public IntPtr name;
            public int kind;
            public int count;
            public double resolution;
            public int bits;
            public int width;
            public int size;
            public int has_min;
            public int has_max;
            public double min;
            public double max;
            public IntPtr velocity;
            public double velocity_scale;
        }

        [StructLayout(LayoutKind.Sequential)]
        internal struct EncoderConfig
        {
            public uint struct_size;
            public int codec, rpc, ring, peer_ring, copies, reliable, max_payload;
            public IntPtr prior;
        }

        [StructLayout(LayoutKind.Sequential)]
        internal struct DecoderConfig
        {
            public uint struct_size;
            public int codec, rpc, ring, peer_ring, reliable, deliver_late;
            public IntPtr prior;
        }

        [StructLayout(LayoutKind.Sequential)]
        internal struct NativeCall
        {
            public uint struct_size;
            public int late;
            public ulong sequence;
            public ulong missed;
            public IntPtr frame;
        }

        [DllImport(Library)] internal static extern IntPtr uplink_error_text(int e);
        [DllImport(Library)]
        internal static extern int uplink_schema_create(IntPtr a, byte[] rpc, double rate, [In] NativeField[] fields, UIntPtr n, out IntPtr schema, out UIntPtr field);
        [DllImport(Library)] internal static extern void uplink_schema_destroy(IntPtr s);
        [DllImport(Library)] internal static extern UIntPtr uplink_schema_components(Schema s);
        [DllImport(Library)] internal static extern ulong uplink_schema_fingerprint(Schema s);
        [DllImport(Library)] internal static extern int uplink_frame_create(IntPtr a, Schema s, out IntPtr frame);
        [DllImport(Library)] internal static extern void uplink_frame_destroy(IntPtr f);
        [DllImport(Library)] internal static extern int uplink_frame_set(Frame f, UIntPtr field, [In] double[] values, UIntPtr n);
        [DllImport(Library)] internal static extern int uplink_frame_set_integers(Frame f, UIntPtr field, [In] ulong[] values, UIntPtr n);
        [DllImport(Library)] internal static extern int uplink_frame_set_bytes(Frame f, UIntPtr field, [In] byte[] data, UIntPtr n);
        [DllImport(Library)] internal static extern int uplink_frame_get(Frame f, UIntPtr field, [Out] double[] values, UIntPtr n);
        [DllImport(Library)] internal static extern int uplink_frame_get_integers(Frame f, UIntPtr field, [Out] ulong[] values, UIntPtr n);
        [DllImport(Library)] internal static extern int uplink_frame_get_bytes(Frame f, UIntPtr field, out IntPtr data, out UIntPtr n);
        [DllImport(Library)] internal static extern IntPtr uplink_frame_components(Frame f);
        [DllImport(Library)] internal static extern int uplink_encoder_create(IntPtr a, Schema s, ref EncoderConfig c, out IntPtr encoder);
        [DllImport(Library)] internal static extern void uplink_encoder_destroy(IntPtr e);
        [DllImport(Library)] internal static extern int uplink_encoder_encode(RpcEncoder e, Frame f, [Out] byte[] to, UIntPtr capacity, out UIntPtr size);
        [DllImport(Library)] internal static extern int uplink_encoder_ack(RpcEncoder e, [In] byte[] data, UIntPtr n, out UIntPtr used);
        [DllImport(Library)] internal static extern int uplink_decoder_create(IntPtr a, Schema s, ref DecoderConfig c, out IntPtr decoder);
        [DllImport(Library)] internal static extern void uplink_decoder_destroy(IntPtr d);
        [DllImport(Library)]
        internal static extern int uplink_decoder_decode(RpcDecoder d, [In] byte[] payload, UIntPtr n, [In, Out] NativeCall[] calls, out UIntPtr count);
        [DllImport(Library)] internal static extern UIntPtr uplink_decoder_ack(RpcDecoder d, [Out] byte[] to);

        internal static UIntPtr Size(int n) { return new UIntPtr((uint)n); }

        /// The first n bytes of an array.
        internal static UIntPtr Size(byte[] b, int n)
        {
            if (n < 0 || n > b.Length) throw new ArgumentOutOfRangeException("size");
            return Size(n);
        }

        /// An array to which the library writes, and the maximum number of bytes.
        internal static byte[] Room(byte[] b, int n)
        {
            if (b.Length < n) throw new ArgumentException("the array needs " + n + " elements");
            return b;
        }

        internal static byte[] Text(string s) { return Encoding.UTF8.GetBytes(s + "\0"); }

        internal static int CopyTo(IntPtr data, int n, byte[] to)
        {
            if (n > 0) Marshal.Copy(data, Room(to, n), 0, n);
            return n;
        }

        internal static byte[] Copy(IntPtr data, int n)
        {
            var copy = new byte[n];
            CopyTo(data, n, copy);
            return copy;
        }
    }

    /// <summary>The size of a structure of the library.</summary>
    static class Layout<T>
    {
        internal static readonly uint Size = (uint)Marshal.SizeOf(typeof(T));
    }

    /// <summary>Holds texts in memory that the library can read until Dispose.</summary>
    sealed class Texts : IDisposable
    {
        readonly List<GCHandle> pinned = new List<GCHandle>();

        /// <summary>Returns the address of a copy of a text, or null for null.</summary>
        internal IntPtr Add(string s)
        {
            if (s == null) return IntPtr.Zero;
            GCHandle h = GCHandle.Alloc(Native.Text(s), GCHandleType.Pinned);
            pinned.Add(h);
            return h.AddrOfPinnedObject();
        }

        public void Dispose()
        {
            foreach (GCHandle h in pinned) h.Free();
        }
    }

    /// <summary>An object of the library. Use after Dispose throws an ObjectDisposedException.</summary>
    public abstract class Handle : SafeHandle
    {
        readonly List<Handle> kept = new List<Handle>();
        int uses = 1; // 1, plus the number of handles that keep this one alive

        /// The number of changes of the memory to which views of this handle refer.
        internal int Changes;

        internal Handle(bool owned = true) : base(IntPtr.Zero, owned) { }

        public override bool IsInvalid { get { return handle == IntPtr.Zero; } }

        internal abstract void Destroy(IntPtr pointer);

        /// Sets the pointer to an object that the library has created, and the handles that it uses.
        internal void Created(IntPtr pointer, Handle used = null)
        {
            SetHandle(pointer);
            if (used != null) Keep(used);
        }

        /// Keeps the memory of another handle alive as long as this one, even if the other handle is disposed
        /// before.
        internal void Keep(Handle used)
        {
            Interlocked.Increment(ref used.uses);
            kept.Add(used);
        }

        internal void LetGo(Handle used)
        {
            if (kept.Remove(used)) used.Drop();
        }

        void Drop()
        {
            if (Interlocked.Decrement(ref uses) > 0) return;
            Destroy(handle);
            foreach (Handle used in kept) used.Drop();
        }

        /// Returns the pointer, for an array of pointers. Keep the handle alive during the call.
        internal IntPtr Pointer
        {
            get
            {
                if (IsClosed) throw new ObjectDisposedException(GetType().Name);
                return handle;
            }
        }

        /// Checks that a view of this handle's memory is valid. The argument is the number of changes when
        /// the view was created.
        internal void CheckView(int changes)
        {
            if (IsClosed) throw new ObjectDisposedException(GetType().Name);
            if (changes != Changes) throw new InvalidOperationException("this view of " + GetType().Name + " is not valid any more");
        }

        protected override bool ReleaseHandle()
        {
            Drop();
            return true;
        }
    }

    /// <summary>Describes the arguments of an RPC.</summary>
    public sealed class Schema : Handle
    {
        internal readonly Field[] Fields;

        /// <summary>rateHz is above 0 and at most 1000. The exception names the field that is not valid.</summary>
        public Schema(string rpc, double rateHz, params Field[] fields)
        {
            Fields = fields;
            var native = new Native.NativeField[fields.Length];
            using (var texts = new Texts())
            {
                for (int i = 0; i < fields.Length; i++)
                {
                    Field f = fields[i];
                    native[i] = new Native.NativeField
                    {
                        struct_size = Layout<Native.NativeField>.Size, name = texts.Add(f.Name ?? ""), kind = (int)f.Kind, count = f.Count, resolution = f.Resolution, bits = f.Bits, width = f.Width,
                        size = f.Size, has_min = f.Min.HasValue ? 1 : 0, has_max = f.Max.HasValue ? 1 : 0, min = f.Min ?? 0, max = f.Max ?? 0,
                        velocity = texts.Add(f.Velocity), velocity_scale = f.VelocityScale
                    };
                }
                IntPtr pointer;
                UIntPtr wrong;
                int e = Native.uplink_schema_create(IntPtr.Zero, Native.Text(rpc), rateHz, native, Native.Size(fields.Length), out pointer, out wrong);
                int index = (int)wrong;
                Created(pointer);
                UplinkException.Check(e, index < fields.Length ? "field " + fields[index].Name : "schema " + rpc);
            }
        }

        /// <summary>A hash that is equal at both ends if their schemas are equal.</summary>
        public ulong Fingerprint { get { return Native.uplink_schema_fingerprint(this); } }

        internal override void Destroy(IntPtr pointer) { Native.uplink_schema_destroy(pointer); }
    }

    /// <summary>The quantized arguments of a call: a frame of the program, or a view of a received
    /// frame.</summary>
    public class Frame : Handle
    {
        readonly double[] values = new double[4];
        readonly ulong[] integers = new ulong[1];
        internal Schema Schema; // null if it is unknown

        internal Frame() : base(false) { }

        public Frame(Schema schema)
        {
            IntPtr pointer;
            UplinkException.Check(Native.uplink_frame_create(IntPtr.Zero, schema, out pointer), "frame");
            Created(pointer, schema);
            Schema = schema;
        }

        void Check(int error, int field)
        {
            if (error == 0) return;
            bool known = Schema != null && field >= 0 && field < Schema.Fields.Length;
            throw new UplinkException((UplinkError)error, "field " + (known ? Schema.Fields[field].Name : field.ToString()));
        }

        void SetFirst(int field, int n) { Check(Native.uplink_frame_set(this, Native.Size(field), values, Native.Size(n)), field); }

        public void Set(int field, params double[] values) { Check(Native.uplink_frame_set(this, Native.Size(field), values, Native.Size(values.Length)), field); }

        public void Set(int field, double a)
        {
            values[0] = a;
            SetFirst(field, 1);
        }

        public void Set(int field, double a, double b)
        {
            values[0] = a;
            values[1] = b;
            SetFirst(field, 2);
        }

        public void Set(int field, double a, double b, double c)
        {
            values[0] = a;
            values[1] = b;
            values[2] = c;
            SetFirst(field, 3);
        }

        public void Set(int field, double a, double b, double c, double d)
        {
            values[0] = a;
            values[1] = b;
            values[2] = c;
            values[3] = d;
            SetFirst(field, 4);
        }

        /// <summary>Sets the values of a field of the kind uint, int (in two's complement), bits or
        /// bool.</summary>
        public void SetIntegers(int field, params ulong[] values)
        {
            Check(Native.uplink_frame_set_integers(this, Native.Size(field), values, Native.Size(values.Length)), field);
        }

        public void SetIntegers(int field, ulong value)
        {
            integers[0] = value;
            SetIntegers(field, integers);
        }

        public void SetBytes(int field, byte[] value) { SetBytes(field, value, value.Length); }

        public void SetBytes(int field, byte[] value, int size) { Check(Native.uplink_frame_set_bytes(this, Native.Size(field), value, Native.Size(value, size)), field); }

        public void Get(int field, double[] values) { Check(Native.uplink_frame_get(this, Native.Size(field), values, Native.Size(values.Length)), field); }

        public void GetIntegers(int field, ulong[] values)
        {
            Check(Native.uplink_frame_get_integers(this, Native.Size(field), values, Native.Size(values.Length)), field);
        }

        /// <summary>Returns a copy.</summary>
        public byte[] GetBytes(int field)
        {
            IntPtr data;
            UIntPtr n;
            Check(Native.uplink_frame_get_bytes(this, Native.Size(field), out data, out n), field);
            byte[] copy = Native.Copy(data, (int)n);
            GC.KeepAlive(this);
            return copy;
        }

        /// <summary>Copies a byte string to an array and returns its size.</summary>
        public int GetBytes(int field, byte[] to)
        {
            IntPtr data;
            UIntPtr n;
            Check(Native.uplink_frame_get_bytes(this, Native.Size(field), out data, out n), field);
            int size = Native.CopyTo(data, (int)n, to);
            GC.KeepAlive(this);
            return size;
        }

        /// <summary>Returns a copy of the integers that are coded. schema is the schema of the
        /// frame.</summary>
        public int[] Components(Schema schema)
        {
            var copy = new int[(int)Native.uplink_schema_components(schema)];
            if (copy.Length > 0) Marshal.Copy(Native.uplink_frame_components(this), copy, 0, copy.Length);
            GC.KeepAlive(this);
            return copy;
        }

        internal override void Destroy(IntPtr pointer) { Native.uplink_frame_destroy(pointer); }
    }

    /// <summary>A frame that belongs to another handle, and is valid as long as that handle.</summary>
    sealed class FrameView : Frame
    {
        readonly Handle owner;

        internal FrameView(Handle owner, Schema schema = null)
        {
            this.owner = owner;
            Schema = schema;
        }

        internal void Show(IntPtr pointer) { SetHandle(pointer); }

        /// Called when the owner is disposed. Use of the view then throws an ObjectDisposedException.
        internal void End() { base.Dispose(true); }

        protected override void Dispose(bool disposing) { GC.KeepAlive(owner); } // the owner releases it
    }

    /// <summary>Encodes the calls of one RPC.</summary>
    public sealed class RpcEncoder : Handle
    {
        public const int MaxPayload = 1197;

        public RpcEncoder(Schema schema, Codec codec = Codec.Adaptive, int rpc = 0, int copies = 0)
        {
            var c = new Native.EncoderConfig { struct_size = Layout<Native.EncoderConfig>.Size, codec = (int)codec, rpc = rpc, copies = copies };
            IntPtr pointer;
            UplinkException.Check(Native.uplink_encoder_create(IntPtr.Zero, schema, ref c, out pointer), "encoder");
            Created(pointer, schema);
        }

        /// <summary>Encodes a call into the array to, and returns the size of the payload.</summary>
        public int Encode(Frame frame, byte[] to)
        {
            UIntPtr size;
            UplinkException.Check(Native.uplink_encoder_encode(this, frame, to, Native.Size(to.Length), out size), "encode");
            return (int)size;
        }

        /// <summary>Processes an ack. It returns false if the ack is invalid or is for another RPC.</summary>
        public bool Ack(byte[] ack, int size)
        {
            UIntPtr used;
            return Native.uplink_encoder_ack(this, ack, Native.Size(ack, size), out used) == 0;
        }

        internal override void Destroy(IntPtr pointer) { Native.uplink_encoder_destroy(pointer); }
    }

    /// <summary>One received call. Frame is valid until the next Decode.</summary>
    public struct Call
    {
        public ulong Sequence;
        public ulong Missed;

        /// <summary>Later calls were delivered before; their Missed contains this one.</summary>
        public bool Late;
        public Frame Frame;
    }

    /// <summary>Decodes the calls of one RPC. Lost, duplicated and reordered payloads are safe.</summary>
    public sealed class RpcDecoder : Handle
    {
        public const int MaxCalls = 16;
        public const int MaxAck = 15;

        readonly Native.NativeCall[] calls = new Native.NativeCall[MaxCalls];
        readonly FrameView[] views = new FrameView[MaxCalls];

        public RpcDecoder(Schema schema, Codec codec = Codec.Adaptive, int rpc = 0, bool deliverLate = false)
        {
            var c = new Native.DecoderConfig { struct_size = Layout<Native.DecoderConfig>.Size, codec = (int)codec, rpc = rpc, deliver_late = deliverLate ? 1 : 0 };
            IntPtr pointer;
            UplinkException.Check(Native.uplink_decoder_create(IntPtr.Zero, schema, ref c, out pointer), "decoder");
            Created(pointer, schema);
            for (int i = 0; i < MaxCalls; i++)
            {
                calls[i].struct_size = Layout<Native.NativeCall>.Size;
                views[i] = new FrameView(this, schema);
            }
        }

        /// <summary>Decodes a payload into the array to, which has MaxCalls elements. n is the number of new
        /// calls. Errors are normal on a lossy path.</summary>
        public UplinkError Decode(byte[] payload, int size, Call[] to, out int n)
        {
            UIntPtr count;
            int e = Native.uplink_decoder_decode(this, payload, Native.Size(payload, size), calls, out count);
            n = (int)count;
            for (int i = 0; i < n; i++)
            {
                views[i].Show(calls[i].frame);
                to[i] = new Call { Sequence = calls[i].sequence, Missed = calls[i].missed, Late = calls[i].late != 0, Frame = views[i] };
            }
            return (UplinkError)e;
        }

        /// <summary>Writes an ack to the array to, which has MaxAck bytes, and returns its size.</summary>
        public int Ack(byte[] to) { return (int)Native.uplink_decoder_ack(this, Native.Room(to, MaxAck)); }

        protected override void Dispose(bool disposing)
        {
            if (disposing)
                foreach (FrameView v in views) v.End();
            base.Dispose(disposing);
        }

        internal override void Destroy(IntPtr pointer) { Native.uplink_decoder_destroy(pointer); }
    }
}
