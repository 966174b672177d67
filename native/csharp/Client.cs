// The client of an uplink server for C#, which calls a shared library built with UPLINK_CRYPTO.
// include/uplink/client.hpp states units, ranges and limits.
using System;
using System.Collections.Generic;
using System.Net;
using System.Runtime.ExceptionServices;
using System.Runtime.InteropServices;
using System.Text;

namespace Uplink
{
    public enum UplinkEventType
    {
        Connected, Reconnecting, Disconnected, Bound, BindFailed, Message, Answer, Shutdown, Handover, World, Quality, NewSocket, ServerCall,
        StreamOpen, StreamData, StreamEnd, StreamAborted, StreamDone, WorldUpdate, TickMessage, Silent, Mismatch, TickRate
    }

    /// <summary>An event of a client. include/uplink/client.hpp describes which members each type sets. Frame
    /// and the data are valid until the next Poll or Run of the client.</summary>
    public struct UplinkEvent
    {
        public UplinkEventType Type;
        public int Reason;
        public bool Reliable;
        public int Status;
        public int Rpc;
        public int World;
        public ulong Value;
        public ulong Missed;
        public Frame Frame;
        internal Handle Owner;
        internal int Changes;
        internal IntPtr Memory;

        /// <summary>The size of the data in bytes.</summary>
        public int Size { get; internal set; }

        /// <summary>What happened, in English: the type, status, reason and text of the event.</summary>
        public override string ToString()
        {
            if (Owner != null) Owner.CheckView(Changes);
            var e = new NativeClient.NativeEvent
            {
                struct_size = Layout<NativeClient.NativeEvent>.Size, type = (int)Type, reason = Reason, status = Status, rpc = Rpc, world = World,
                value = Value, missed = Missed, data = Memory, size = Native.Size(Size)
            };
            var text = new byte[1024];
            int n = (int)NativeClient.uplink_event_text(ref e, text, Native.Size(text.Length));
            return Encoding.UTF8.GetString(text, 0, n);
        }

        /// <summary>Copies the data to an array and returns its size.</summary>
        public int CopyTo(byte[] to)
        {
            Owner.CheckView(Changes);
            return Native.CopyTo(Memory, Size, to);
        }

        /// <summary>Returns a copy of the data.</summary>
        public byte[] Data
        {
            get
            {
                Owner.CheckView(Changes);
                return Native.Copy(Memory, Size);
            }
        }

        /// <summary>The data as text, which describes the cause of BindFailed and of World with status 1, and
        /// the differences of Mismatch.</summary>
        public string Text { get { return Encoding.UTF8.GetString(Data); } }
    }

    [StructLayout(LayoutKind.Sequential)]
    public struct Stats
    {
        internal uint structSize;
        public ulong Rtt, MinRtt, Sent, SentBytes, Received, Dropped, Missing, Calls, Acks, ServerCalls, ServerCallsDropped;
        public int Suite, DatagramSize;
        /// <summary>The rate of the path to the server as far as is known, in bytes/s with all headers.</summary>
        public ulong PathRate;
        /// <summary>The time that the last measured datagram waited in the queue of the path, in ns.</summary>
        public ulong PathQueue;
    }

    /// <summary>The state of an RPC's jitter buffer at the server, and the rate at which to call the RPC.
    /// Slack and Target are in ns.</summary>
    [StructLayout(LayoutKind.Sequential)]
    public struct Pace
    {
        internal uint structSize;
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
        internal uint structSize;
        internal IntPtr log;
        /// <summary>A pointer to an uplink_crypto of the program, which must outlive the client; zero selects
        /// the functions of the library.</summary>
        public IntPtr Crypto;
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

    /// <summary>Values of UplinkEvent.Status by type of event; include/uplink/client.hpp describes them.</summary>
    public enum WorldStatus { Received, Refused, Ended, Partial }

    public enum HandoverStatus { Begins, Switched, Stays }

