// The codec of RPCs for C#: Unity, Godot, .NET and Mono. It calls the shared library "uplink" with P/Invoke,
// and requires only netstandard2.0. include/uplink/codec.hpp states units, ranges and limits.
//
// A Schema can be used by any thread. A Frame, Encoder or Decoder is for one thread at a time. Dispose frees
// memory of the library. A schema must outlive all objects that were created with it.
using System;
using System.Collections.Generic;
using System.Runtime.InteropServices;
using System.Text;

namespace Uplink
{
    /// <summary>The type of the values of a field.</summary>
    public enum Kind { Vec2, Vec3, Scalar, Angle, Quat, UnitVec, UInt, Int, Bits, Bool, Fixed, Bytes }

    public enum Codec { Rle, Adaptive }

    /// <summary>Results of the functions of the library; 0 means success.</summary>
    public enum Error
    {
        Ok, NoMemory, Invalid, TooSmall, Malformed, NoBaseline, Duplicate, Stale, Full, Closed, Refused, Authentication, Desync, Backlog, TooFast
    }

    /// <summary>An error that a lossy network does not cause.</summary>
    public sealed class UplinkException : Exception
    {
        public Error Error { get; }

        internal UplinkException(Error error, string what)
            : base(what + ": " + Marshal.PtrToStringAnsi(Native.uplink_error_text((int)error)))
        {
            Error = error;
        }

