// The client of an uplink server for C#, which calls a shared library built with UPLINK_CLIENT.
// include/uplink/client.hpp states units, ranges and limits.
using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Net;
using System.Net.Sockets;
using System.Runtime.InteropServices;
using System.Text;

namespace Uplink
{
    public enum EventType
    {
        Connected, Reconnecting, Disconnected, Bound, BindFailed, Message, Answer, Shutdown, Handover, World, Quality, NewSocket, ServerCall,
        StreamOpen, StreamData, StreamEnd, StreamAborted, StreamDone, WorldUpdate, TickMessage, Silent, Mismatch, TickRate
    }

    /// <summary>An event of a client. include/uplink/client.hpp describes which members each type sets. Frame
    /// and Data are valid until the next call of a method of the client.</summary>
    public struct Event
    {
        public EventType Type;
        public int Reason;
        public bool Reliable;
        public int Status;
        public int Rpc;
        public int World;
        public ulong Value;
        public ulong Missed;
        public Frame Frame;
        internal IntPtr Memory;
        internal UIntPtr Length;

        /// <summary>A copy of the event's data.</summary>
        public byte[] Data { get { return Native.Copy(Memory, Length); } }

        /// <summary>The data as text, which describes the cause of BindFailed and of World with status 1, and
        /// the differences of Mismatch.</summary>
        public string Text { get { return Encoding.UTF8.GetString(Data); } }
    }

    [StructLayout(LayoutKind.Sequential)]
    public struct Stats
    {
        public ulong Rtt, MinRtt, Sent, SentBytes, Received, Dropped, Missing, Calls, Acks, ServerCalls, ServerCallsDropped;
        public int Suite, DatagramSize;
    }

    /// <summary>The state of an RPC's jitter buffer at the server, and the rate at which to call the RPC.
    /// Slack and Target are in ns.</summary>
    [StructLayout(LayoutKind.Sequential)]
    public struct Pace
    {
        /// <summary>The speed at which the program's clock should run so that calls arrive when the server
        /// needs them; 1 is the nominal speed.</summary>
        public double Rate;
        public long Slack;
        public ulong Target;

        /// <summary>The number of the server's ticks without a call, and of calls that arrived after their
        /// tick.</summary>
        public ulong Missing, Late;
    }

    /// <summary>The configuration of a client; 0 means the default.</summary>
    [StructLayout(LayoutKind.Sequential)]
    public struct ClientConfig
    {
        public ulong Timeout;
        internal UIntPtr eventBytes, datagramBytes;
        public int Offered, Bindings, Handlers, ReliableQueue, Streams, StreamRate, Worlds;
        /// <summary>If 1, the server may hand the client over to any loopback, private or link-local
        /// address.</summary>
        public int LocalHandovers;
        internal IntPtr server;

        public int EventBytes { set { eventBytes = new UIntPtr((uint)value); } }
        public int DatagramBytes { set { datagramBytes = new UIntPtr((uint)value); } }
    }

    static class NativeClient
    {
        [StructLayout(LayoutKind.Sequential)]
        internal struct BindConfig
        {
            public int codec, reliable, ring, copies, batch;
            public IntPtr prior;
        }

        [StructLayout(LayoutKind.Sequential)]
        internal struct NativeEvent
        {
            public int type, reason, reliable, status, rpc, world;
            public ulong value, missed;
            public IntPtr frame, data;
            public UIntPtr size;
        }

        /// An IP address and a port; ip has 16 bytes in network byte order.
        [StructLayout(LayoutKind.Sequential)]
        internal struct Address
        {
            public int family, port;
            public ulong ip, ipEnd;

            internal bool Same(Address o) { return family == o.family && port == o.port && ip == o.ip && ipEnd == o.ipEnd; }

            internal IPEndPoint EndPoint()
            {
                var bytes = new byte[family == 4 ? 4 : 16];
                for (int i = 0; i < bytes.Length; i++)
                {
                    int at = BitConverter.IsLittleEndian ? i % 8 : 7 - i % 8;
                    bytes[i] = (byte)((i < 8 ? ip : ipEnd) >> (8 * at));
                }
                return new IPEndPoint(new IPAddress(bytes), port);
            }
        }

