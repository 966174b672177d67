// Tests of lifetimes and memory: handles that only the library uses survive garbage collections, use of
// disposed handles and of invalid views throws an exception, and calls allocate no memory.
using System;
using System.Collections.Generic;
using System.Linq;
using System.Net;
using System.Reflection;
using System.Runtime.CompilerServices;
using System.Threading;
using Uplink;

static class Program
{
    static readonly IPEndPoint nobody = new IPEndPoint(IPAddress.Loopback, 9);

    static int Main()
    {
        Step("a frame of a schema that nothing keeps", OnlyFrame);
        Step("encoder and decoder", OnlyCodec);
        Step("a received frame without its decoder", OnlyReceived);
        Step("decoders of objects and interpolation", OnlyObjects);
        Step("a client with its RPC, handler and worlds", OnlyClient);
        Step("a client with a thread", OnlyThread);
        Step("the order of Dispose", Disposed);
        Step("a log", Log);
        Step("views of changed memory", Views);
        Step("use after Dispose", AfterDispose);
        Step("garbage", Garbage);
        return 0;
    }

    static void Step(string what, Action step)
    {
        step();
        Collect();
        Console.WriteLine(what + ": right");
    }

    static void Collect()
    {
        for (int i = 0; i < 2; i++)
        {
            GC.Collect();
            GC.WaitForPendingFinalizers();
        }
        // Overwrites memory that was freed.
        for (int i = 0; i < 200; i++) new Schema("fill", 60, new Field { Name = new string('x', i % 60 + 1), Kind = Kind.Scalar, Resolution = 7 }).Dispose();
    }

    static void Check(bool ok, string what)
    {
        if (ok) return;
        Console.WriteLine("wrong: " + what);
        Environment.Exit(1);
    }

    /// <summary>Runs a function in a thread of its own, so that no reference stays on the stack.</summary>
    static T Elsewhere<T>(Func<T> make)
    {
        T made = default(T);
        var t = new Thread(() => made = make());
        t.Start();
        t.Join();
        Collect();
        return made;
    }

    static Schema Move()
    {
        return new Schema("Move", 60, new Field { Name = "Location", Kind = Kind.Vec3, Resolution = 0.25 }, new Field { Name = "Buttons", Kind = Kind.Bits, Width = 8 },
            new Field { Name = "Chat", Kind = Kind.Bytes, Size = 20 });
    }

    static Schema Ball() { return new Schema("ball", 60, new Field { Name = "Position", Kind = Kind.Vec3, Resolution = 0.25, Min = -100, Max = 100 }); }

    static void OnlyFrame()
    {
        Frame f = Elsewhere(() => new Frame(Move()));
        var at = new double[3];
        for (int i = 0; i < 10; i++)
        {
            f.Set(0, i, 2, 3);
            Collect();
            f.Get(0, at);
            Check(at[0] == i && at[2] == 3, "values of a frame");
        }
        try
        {
            f.Set(1, 5);
            Check(false, "a number for bits");
        }
        catch (UplinkException e)
        {
            Check(e.Message.StartsWith("field Buttons: "), e.Message);
        }
    }

    sealed class Pair
    {
        internal RpcEncoder Encoder;
        internal RpcDecoder Decoder;
        internal Frame Frame;
    }

    static Pair Both()
    {
        return Elsewhere(() =>
        {
            Schema s = Move();
            return new Pair { Encoder = new RpcEncoder(s), Decoder = new RpcDecoder(s), Frame = new Frame(s) };
        });
    }

    static readonly byte[] payload = new byte[RpcEncoder.MaxPayload], ack = new byte[RpcDecoder.MaxAck], bytes = new byte[64];
    static readonly Call[] calls = new Call[RpcDecoder.MaxCalls];
    static readonly double[] values = new double[3];
    static readonly ulong[] integers = new ulong[1];

    static void Pass(Pair p, int i)
    {
        p.Frame.Set(0, i % 100, 2, 3);
        p.Frame.SetIntegers(1, (ulong)(i & 7));
        p.Frame.SetBytes(2, bytes, 3);
        int n;
        Check(p.Decoder.Decode(payload, p.Encoder.Encode(p.Frame, payload), calls, out n) == UplinkError.Ok && n == 1, "a call");
        p.Encoder.Ack(ack, p.Decoder.Ack(ack));
        calls[0].Frame.Get(0, values);
        calls[0].Frame.GetIntegers(1, integers);
        Check(values[0] == i % 100 && integers[0] == (ulong)(i & 7) && calls[0].Frame.GetBytes(2, bytes) == 3, "values of a call");
    }