        internal static void Check(int error, string what)
        {
            if (error != 0) throw new UplinkException((Error)error, what);
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
#if UNITY_IOS || UNITY_WEBGL
        internal const string Library = "__Internal";
#else
        internal const string Library = "uplink";
#endif

        [StructLayout(LayoutKind.Sequential)]
        internal struct NativeField
        {
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
            public int codec, rpc, ring, peer_ring, copies, reliable, max_payload;
            public IntPtr prior;
        }

        [StructLayout(LayoutKind.Sequential)]
        internal struct DecoderConfig
        {
            public int codec, rpc, ring, peer_ring, reliable;
            public IntPtr prior;
        }

        [StructLayout(LayoutKind.Sequential)]
        internal struct NativeCall
        {
            public ulong sequence;
            public ulong missed;
            public IntPtr frame;
        }

        [DllImport(Library)] internal static extern IntPtr uplink_error_text(int e);
        [DllImport(Library)] internal static extern IntPtr uplink_version();
        [DllImport(Library)]
        internal static extern int uplink_schema_create(IntPtr a, byte[] rpc, double rate, [In] NativeField[] fields, UIntPtr n, out IntPtr schema, out UIntPtr field);
        [DllImport(Library)] internal static extern void uplink_schema_destroy(IntPtr s);
        [DllImport(Library)] internal static extern UIntPtr uplink_schema_components(IntPtr s);
        [DllImport(Library)] internal static extern ulong uplink_schema_fingerprint(IntPtr s);
        [DllImport(Library)] internal static extern int uplink_frame_create(IntPtr a, IntPtr schema, out IntPtr frame);
        [DllImport(Library)] internal static extern void uplink_frame_destroy(IntPtr f);
        [DllImport(Library)] internal static extern int uplink_frame_set(IntPtr f, UIntPtr field, [In] double[] values, UIntPtr n);
        [DllImport(Library)] internal static extern int uplink_frame_set_integers(IntPtr f, UIntPtr field, [In] ulong[] values, UIntPtr n);
        [DllImport(Library)] internal static extern int uplink_frame_set_bytes(IntPtr f, UIntPtr field, [In] byte[] data, UIntPtr n);
        [DllImport(Library)] internal static extern int uplink_frame_get(IntPtr f, UIntPtr field, [Out] double[] values, UIntPtr n);
        [DllImport(Library)] internal static extern int uplink_frame_get_integers(IntPtr f, UIntPtr field, [Out] ulong[] values, UIntPtr n);
        [DllImport(Library)] internal static extern int uplink_frame_get_bytes(IntPtr f, UIntPtr field, out IntPtr data, out UIntPtr n);
        [DllImport(Library)] internal static extern int uplink_encoder_create(IntPtr a, IntPtr schema, ref EncoderConfig c, out IntPtr encoder);
        [DllImport(Library)] internal static extern void uplink_encoder_destroy(IntPtr e);
        [DllImport(Library)] internal static extern int uplink_encoder_encode(IntPtr e, IntPtr frame, [Out] byte[] to, UIntPtr capacity, out UIntPtr size);
        [DllImport(Library)] internal static extern int uplink_encoder_ack(IntPtr e, [In] byte[] data, UIntPtr n, out UIntPtr used);
        [DllImport(Library)] internal static extern int uplink_decoder_create(IntPtr a, IntPtr schema, ref DecoderConfig c, out IntPtr decoder);
        [DllImport(Library)] internal static extern void uplink_decoder_destroy(IntPtr d);
        [DllImport(Library)] internal static extern IntPtr uplink_frame_components(IntPtr f);
        [DllImport(Library)]
        internal static extern int uplink_decoder_decode(IntPtr d, [In] byte[] payload, UIntPtr n, [In, Out] NativeCall[] calls, out UIntPtr count);
        [DllImport(Library)] internal static extern UIntPtr uplink_decoder_ack(IntPtr d, [Out] byte[] to);

        internal static UIntPtr Size(int n) { return new UIntPtr((uint)n); }

        internal static byte[] Text(string s) { return Encoding.UTF8.GetBytes(s + "\0"); }

        internal static byte[] Copy(IntPtr data, UIntPtr n)
        {
            var copy = new byte[(int)n];
            if (copy.Length > 0) Marshal.Copy(data, copy, 0, copy.Length);
            return copy;
        }
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

    /// <summary>An object of the library.</summary>
    public abstract class Handle : IDisposable
    {
        internal IntPtr Pointer;

        internal abstract void Destroy(IntPtr pointer);

        public void Dispose()
        {
            if (Pointer != IntPtr.Zero) Destroy(Pointer);
            Pointer = IntPtr.Zero;
            GC.SuppressFinalize(this);
        }

        ~Handle() { if (Pointer != IntPtr.Zero) Destroy(Pointer); }
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
                        name = texts.Add(f.Name ?? ""), kind = (int)f.Kind, count = f.Count, resolution = f.Resolution, bits = f.Bits, width = f.Width,
                        size = f.Size, has_min = f.Min.HasValue ? 1 : 0, has_max = f.Max.HasValue ? 1 : 0, min = f.Min ?? 0, max = f.Max ?? 0,
                        velocity = texts.Add(f.Velocity), velocity_scale = f.VelocityScale
                    };
                }
                UIntPtr wrong;
                int e = Native.uplink_schema_create(IntPtr.Zero, Native.Text(rpc), rateHz, native, Native.Size(fields.Length), out Pointer, out wrong);
                int index = (int)wrong;
                UplinkException.Check(e, index < fields.Length ? "field " + fields[index].Name : "schema " + rpc);
            }
        }

        /// <summary>A hash that is equal at both ends if their schemas are equal.</summary>
        public ulong Fingerprint { get { return Native.uplink_schema_fingerprint(Pointer); } }

        internal override void Destroy(IntPtr pointer) { Native.uplink_schema_destroy(pointer); }
    }

    /// <summary>The quantized arguments of a call: a frame of the program, or a view of a received
    /// frame.</summary>
    public class Frame : Handle
    {
        internal Frame(IntPtr view) { Pointer = view; }

        public Frame(Schema schema)
        {
            UplinkException.Check(Native.uplink_frame_create(IntPtr.Zero, schema.Pointer, out Pointer), "frame");
        }

        public void Set(int field, params double[] values)
        {
            UplinkException.Check(Native.uplink_frame_set(Pointer, Native.Size(field), values, Native.Size(values.Length)), "field " + field);
        }

        /// <summary>Sets the values of a field of the kind uint, int (in two's complement), bits or
        /// bool.</summary>
        public void SetIntegers(int field, params ulong[] values)
        {
            UplinkException.Check(Native.uplink_frame_set_integers(Pointer, Native.Size(field), values, Native.Size(values.Length)), "field " + field);
        }

        public void SetBytes(int field, byte[] value)
        {
            UplinkException.Check(Native.uplink_frame_set_bytes(Pointer, Native.Size(field), value, Native.Size(value.Length)), "field " + field);
        }

        public void Get(int field, double[] values)
        {
            UplinkException.Check(Native.uplink_frame_get(Pointer, Native.Size(field), values, Native.Size(values.Length)), "field " + field);
        }

        public void GetIntegers(int field, ulong[] values)
        {
            UplinkException.Check(Native.uplink_frame_get_integers(Pointer, Native.Size(field), values, Native.Size(values.Length)), "field " + field);
        }

        public byte[] GetBytes(int field)
        {
            IntPtr data;
            UIntPtr n;
            UplinkException.Check(Native.uplink_frame_get_bytes(Pointer, Native.Size(field), out data, out n), "field " + field);
            return Native.Copy(data, n);
        }

        /// <summary>Returns a copy of the integers that are coded. schema is the schema of the
        /// frame.</summary>
        public int[] Components(Schema schema)
        {
            var copy = new int[(int)Native.uplink_schema_components(schema.Pointer)];
            if (copy.Length > 0) Marshal.Copy(Native.uplink_frame_components(Pointer), copy, 0, copy.Length);
            return copy;
        }

        internal override void Destroy(IntPtr pointer) { Native.uplink_frame_destroy(pointer); }
    }

    /// <summary>A frame that belongs to another object of the library.</summary>
    sealed class FrameView : Frame
    {
        internal FrameView() : base(IntPtr.Zero) { GC.SuppressFinalize(this); }

        internal override void Destroy(IntPtr pointer) { }
    }

    /// <summary>Encodes the calls of one RPC.</summary>
    public sealed class Encoder : Handle
    {
        public const int MaxPayload = 1197;

        public Encoder(Schema schema, Codec codec = Codec.Adaptive, int rpc = 0, int copies = 0)
        {
            var c = new Native.EncoderConfig { codec = (int)codec, rpc = rpc, copies = copies };
            UplinkException.Check(Native.uplink_encoder_create(IntPtr.Zero, schema.Pointer, ref c, out Pointer), "encoder");
        }

        /// <summary>Encodes a call into the array to, and returns the size of the payload.</summary>
        public int Encode(Frame frame, byte[] to)
        {
            UIntPtr size;
            UplinkException.Check(Native.uplink_encoder_encode(Pointer, frame.Pointer, to, Native.Size(to.Length), out size), "encode");
            return (int)size;
        }

        /// <summary>Processes an ack. It returns false if the ack is invalid or is for another RPC.</summary>
        public bool Ack(byte[] ack, int size)
        {
            UIntPtr used;
            return Native.uplink_encoder_ack(Pointer, ack, Native.Size(size), out used) == 0;
        }

        internal override void Destroy(IntPtr pointer) { Native.uplink_encoder_destroy(pointer); }
    }

    /// <summary>One received call. Frame is valid until the next Decode.</summary>
    public struct Call
    {
        public ulong Sequence;
        public ulong Missed;
        public Frame Frame;
    }

    /// <summary>Decodes the calls of one RPC. Lost, duplicated, reordered and forged payloads are
    /// safe.</summary>
    public sealed class Decoder : Handle
    {
        public const int MaxCalls = 16;
        public const int MaxAck = 15;

        readonly Native.NativeCall[] calls = new Native.NativeCall[MaxCalls];
        readonly FrameView[] views = new FrameView[MaxCalls];

        public Decoder(Schema schema, Codec codec = Codec.Adaptive, int rpc = 0)
        {
            var c = new Native.DecoderConfig { codec = (int)codec, rpc = rpc };
            UplinkException.Check(Native.uplink_decoder_create(IntPtr.Zero, schema.Pointer, ref c, out Pointer), "decoder");
            for (int i = 0; i < MaxCalls; i++) views[i] = new FrameView();
        }

        /// <summary>Decodes a payload into the array to, which has MaxCalls elements. n is the number of new
        /// calls. Errors are normal on a lossy path.</summary>
        public Error Decode(byte[] payload, int size, Call[] to, out int n)
        {
            UIntPtr count;
            int e = Native.uplink_decoder_decode(Pointer, payload, Native.Size(size), calls, out count);
            n = (int)count;
            for (int i = 0; i < n; i++)
            {
                views[i].Pointer = calls[i].frame;
                to[i] = new Call { Sequence = calls[i].sequence, Missed = calls[i].missed, Frame = views[i] };
            }
            return (Error)e;
        }

        /// <summary>Writes an ack to the array to, which has MaxAck bytes, and returns its size.</summary>
        public int Ack(byte[] to)
        {
            return (int)Native.uplink_decoder_ack(Pointer, to);
        }

        internal override void Destroy(IntPtr pointer) { Native.uplink_decoder_destroy(pointer); }
    }
}