        [DllImport(Native.Library)] internal static extern IntPtr uplink_reason_text(int reason);
        [DllImport(Native.Library)] internal static extern int uplink_client_create(IntPtr a, ref ClientConfig c, out IntPtr client);
        [DllImport(Native.Library)] internal static extern void uplink_client_destroy(IntPtr c);
        [DllImport(Native.Library)] internal static extern int uplink_client_bind(IntPtr c, IntPtr schema, ref BindConfig b, out int rpc);
        [DllImport(Native.Library)] internal static extern int uplink_client_handle(IntPtr c, IntPtr schema, out int handler);
        [DllImport(Native.Library)] internal static extern int uplink_client_connect(IntPtr c, byte[] token, UIntPtr n, ulong now);
        [DllImport(Native.Library)]
        internal static extern int uplink_client_assign(IntPtr c, byte[] server, byte[] token, UIntPtr n, ulong now);
        [DllImport(Native.Library)] internal static extern void uplink_client_pace(IntPtr c, int rpc, ulong now, out Pace p);
        [DllImport(Native.Library)] internal static extern void uplink_client_close(IntPtr c, int code, ulong now);
        [DllImport(Native.Library)] internal static extern int uplink_client_connected(IntPtr c);
        [DllImport(Native.Library)] internal static extern void uplink_client_receive(IntPtr c, [In] byte[] data, UIntPtr n, ulong now);
        [DllImport(Native.Library)]
        internal static extern UIntPtr uplink_client_next_datagram(IntPtr c, [Out] byte[] to, UIntPtr capacity, out Address server, ulong now);
        [DllImport(Native.Library)] internal static extern int uplink_client_uses(IntPtr c, ref Address server);
        [DllImport(Native.Library)] internal static extern ulong uplink_client_next_timeout(IntPtr c);
        [DllImport(Native.Library)] internal static extern void uplink_client_unreachable(IntPtr c, ref Address server, ulong now);
        [DllImport(Native.Library)] internal static extern void uplink_client_rebind(IntPtr c, ulong now);
        [DllImport(Native.Library)] internal static extern int uplink_client_poll_event(IntPtr c, out NativeEvent e);
        [DllImport(Native.Library)] internal static extern int uplink_client_call(IntPtr c, int rpc, IntPtr frame, ulong now);
        [DllImport(Native.Library)] internal static extern int uplink_client_send(IntPtr c, [In] byte[] data, UIntPtr n, int reliable, ulong now);
        [DllImport(Native.Library)] internal static extern UIntPtr uplink_client_reliable_room(IntPtr c, ulong now);
        [DllImport(Native.Library)] internal static extern int uplink_client_request(IntPtr c, [In] byte[] data, UIntPtr n, out uint id, ulong now);
        [DllImport(Native.Library)] internal static extern int uplink_client_cancel(IntPtr c, uint id);
        [DllImport(Native.Library)] internal static extern int uplink_client_open_stream(IntPtr c, byte[] name, out uint stream, ulong now);
        [DllImport(Native.Library)]
        internal static extern int uplink_client_write_stream(IntPtr c, uint stream, [In] byte[] data, UIntPtr n, out UIntPtr written, ulong now);
        [DllImport(Native.Library)] internal static extern int uplink_client_end_stream(IntPtr c, uint stream);
        [DllImport(Native.Library)] internal static extern int uplink_client_abort_stream(IntPtr c, uint stream, byte[] reason);
        [DllImport(Native.Library)] internal static extern int uplink_client_stop_stream(IntPtr c, uint stream);
        [DllImport(Native.Library)] internal static extern void uplink_client_stats(IntPtr c, out Stats s);
        [DllImport(Native.Library)]
        internal static extern int uplink_issue_token(byte[] key, ulong clientId, ulong issued, byte[] address, [Out] byte[] to, UIntPtr capacity);
    }

    /// <summary>A client with a UDP socket, and during handovers with a socket for each server. It is for one
    /// thread at a time.</summary>
    public sealed class UplinkClient : Handle
    {
        const int MaxDatagram = 1472;

        readonly FrameView view = new FrameView();
        readonly byte[] datagram = new byte[2048];
        readonly IPEndPoint server;
        readonly List<End> ends = new List<End>();
        readonly List<Socket> readable = new List<Socket>();

        /// A socket that is connected to a server. The address is zero for the server of Connect.
        sealed class End
        {
            internal NativeClient.Address To;
            internal Socket Socket;
        }

        /// <summary>Creates a client. The schemas passed to Bind and HandleCalls must outlive it.</summary>
        public UplinkClient(IPEndPoint server, ClientConfig config = default(ClientConfig))
        {
            this.server = server;
            config.server = Marshal.StringToHGlobalAnsi(server.ToString());
            try
            {
                UplinkException.Check(NativeClient.uplink_client_create(IntPtr.Zero, ref config, out Pointer), "client");
            }
            finally
            {
                Marshal.FreeHGlobal(config.server);
            }
            OpenSocket(default(NativeClient.Address));
        }

        /// <summary>The current time of a monotonic clock in ns, for all methods with a parameter
        /// now.</summary>
        public static ulong Now { get { return (ulong)(Stopwatch.GetTimestamp() * (1e9 / Stopwatch.Frequency)); } }