    public enum AnswerStatus { Answered = 2, Refused, Unhandled, None }

    public enum StreamStatus { Read, Stopped, Unread }

    /// <summary>How important a line of the log is: Debug is about single messages.</summary>
    public enum UplinkLogLevel { Debug, Info, Warning }

    /// <summary>Conditions of one direction of a simulated link. Times are in ns, shares from 0 to 1.</summary>
    [StructLayout(LayoutKind.Sequential)]
    public struct LinkConditions
    {
        internal uint structSize;
        /// <summary>The shares of datagrams that are lost, and that arrive twice.</summary>
        public double Loss, Duplicate;
        /// <summary>The delay of each datagram, and up to how much longer some take.</summary>
        public ulong Delay, Jitter;
        public ulong Seed;
    }

    static class NativeClient
    {
        [StructLayout(LayoutKind.Sequential)]
        internal struct BindConfig
        {
            public uint struct_size;
            public int codec, reliable, ring, copies, batch;
            public IntPtr prior;
        }

        [StructLayout(LayoutKind.Sequential)]
        internal struct Log
        {
            public uint struct_size;
            public IntPtr context, write;
        }

        [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
        internal delegate void Write(IntPtr context, int level, IntPtr text);

        [StructLayout(LayoutKind.Sequential)]
        internal struct NativeEvent
        {
            public uint struct_size;
            public int type, reason, reliable, status, rpc, world;
            public ulong value, missed;
            public IntPtr frame, data;
            public UIntPtr size;
        }

        [DllImport(Native.Library)] internal static extern IntPtr uplink_reason_text(int reason);
        [DllImport(Native.Library)] internal static extern UIntPtr uplink_event_text(ref NativeEvent e, [Out] byte[] to, UIntPtr capacity);
        [DllImport(Native.Library)] internal static extern int uplink_client_create(IntPtr a, ref ClientConfig c, out IntPtr client);
        [DllImport(Native.Library)] internal static extern void uplink_client_destroy(IntPtr c);
        [DllImport(Native.Library)] internal static extern int uplink_client_bind(UplinkClient c, Schema s, ref BindConfig b, out int rpc);
        [DllImport(Native.Library)] internal static extern int uplink_client_handle(UplinkClient c, Schema s, out int handler);
        [DllImport(Native.Library)] internal static extern int uplink_client_connect(UplinkClient c, byte[] token, UIntPtr n, ulong now);
        [DllImport(Native.Library)]
        internal static extern int uplink_client_assign(UplinkClient c, byte[] server, byte[] token, UIntPtr n, ulong now);
        [DllImport(Native.Library)] internal static extern void uplink_client_pace(UplinkClient c, int rpc, ulong now, ref Pace p);
        [DllImport(Native.Library)] internal static extern void uplink_client_close(UplinkClient c, int code, ulong now);
        [DllImport(Native.Library)] internal static extern int uplink_client_connected(UplinkClient c);
        [DllImport(Native.Library)] internal static extern ulong uplink_client_next_timeout(UplinkClient c);
        [DllImport(Native.Library)] internal static extern void uplink_client_rebind(UplinkClient c, ulong now);
        [DllImport(Native.Library)] internal static extern int uplink_client_poll_event(UplinkClient c, ref NativeEvent e);
        [DllImport(Native.Library)] internal static extern int uplink_client_call(UplinkClient c, int rpc, Frame f, ulong now);
        [DllImport(Native.Library)] internal static extern int uplink_client_send(UplinkClient c, [In] byte[] data, UIntPtr n, int reliable, ulong now);
        [DllImport(Native.Library)] internal static extern UIntPtr uplink_client_reliable_room(UplinkClient c, ulong now);
        [DllImport(Native.Library)] internal static extern int uplink_client_request(UplinkClient c, [In] byte[] data, UIntPtr n, out uint id, ulong now);
        [DllImport(Native.Library)] internal static extern int uplink_client_cancel(UplinkClient c, uint id);
        [DllImport(Native.Library)] internal static extern int uplink_client_open_stream(UplinkClient c, byte[] name, out uint stream, ulong now);
        [DllImport(Native.Library)]
        internal static extern int uplink_client_write_stream(UplinkClient c, uint stream, [In] byte[] data, UIntPtr n, out UIntPtr written, ulong now);
        [DllImport(Native.Library)] internal static extern int uplink_client_end_stream(UplinkClient c, uint stream);
        [DllImport(Native.Library)] internal static extern int uplink_client_abort_stream(UplinkClient c, uint stream, byte[] reason);
        [DllImport(Native.Library)] internal static extern int uplink_client_stop_stream(UplinkClient c, uint stream);
        [DllImport(Native.Library)] internal static extern void uplink_client_stats(UplinkClient c, ref Stats s);
        [DllImport(Native.Library)] internal static extern IntPtr uplink_library_crypto();
        [DllImport(Native.Library)] internal static extern ulong uplink_now();
        [DllImport(Native.Library)] internal static extern int uplink_socket_create(IntPtr a, out IntPtr socket);
        [DllImport(Native.Library)] internal static extern void uplink_socket_destroy(IntPtr s);
        [DllImport(Native.Library)] internal static extern int uplink_socket_open(NativeSocket s, byte[] server);
        [DllImport(Native.Library)] internal static extern void uplink_socket_run(NativeSocket s, UplinkClient c);
        [DllImport(Native.Library)] internal static extern void uplink_socket_wait(NativeSocket s, ulong ns);
        [DllImport(Native.Library)] internal static extern int uplink_socket_start(NativeSocket s, IntPtr a, UplinkClient c);
        [DllImport(Native.Library)] internal static extern void uplink_socket_release(NativeSocket s);
        [DllImport(Native.Library)]
        internal static extern int uplink_socket_simulate(NativeSocket s, IntPtr a, ref LinkConditions toServer, ref LinkConditions fromServer);
        [DllImport(Native.Library)]
        internal static extern int uplink_issue_token(IntPtr crypto, byte[] key, ulong clientId, ulong issued, byte[] address, [Out] byte[] to, UIntPtr capacity);
    }