    static void OnlyCodec()
    {
        Pair p = Both();
        for (int i = 0; i < 10; i++)
        {
            Pass(p, i);
            Collect();
        }
    }

    static void OnlyReceived()
    {
        Frame f = Elsewhere(() =>
        {
            Pass(Both(), 42);
            return calls[0].Frame;
        });
        calls[0] = default(Call);
        Collect();
        f.Get(0, values);
        Check(values[0] == 42, "a received frame");
    }

    static void OnlyObjects()
    {
        ObjectType type = Elsewhere(() => new ObjectType(Ball()));
        var all = new List<Handle>();
        for (int i = 0; i < 5; i++)
        {
            all.Add(Elsewhere<Handle>(() => new SnapshotDecoder(new ObjectType(Ball()))));
            all.Add(Elsewhere<Handle>(() => new AreaDecoder(new[] { new ObjectType(Ball()), new ObjectType(Ball()) })));
            all.Add(Elsewhere<Handle>(() => new Interpolator(new ObjectType(Ball()), new InterpolatorConfig { Position = "Position", Interval = 50000000 })));
        }
        int number;
        Objects o;
        Sample s;
        Check(((SnapshotDecoder)all[0]).Decode(payload, 2, out number, out o) != UplinkError.Ok, "a damaged snapshot");
        Check(((AreaDecoder)all[1]).Decode(payload, 2, out number) != UplinkError.Ok, "a damaged message");
        Check(!((Interpolator)all[2]).Sample(1, out s) && type.Components == 3, "an empty interpolator");
    }

    static UplinkClient Client()
    {
        return Elsewhere(() =>
        {
            var c = new UplinkClient(nobody, new ClientConfig { Worlds = 3, Handlers = 1 });
            c.Bind(Move());
            c.HandleCalls(Ball());
            new SnapshotWorld(new[] { Ball() }, new[] { new InterpolatorConfig { Position = "Position" } }).Subscribe(c, "arena");
            var state = new StateWorld(Ball());
            state.Updated += (w, u) => { };
            state.Subscribe(c, "state");
            ClientWorld.Unsubscribe(c, new SnapshotWorld(new[] { Ball() }).Subscribe(c, "gone"));
            return c;
        });
    }

    static void OnlyClient()
    {
        UplinkClient c = Client();
        c.Connect(UplinkClient.IssueToken(null, 9, nobody));
        for (int i = 0; i < 10; i++)
        {
            c.Run();
            Collect();
            UplinkEvent e;
            while (c.Poll(out e)) Check(e.Frame == null, "an event");
            Check(c.Call(0, Elsewhere(() => new Frame(Move()))) == UplinkError.Closed, "a call of an RPC that is not bound");
        }
    }

    /// <summary>A thread of the library uses a client that the program does not keep.</summary>
    static void OnlyThread()
    {
        for (int i = 0; i < 20; i++)
        {
            Elsewhere(() =>
            {
                UplinkClient c = Client();
                c.Simulate(new LinkConditions { Delay = 1000000 }, new LinkConditions { Loss = 0.1 });
                c.StartThread();
                c.Connect(UplinkClient.IssueToken(null, 9, nobody));
                c.Run();
                c.Release();
                return 0;
            });
        }
    }

    /// <summary>Tests that handles that another handle uses can be disposed before it.</summary>
    static void Disposed()
    {
        Schema s = Ball();
        var world = new SnapshotWorld(new[] { s });
        var frame = new Frame(s);
        var c = new UplinkClient(nobody, new ClientConfig { Worlds = 1 });
        world.Subscribe(c, "arena");
        c.Bind(s);
        s.Dispose();
        world.Dispose();
        Collect();
        frame.Set(0, 1, 2, 3);
        c.Connect(UplinkClient.IssueToken(null, 9, nobody));
        c.Run();
        c.Dispose();
        c.Dispose();
        Throws<ObjectDisposedException>(() => new Frame(s));
        ulong tick, received;
        Throws<ObjectDisposedException>(() => world.Newest(out tick, out received));
    }

    static void Throws<T>(Action a) where T : Exception
    {
        try { a(); }
        catch (T) { return; }
        Check(false, "no " + typeof(T).Name);
    }