        public static string ReasonText(int reason) { return Marshal.PtrToStringAnsi(NativeClient.uplink_reason_text(reason)); }

        End OpenSocket(NativeClient.Address to)
        {
            IPEndPoint address = to.family == 0 ? server : to.EndPoint();
            var socket = new Socket(address.AddressFamily, SocketType.Dgram, ProtocolType.Udp);
            socket.Blocking = false;
            // .NET has no such option for IPv6. The system then fragments datagrams that ICMP reports as too
            // large.
            if (address.AddressFamily == AddressFamily.InterNetwork) socket.DontFragment = true;
            socket.Connect(address);
            var end = new End { To = to, Socket = socket };
            ends.Add(end);
            return end;
        }

        void CloseSockets()
        {
            foreach (End end in ends) end.Socket.Close();
            ends.Clear();
        }

        /// <summary>Continues from another local port, after the event NewSocket.</summary>
        public void Rebind()
        {
            CloseSockets();
            OpenSocket(default(NativeClient.Address));
            NativeClient.uplink_client_rebind(Pointer, Now);
        }

        /// <summary>Binds an RPC of the server, which must not be bound already, and returns its number. The
        /// event Bound follows in each session.</summary>
        public int Bind(Schema schema, Codec codec = Codec.Adaptive, bool reliable = false, int copies = 0, int batch = 0)
        {
            int rpc;
            var b = new NativeClient.BindConfig { codec = (int)codec, reliable = reliable ? 1 : 0, copies = copies, batch = batch };
            UplinkException.Check(NativeClient.uplink_client_bind(Pointer, schema.Pointer, ref b, out rpc), "bind");
            return rpc;
        }

        /// <summary>Registers an RPC that the server can call. Its calls are events ServerCall whose Rpc is
        /// the returned number.</summary>
        public int HandleCalls(Schema schema)
        {
            int handler;
            UplinkException.Check(NativeClient.uplink_client_handle(Pointer, schema.Pointer, out handler), "handle");
            return handler;
        }

        public void Connect(string token)
        {
            byte[] text = Encoding.ASCII.GetBytes(token);
            UplinkException.Check(NativeClient.uplink_client_connect(Pointer, text, Native.Size(text.Length), Now), "token");
        }

        /// <summary>Connects to a server that the backend has assigned to the player, with its token. After
        /// Reconnecting it replaces Connect. After Silent, the client keeps its session until the new one is
        /// ready, and switches with events Handover.</summary>
        public Error Assign(IPEndPoint assigned, string token)
        {
            byte[] text = Encoding.ASCII.GetBytes(token);
            return (Error)NativeClient.uplink_client_assign(Pointer, Native.Text(assigned.ToString()), text, Native.Size(text.Length), Now);
        }

        /// <summary>The state of an RPC's jitter buffer. Start the next tick after the nominal interval
        /// divided by Pace.Rate.</summary>
        public Pace Pace(int rpc)
        {
            Pace p;
            NativeClient.uplink_client_pace(Pointer, rpc, Now, out p);
            return p;
        }

        public void Close(int code = 0) { NativeClient.uplink_client_close(Pointer, code, Now); }

        public bool Connected { get { return NativeClient.uplink_client_connected(Pointer) != 0; } }

        public Stats Stats
        {
            get
            {
                Stats s;
                NativeClient.uplink_client_stats(Pointer, out s);
                return s;
            }
        }

        /// <summary>Receives and sends all pending datagrams. Call it in each frame of the game, and then
        /// Poll until it returns false.</summary>
        public void Run()
        {
            foreach (End end in ends) Receive(end);
            NativeClient.Address to;
            for (int n = Next(out to); n > 0; n = Next(out to))
            {
                try { EndTo(to).Socket.Send(datagram, n, SocketFlags.None); }
                catch (SocketException e) { Failed(to, e); } // the datagram is lost
            }
            for (int i = ends.Count - 1; i > 0; i--)
            {
                NativeClient.Address unused = ends[i].To;
                if (unused.family == 0 || NativeClient.uplink_client_uses(Pointer, ref unused) != 0) continue;
                ends[i].Socket.Close();
                ends.RemoveAt(i);
            }
        }

        /// Passes on the system's report that no program receives at a server's address.
        void Failed(NativeClient.Address server, SocketException e)
        {
            if (e.SocketErrorCode == SocketError.ConnectionRefused || e.SocketErrorCode == SocketError.ConnectionReset)
                NativeClient.uplink_client_unreachable(Pointer, ref server, Now);
        }