    /// The UDP socket of a client, and during handovers a socket for each server.
    sealed class NativeSocket : Handle
    {
        internal NativeSocket()
        {
            IntPtr pointer;
            UplinkException.Check(NativeClient.uplink_socket_create(IntPtr.Zero, out pointer), "socket");
            Created(pointer);
        }

        internal override void Destroy(IntPtr pointer) { NativeClient.uplink_socket_destroy(pointer); }
    }

    /// <summary>A client with a UDP socket, and during handovers with a socket for each server. It is for one
    /// thread at a time.</summary>
    public sealed class UplinkClient : Handle
    {
        readonly FrameView view;
        readonly byte[] server;
        readonly NativeSocket socket;
        readonly List<Schema> handlers = new List<Schema>();
        readonly ClientWorld[] worlds = new ClientWorld[16];

        static readonly NativeClient.Write write = OnWrite; // kept, since the library calls it

        readonly Action<UplinkLogLevel, string> log;
        GCHandle self, logTable; // of the log
        Exception thrown;        // by the log

        /// <summary>log gets a line for each event that is polled, attempts to connect, and datagrams that
        /// are dropped; with StartThread also in the thread. It must not call the client.</summary>
        public UplinkClient(IPEndPoint server, ClientConfig config = default(ClientConfig), Action<UplinkLogLevel, string> log = null)
        {
            this.server = Native.Text(server.ToString());
            this.log = log;
            IntPtr pointer;
            using (var texts = new Texts())
            {
                if (log != null)
                {
                    self = GCHandle.Alloc(this, GCHandleType.Weak);
                    object table = new NativeClient.Log
                    {
                        struct_size = Layout<NativeClient.Log>.Size, context = GCHandle.ToIntPtr(self), write = Marshal.GetFunctionPointerForDelegate(write)
                    };
                    logTable = GCHandle.Alloc(table, GCHandleType.Pinned);
                    config.log = logTable.AddrOfPinnedObject();
                }
                config.structSize = Layout<ClientConfig>.Size;
                if (config.Crypto == IntPtr.Zero) config.Crypto = NativeClient.uplink_library_crypto();
                config.server = texts.Add(server.ToString());
                int e = NativeClient.uplink_client_create(IntPtr.Zero, ref config, out pointer);
                if (e != 0) FreeLog();
                UplinkException.Check(e, "client");
            }
            Created(pointer);
            view = new FrameView(this);
            socket = new NativeSocket();
            UplinkException.Check(NativeClient.uplink_socket_open(socket, this.server), "socket");
        }

#if UNITY_5_3_OR_NEWER
        [AOT.MonoPInvokeCallback(typeof(NativeClient.Write))] // for compilers ahead of time
#endif
        static void OnWrite(IntPtr context, int level, IntPtr text)
        {
            var c = GCHandle.FromIntPtr(context).Target as UplinkClient;
            if (c == null) return;
            try { c.log((UplinkLogLevel)level, Marshal.PtrToStringAnsi(text)); }
            catch (Exception e) { c.thrown = c.thrown ?? e; } // it cannot pass the library
        }