    /// <summary>Events have a text, and a log gets it.</summary>
    static void Log()
    {
        var lines = new List<string>();
        bool fail = false;
        UplinkClient c = Elsewhere(() => new UplinkClient(nobody, log: (level, line) =>
        {
            lock (lines) lines.Add(level + " " + line);
            if (fail) throw new InvalidOperationException("of the log");
        }));
        c.Connect(UplinkClient.IssueToken(null, 9, nobody));
        UplinkEvent e = default(UplinkEvent);
        for (int i = 0; i < 200 && !c.Poll(out e); i++)
        {
            c.Run();
            c.Wait(10);
            Collect();
        }
        Check(e.ToString().EndsWith("no program receives at the server's address"), e.ToString());
        Check(lines.Count == 2 && lines[0] == "Info connecting" && lines[1] == "Warning " + e, string.Join(", ", lines));
        fail = true;
        c.Connect(UplinkClient.IssueToken(null, 9, nobody));
        Throws<InvalidOperationException>(() => { for (int i = 0; i < 300; i++) { c.Run(); c.Wait(10); } });
        c.Run();
    }

    static void Views()
    {
        var c = Client();
        c.Connect(UplinkClient.IssueToken(null, 9, nobody));
        UplinkEvent e = default(UplinkEvent);
        for (int i = 0; i < 200 && !c.Poll(out e); i++)
        {
            c.Run();
            c.Wait(10);
        }
        Check(e.Type == UplinkEventType.Reconnecting || e.Type == UplinkEventType.Disconnected, "nobody answers");
        byte[] data = e.Data;
        c.Run();
        Throws<InvalidOperationException>(() => data = e.Data);
        Pair p = Both();
        Pass(p, 1);
        Frame f = calls[0].Frame;
        f.Dispose(); // it belongs to the decoder
        Pass(p, 2);
        p.Decoder.Dispose();
        Throws<ObjectDisposedException>(() => f.Get(0, values));
        Throws<ArgumentException>(() => p.Encoder.Ack(ack, 16));
        Throws<ArgumentException>(() => new RpcDecoder(Move()).Ack(new byte[3]));
    }

    static readonly HashSet<string> managed = new HashSet<string>
    {
        "Dispose", "Close", "IsClosed", "IsInvalid", "DangerousAddRef", "DangerousRelease", "DangerousGetHandle", "SetHandleAsInvalid", "State", "Step"
    };

    static object Argument(ParameterInfo p)
    {
        Type t = p.ParameterType.IsByRef ? p.ParameterType.GetElementType() : p.ParameterType;
        if (t == typeof(double[])) return new double[3];
        if (t == typeof(ulong[])) return new ulong[1];
        if (t == typeof(int[])) return new int[3];
        if (t == typeof(byte[])) return new byte[RpcEncoder.MaxPayload];
        if (t == typeof(Call[])) return calls;
        if (t == typeof(string)) return UplinkClient.IssueToken(null, 9, nobody);
        if (t == typeof(IPEndPoint)) return nobody;
        if (t == typeof(Schema)) return Move();
        if (t == typeof(Frame)) return new Frame(Move());
        if (t == typeof(UplinkClient)) return Client();
        if (t == typeof(List<PlayerInput>)) return new List<PlayerInput>();
        return t.IsValueType ? Activator.CreateInstance(t) : null;
    }

    static void AfterDispose()
    {
        Pair p = Both();
        Schema s = Ball();
        var handles = new List<Handle>
        {
            s, p.Frame, p.Encoder, p.Decoder, new ObjectType(s), new SnapshotDecoder(new ObjectType(s)), new AreaDecoder(new[] { new ObjectType(s) }),
            new Interpolator(new ObjectType(s), new InterpolatorConfig { Position = "Position", Interval = 50000000 }), new Smoother(), new SnapshotWorld(new[] { s }),
            new StateWorld(s), new ServerClock(), new UplinkClient(nobody), new Predictor<int, int>(0, (ref int a, int b) => { }, (ref int a, ref int b) => 0)
        };
        foreach (Type t in typeof(Handle).Assembly.GetTypes().Where(t => t.IsSubclassOf(typeof(Handle)) && t.IsPublic && !t.IsAbstract))
            Check(handles.Any(h => h.GetType().Name == t.Name), "a handle of type " + t.Name);
        int used = 0;
        foreach (Handle h in handles)
        {
            h.Dispose();
            foreach (MethodInfo m in h.GetType().GetMethods(BindingFlags.Public | BindingFlags.Instance))
            {
                string name = m.IsSpecialName ? m.Name.Substring(m.Name.IndexOf('_') + 1) : m.Name;
                if (m.DeclaringType == typeof(object) || managed.Contains(name) || m.Name.StartsWith("add_") || m.Name.StartsWith("remove_")) continue;
                if (m.GetParameters().Any(a => a.ParameterType == typeof(Objects))) continue; // checked first, see Views
                used++;
                try
                {
                    m.Invoke(h, m.GetParameters().Select(Argument).ToArray());
                    Check(false, h.GetType().Name + "." + m.Name + " after Dispose");
                }
                catch (TargetInvocationException e)
                {
                    Check(e.InnerException is ObjectDisposedException, h.GetType().Name + "." + m.Name + " after Dispose: " + e.InnerException);
                }
            }
        }
        Console.WriteLine(used + " methods after Dispose");
    }