        void Receive(End end)
        {
            for (int i = 0; i < 1024 && end.Socket.Available > 0; i++)
            {
                int n;
                try { n = end.Socket.Receive(datagram); }
                catch (SocketException e) // the server's port is closed, or the datagram is too long
                {
                    Failed(end.To, e);
                    continue;
                }
                NativeClient.uplink_client_receive(Pointer, datagram, Native.Size(n), Now);
            }
        }

        End EndTo(NativeClient.Address to)
        {
            foreach (End end in ends)
                if (end.To.Same(to)) return end;
            return OpenSocket(to);
        }

        int Next(out NativeClient.Address to)
        {
            return (int)NativeClient.uplink_client_next_datagram(Pointer, datagram, Native.Size(MaxDatagram), out to, Now);
        }

        /// <summary>Waits for a datagram, until Run has something to do, but at most ms
        /// milliseconds.</summary>
        public void Wait(int ms)
        {
            ulong now = Now, due = NativeClient.uplink_client_next_timeout(Pointer);
            ulong us = due <= now ? 0 : Math.Min((due - now) / 1000, (ulong)ms * 1000);
            if (us == 0) return;
            readable.Clear();
            foreach (End end in ends) readable.Add(end.Socket);
            Socket.Select(readable, null, null, (int)us);
        }

        public bool Poll(out Event e)
        {
            NativeClient.NativeEvent n;
            e = default(Event);
            if (NativeClient.uplink_client_poll_event(Pointer, out n) == 0) return false;
            view.Pointer = n.frame;
            e = new Event
            {
                Type = (EventType)n.type, Reason = n.reason, Reliable = n.reliable != 0, Status = n.status, Rpc = n.rpc, World = n.world, Value = n.value,
                Missed = n.missed, Frame = n.frame == IntPtr.Zero ? null : view, Memory = n.data, Length = n.size
            };
            return true;
        }

        /// <summary>Sends a call. Closed: the RPC is not bound now. Full: too many calls and messages wait
        /// for a datagram. Backlog: too much reliable data waits.</summary>
        public Error Call(int rpc, Frame frame) { return (Error)NativeClient.uplink_client_call(Pointer, rpc, frame.Pointer, Now); }

        /// <summary>The size of the largest reliable message or request that can be sent now, at most 8,192 bytes.</summary>
        public int ReliableRoom { get { return (int)NativeClient.uplink_client_reliable_room(Pointer, Now); } }

        /// <summary>Sends a message of the game. Backlog: too much reliable data waits, see ReliableRoom.
        /// TooFast: the client would send more in a second than the server accepts.</summary>
        public Error Send(byte[] message, bool reliable)
        {
            return (Error)NativeClient.uplink_client_send(Pointer, message, Native.Size(message.Length), reliable ? 1 : 0, Now);
        }

        public Error Request(byte[] body, out uint id)
        {
            return (Error)NativeClient.uplink_client_request(Pointer, body, Native.Size(body.Length), out id, Now);
        }

        public Error Cancel(uint id) { return (Error)NativeClient.uplink_client_cancel(Pointer, id); }

        public Error OpenStream(string name, out uint stream) { return (Error)NativeClient.uplink_client_open_stream(Pointer, Native.Text(name), out stream, Now); }

        public Error WriteStream(uint stream, byte[] data, int size, out int written)
        {
            UIntPtr n;
            int e = NativeClient.uplink_client_write_stream(Pointer, stream, data, Native.Size(size), out n, Now);
            written = (int)n;
            return (Error)e;
        }

        public Error EndStream(uint stream) { return (Error)NativeClient.uplink_client_end_stream(Pointer, stream); }
        public Error AbortStream(uint stream, string reason) { return (Error)NativeClient.uplink_client_abort_stream(Pointer, stream, Native.Text(reason)); }
        public Error StopStream(uint stream) { return (Error)NativeClient.uplink_client_stop_stream(Pointer, stream); }

        /// <summary>Issues a token, for tests and tools; if key is null, with the development key. A game
        /// gets its tokens from a backend.</summary>
        public static string IssueToken(string key, ulong clientId, IPEndPoint server)
        {
            var text = new byte[779];
            ulong issued = (ulong)(DateTime.UtcNow - new DateTime(1970, 1, 1, 0, 0, 0, DateTimeKind.Utc)).TotalMilliseconds;
            UplinkException.Check(NativeClient.uplink_issue_token(key == null ? null : Native.Text(key), clientId, issued, Native.Text(server.ToString()), text, Native.Size(text.Length)), "token");
            return Encoding.ASCII.GetString(text, 0, Array.IndexOf(text, (byte)0));
        }

        internal override void Destroy(IntPtr pointer)
        {
            NativeClient.uplink_client_destroy(pointer);
            CloseSockets();
        }
    }
}