        void FreeLog()
        {
            if (logTable.IsAllocated) logTable.Free();
            if (self.IsAllocated) self.Free();
        }

        /// <summary>The current time of a monotonic clock in ns, for all methods with a parameter
        /// now.</summary>
        public static ulong Now { get { return NativeClient.uplink_now(); } }

        public static string ReasonText(int reason) { return Marshal.PtrToStringAnsi(NativeClient.uplink_reason_text(reason)); }

        /// <summary>Continues from another local port, after the event NewSocket.</summary>
        public void Rebind()
        {
            UplinkException.Check(NativeClient.uplink_socket_open(socket, server), "socket");
            NativeClient.uplink_client_rebind(this, Now);
        }

        internal void Add(ClientWorld world, int number)
        {
            Remove(number);
            Keep(world);
            worlds[number] = world;
        }

        internal void Remove(int number)
        {
            if (worlds[number] != null) LetGo(worlds[number]);
            worlds[number] = null;
        }

        /// <summary>Binds an RPC of the server, which must not be bound already, and returns its number. The
        /// event Bound follows in each session.</summary>
        public int Bind(Schema schema, Codec codec = Codec.Adaptive, bool reliable = false, int copies = 0, int batch = 0)
        {
            int rpc;
            var b = new NativeClient.BindConfig { struct_size = Layout<NativeClient.BindConfig>.Size, codec = (int)codec, reliable = reliable ? 1 : 0, copies = copies, batch = batch };
            UplinkException.Check(NativeClient.uplink_client_bind(this, schema, ref b, out rpc), "bind");
            Keep(schema);
            return rpc;
        }

        /// <summary>Registers an RPC that the server can call. Its calls are events ServerCall whose Rpc is
        /// the returned number.</summary>
        public int HandleCalls(Schema schema)
        {
            int handler;
            UplinkException.Check(NativeClient.uplink_client_handle(this, schema, out handler), "handle");
            Keep(schema);
            handlers.Add(schema);
            return handler;
        }

        public void Connect(string token)
        {
            byte[] text = Encoding.ASCII.GetBytes(token);
            UplinkException.Check(NativeClient.uplink_client_connect(this, text, Native.Size(text.Length), Now), "token");
        }