    static void None(string what, Action a)
    {
        var allocated = (Func<long>)Delegate.CreateDelegate(typeof(Func<long>), typeof(GC).GetMethod("GetAllocatedBytesForCurrentThread"));
        for (int i = 0; i < 100; i++) a();
        long before = allocated();
        for (int i = 0; i < 1000; i++) a();
        long n = allocated() - before;
        Check(n == 0, what + " makes " + n / 1000.0 + " bytes of garbage each");
    }

    static void Garbage()
    {
        Pair p = Both();
        UplinkClient c = Client();
        var snapshots = new SnapshotWorld(new[] { Ball() }, new[] { new InterpolatorConfig { Position = "Position" } });
        c.Connect(UplinkClient.IssueToken(null, 9, nobody));
        var smoother = new Smoother();
        var predictor = new Predictor<int, int>(0, Add, Distance);
        var clock = new ServerClock();
        var decoder = new SnapshotDecoder(new ObjectType(Ball()));
        var areas = new AreaDecoder(new[] { new ObjectType(Ball()) });
        var interpolator = new Interpolator(new ObjectType(Ball()), new InterpolatorConfig { Position = "Position", Interval = 50000000 });
        int n = 0, number;
        ulong now = 1, time, next;
        UplinkEvent e;
        Sample s;
        Ticks t;
        Objects o;
        uint id;
        None("Frame.Set", () => p.Frame.Set(0, values));
        None("Frame.Set of numbers", () => p.Frame.Set(0, 1, 2, 3));
        None("Frame.SetIntegers", () => p.Frame.SetIntegers(1, 3));
        None("Frame.Get", () => p.Frame.Get(0, values));
        None("a call", () => Pass(p, n++));
        None("UplinkClient.Run", c.Run);
        None("UplinkClient.Wait", () => c.Wait(0));
        None("UplinkClient.Release", c.Release);
        None("UplinkClient.Poll", () => { while (c.Poll(out e)) n += e.Size + e.CopyTo(bytes); });
        None("UplinkClient.Call", () => c.Call(0, p.Frame));
        None("UplinkClient.Send", () => c.Send(bytes, true));
        None("UplinkClient.Request", () => c.Request(bytes, 8, out id));
        None("UplinkClient.Stats", () => n = c.Stats.Suite);
        None("UplinkClient.Pace", () => n = (int)c.Pace(0).Rate);
        None("SnapshotWorld.Sample", () => snapshots.Sample(0, out s));
        None("SnapshotWorld.Objects", () => n = snapshots.Objects(0).Count);
        None("SnapshotWorld.Newest", () => snapshots.Newest(out time, out next));
        None("SnapshotWorld.Interpolation", () => time = snapshots.Interpolation(0).Added);
        None("ClientWorld.Clock", () => snapshots.Clock(c, out t));
        None("ClientWorld.Processed", () => snapshots.Processed(0, out next));
        None("SnapshotDecoder.Decode", () => decoder.Decode(payload, 2, out number, out o));
        None("AreaDecoder.Decode", () => areas.Decode(payload, 2, out number));
        None("AreaDecoder.Shown", () => n = areas.Shown(0).Count);
        None("Interpolator", () => interpolator.Sample(now++, out s));
        None("Smoother", () =>
        {
            smoother.Correct(default(ObjectPose), default(ObjectPose));
            smoother.Step(0.01);
            n = (int)smoother.Drawn(default(ObjectPose)).Teleports;
        });
        None("ServerClock", () => clock.Observe(now, now++));
        ulong sequence = 0;
        None("Predictor", () =>
        {
            predictor.Apply(sequence++, 1);
            predictor.Correct(sequence, 3);
        });
    }

    static void Add(ref int state, int input) { state += input; }
    static double Distance(ref int a, ref int b) { return Math.Abs(a - b); }
}