        /// <summary>Connects to a server that the backend has assigned to the player, with its token. After
        /// Reconnecting it replaces Connect. After Silent, the client keeps its session until the new one is
        /// ready, and switches with events Handover.</summary>
        public UplinkError Assign(IPEndPoint assigned, string token)
        {
            byte[] text = Encoding.ASCII.GetBytes(token);
            return (UplinkError)NativeClient.uplink_client_assign(this, Native.Text(assigned.ToString()), text, Native.Size(text.Length), Now);
        }

        /// <summary>The state of an RPC's jitter buffer. Start the next tick after the nominal interval
        /// divided by Pace.Rate.</summary>
        public Pace Pace(int rpc)
        {
            var p = new Pace { structSize = Layout<Pace>.Size };
            NativeClient.uplink_client_pace(this, rpc, Now, ref p);
            return p;
        }

        public void Close(int code = 0) { NativeClient.uplink_client_close(this, code, Now); }

        public bool Connected { get { return NativeClient.uplink_client_connected(this) != 0; } }

        public Stats Stats
        {
            get
            {
                var s = new Stats { structSize = Layout<Stats>.Size };
                NativeClient.uplink_client_stats(this, ref s);
                return s;
            }
        }

        /// <summary>Receives and sends all pending datagrams. Call it in each frame of the game, and then
        /// Poll until it returns false.</summary>
        public void Run()
        {
            Changed();
            NativeClient.uplink_socket_run(socket, this);
            Rethrow(ref thrown);
            foreach (ClientWorld w in worlds)
                if (w != null) Rethrow(ref w.Thrown);
        }

        /// <summary>
        /// Starts a thread that notes when datagrams arrive, so that the round-trip time does not
        /// contain the time until Run. Between Release and the next Run it does what Run does, while
        /// the game loads a level or draws; StateWorld.Updated is then called in the thread.
        /// </summary>
        public void StartThread()
        {
            UplinkException.Check(NativeClient.uplink_socket_start(socket, IntPtr.Zero, this), "thread");
            socket.Keep(this);
        }

        /// <summary>Sends what was called since Run, and leaves the client and its worlds to the thread
        /// until the next Run. Without a thread it does nothing.</summary>
        public void Release()
        {
            Changed();
            NativeClient.uplink_socket_release(socket);
            GC.KeepAlive(this);
        }

        /// <summary>Lets datagrams pass simulated links from now on, for tests. Call it before
        /// StartThread.</summary>
        public void Simulate(LinkConditions toServer, LinkConditions fromServer)
        {
            toServer.structSize = fromServer.structSize = Layout<LinkConditions>.Size;
            UplinkException.Check(NativeClient.uplink_socket_simulate(socket, IntPtr.Zero, ref toServer, ref fromServer), "links");
        }

        static void Rethrow(ref Exception thrown)
        {
            if (thrown == null) return;
            ExceptionDispatchInfo info = ExceptionDispatchInfo.Capture(thrown);
            thrown = null;
            info.Throw();
        }

        void Changed()
        {
            Changes++;
            foreach (ClientWorld w in worlds)
                if (w != null) w.Changes++;
        }

        /// <summary>Waits for a datagram, until Run has something to do, but at most ms
        /// milliseconds.</summary>
        public void Wait(int ms)
        {
            ulong now = Now, due = NativeClient.uplink_client_next_timeout(this);
            Changed(); // with a thread
            if (due > now) NativeClient.uplink_socket_wait(socket, Math.Min(due - now, (ulong)ms * 1000000));
        }

        public bool Poll(out UplinkEvent e)
        {
            var n = new NativeClient.NativeEvent { struct_size = Layout<NativeClient.NativeEvent>.Size };
            Changes++;
            e = default(UplinkEvent);
            if (NativeClient.uplink_client_poll_event(this, ref n) == 0) return false;
            if (n.frame != IntPtr.Zero)
            {
                view.Show(n.frame);
                view.Schema = handlers[n.rpc];
            }
            e = new UplinkEvent
            {
                Type = (UplinkEventType)n.type, Reason = n.reason, Reliable = n.reliable != 0, Status = n.status, Rpc = n.rpc, World = n.world, Value = n.value,
                Missed = n.missed, Frame = n.frame == IntPtr.Zero ? null : view, Owner = this, Changes = Changes, Memory = n.data, Size = (int)n.size
            };
            return true;
        }

        /// <summary>Sends a call. Unbound: the RPC is not bound yet. Closed: there is no session. Full: too
        /// many calls and messages wait for a datagram. Backlog: too much reliable data waits.</summary>
        public UplinkError Call(int rpc, Frame frame) { return (UplinkError)NativeClient.uplink_client_call(this, rpc, frame, Now); }

        /// <summary>The size of the largest reliable message or request that can be sent now, at most 8,192 bytes.</summary>
        public int ReliableRoom { get { return (int)NativeClient.uplink_client_reliable_room(this, Now); } }

        /// <summary>Sends a message of the game. Backlog: too much reliable data waits, see ReliableRoom.
        /// TooFast: the client would send more in a second than the server accepts.</summary>
        public UplinkError Send(byte[] message, bool reliable) { return Send(message, message.Length, reliable); }

        /// <summary>Sends the first bytes of an array.</summary>
        public UplinkError Send(byte[] message, int size, bool reliable)
        {
            return (UplinkError)NativeClient.uplink_client_send(this, message, Native.Size(message, size), reliable ? 1 : 0, Now);
        }

        public UplinkError Request(byte[] body, out uint id) { return Request(body, body.Length, out id); }

        /// <summary>Sends the first bytes of an array as a request.</summary>
        public UplinkError Request(byte[] body, int size, out uint id)
        {
            return (UplinkError)NativeClient.uplink_client_request(this, body, Native.Size(body, size), out id, Now);
        }

        public UplinkError Cancel(uint id) { return (UplinkError)NativeClient.uplink_client_cancel(this, id); }

        public UplinkError OpenStream(string name, out uint stream) { return (UplinkError)NativeClient.uplink_client_open_stream(this, Native.Text(name), out stream, Now); }

        public UplinkError WriteStream(uint stream, byte[] data, int size, out int written)
        {
            UIntPtr n;
            int e = NativeClient.uplink_client_write_stream(this, stream, data, Native.Size(data, size), out n, Now);
            written = (int)n;
            return (UplinkError)e;
        }

        public UplinkError EndStream(uint stream) { return (UplinkError)NativeClient.uplink_client_end_stream(this, stream); }
        public UplinkError AbortStream(uint stream, string reason) { return (UplinkError)NativeClient.uplink_client_abort_stream(this, stream, Native.Text(reason)); }
        public UplinkError StopStream(uint stream) { return (UplinkError)NativeClient.uplink_client_stop_stream(this, stream); }

        /// <summary>Issues a token, for tests and tools; if key is null, with the development key. A game
        /// gets its tokens from a backend.</summary>
        public static string IssueToken(string key, ulong clientId, IPEndPoint server)
        {
            var text = new byte[779];
            ulong issued = (ulong)(DateTime.UtcNow - new DateTime(1970, 1, 1, 0, 0, 0, DateTimeKind.Utc)).TotalMilliseconds;
            UplinkException.Check(NativeClient.uplink_issue_token(NativeClient.uplink_library_crypto(), key == null ? null : Native.Text(key), clientId, issued, Native.Text(server.ToString()), text, Native.Size(text.Length)), "token");
            return Encoding.ASCII.GetString(text, 0, Array.IndexOf(text, (byte)0));
        }

        protected override void Dispose(bool disposing)
        {
            if (disposing)
            {
                view.End();
                socket.Dispose();
            }
            base.Dispose(disposing);
        }

        internal override void Destroy(IntPtr pointer)
        {
            NativeClient.uplink_client_destroy(pointer);
            FreeLog();
        }
    }
}
