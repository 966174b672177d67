// Plays the sessions of the Go packages, byte for byte: snapshots, worlds with areas, interpolation and the clock.
// Then it predicts a player against a server. The argument is the directory of the repository.
using System;
using System.Collections.Generic;
using System.Globalization;
using System.IO;
using System.Linq;
using System.Runtime.InteropServices;
using Uplink;

static class Program
{
    static int Main(string[] args)
    {
        CultureInfo.CurrentCulture = CultureInfo.InvariantCulture;
        foreach (string name in new[] { "cubes", "kinds", "ground", "crowd", "world", "physics" }) Snapshots(args[0] + "/internal/snapshot/testdata/" + name);
        foreach (string name in new[] { "moves", "loss", "resent" }) Areas(args[0] + "/internal/replication/areas/testdata/" + name + ".session");
        Interpolation(args[0] + "/testdata/sessions/interpolation.session");
        Clock(args[0] + "/testdata/sessions/clock.session");
        Blended();
        Smooth();
        Predict();
        return 0;
    }

    /// <summary>Tests that angles are interpolated along the shorter arc, that numbers are interpolated, and
    /// that an error names the possible fields.</summary>
    static void Blended()
    {
        var schema = new Schema("tank", 0,
            new Field { Name = "View", Kind = Kind.Angle, Bits = 16 }, new Field { Name = "Charge", Kind = Kind.Scalar, Resolution = 1 });
        var type = new ObjectType(schema);
        var config = new InterpolatorConfig { Orientation = "View", Blended = new[] { "Charge" }, Interval = 50000000 };
        var interpolator = new Interpolator(type, config);
        var snapshot = new Builder(type.Components);
        snapshot.Put(new[] { "object", "1", "0", "31000", "10" });
        Check(snapshot.AddTo(interpolator, 0, 0) == UplinkError.Ok, "the first snapshot");
        snapshot.Put(new[] { "object", "1", "0", "38229", "20" });
        Check(snapshot.AddTo(interpolator, 50000000, 50000000) == UplinkError.Ok, "the second snapshot");
        Sample sample;
        // The delay is 3 intervals and 50 ms.
        Check(interpolator.Sample(25000000, out sample), "a sample");
        for (ulong now = 50000000; now <= 225000000; now += 25000000) interpolator.Sample(now, out sample);
        ObjectPose p = sample.Pose(0);
        double part = sample.Time / 50e6, want = 31000 * 360.0 / 65536 + part * (38229 - 31000) * 360.0 / 65536;
        Check(part > 0 && part < 1, "a time between the snapshots: " + sample.Time);
        Check(Math.Abs(Math.IEEERemainder(p.Angles[0] - want, 360)) < 0.01 && Math.Abs(p.Numbers[0] - 10 - 10 * part) < 0.01, "angle " + p.Angles[0] + ", number " + p.Numbers[0]);
        try
        {
            new SnapshotWorld(new[] { schema }, new[] { new InterpolatorConfig { Position = "View" } });
            Check(false, "a position that is an angle");
        }
        catch (ArgumentException e)
        {
            Check(e.Message.StartsWith("position: the field \"View\" is of kind angle"), e.Message);
        }
        try
        {
            new Interpolator(type, new InterpolatorConfig { Position = "Veiw", Interval = 50000000 });
            Check(false, "a position that is no field");
        }
        catch (ArgumentException e)
        {
            Check(e.Message.StartsWith("position: ") && e.Message.Contains("Veiw"), e.Message);
        }
    }

    /// <summary>Tests that a smoother returns the same poses as that of Go, and names a setting that is out
    /// of range.</summary>
    static void Smooth()
    {
        var smoother = new Smoother();
        var from = new ObjectPose { Orientation = new Quaterniond { W = 1 } };
        var to = new ObjectPose { Position = new Vector3d { X = 0.6, Y = -0.1 }, Orientation = new Quaterniond { Z = Math.Sin(1), W = Math.Cos(1) } };
        from.Angles[0] = 170;
        to.Angles[0] = -150;
        from.Numbers[0] = 1;
        to.Numbers[0] = 1.5;
        smoother.Correct(from, to);
        smoother.Step(0.1);
        ObjectPose drawn = smoother.Drawn(to);
        Check(Math.Abs(drawn.Position.X - 0.240421214966) < 1e-8 && Math.Abs(drawn.Orientation.Z - 0.436300512685) < 1e-8, "position " + drawn.Position.X);
        Check(Math.Abs(drawn.Angles[0] + 179.403675625) < 1e-8 && Math.Abs(drawn.Numbers[0] - 1.18019388184) < 1e-8, "angle " + drawn.Angles[0]);
        smoother.Step(10);
        Check(smoother.Settled, "an error after 10 s");
        try
        {
            new Smoother(new Smoothing { Slow = 1 });
            Check(false, "a smoother that does not fade");
        }
        catch (ArgumentException e)
        {
            Check(e.Message.EndsWith("slow"), e.Message);
        }
    }

    static void Check(bool ok, string what)
    {
        if (ok) return;
        Console.WriteLine(what);
        Environment.Exit(1);
    }

    /// <summary>The lines of a session, as words. The expected result follows "=".</summary>
    static IEnumerable<string[]> Lines(string file)
    {
        foreach (string line in File.ReadLines(file))
            if (line.Length > 0 && line[0] != '#') yield return line.Split(' ');
    }

    static byte[] Unhex(string s)
    {
        var b = new byte[s.Length / 2];
        for (int i = 0; i < b.Length; i++) b[i] = Convert.ToByte(s.Substring(2 * i, 2), 16);
        return b;
    }

    static string Hex(byte[] b, int n) { return BitConverter.ToString(b, 0, n).Replace("-", "").ToLowerInvariant(); }

    static RowField FieldOf(string[] w, int at)
    {
        string[] classes = { "motion", "angle", "quat", "flags", "bytes" };
        return new RowField
        {
            Class = (ObjectClass)Array.IndexOf(classes, w[at]), Components = int.Parse(w[at + 1]), Lo = int.Parse(w[at + 2]), Hi = int.Parse(w[at + 3])
        };
    }

    static string ResultOf(UplinkError e)
    {
        switch (e)
        {
            case UplinkError.Ok: return "right";
            case UplinkError.Stale: return "late";
            case UplinkError.NoBaseline: return "missing";
            case UplinkError.Desync: return "desync";
            default: return "malformed";
        }
    }

    static string Text(Objects o, string prefix)
    {
        var lines = new List<string>();
        var row = new int[o.Components];
        for (int i = 0; i < o.Count; i++)
        {
            o.Row(i, row);
            lines.Add(prefix + o.Id(i) + " " + o.Generation(i) + " " + string.Join(" ", row) + (o.Age(i) > 0 ? " age " + o.Age(i) : ""));
        }
        return string.Join("\n", lines);
    }

    static void Snapshots(string name)
    {
        var fields = new List<RowField>();
        var sets = new List<List<string>>();
        var sent = new List<byte[]>();
        var ack = new byte[RpcDecoder.MaxAck];
        ObjectType type = null;
        SnapshotDecoder decoder = null;
        int decoded = 0;
        foreach (string[] w in Lines(name + ".session"))
        {
            switch (w[0])
            {
                case "field":
                    fields.Add(FieldOf(w, 2));
                    break;
                case "set":
                    sets.Add(new List<string>());
                    if (decoder != null) break;
                    type = new ObjectType(fields.ToArray());
                    decoder = new SnapshotDecoder(type, File.Exists(name + ".initial") ? Unhex(File.ReadAllText(name + ".initial").Trim()) : null);
                    break;
                case "object":
                    sets.Last().Add(string.Join(" ", w.Skip(1)));
                    break;
                case "send":
                    sent.Add(Unhex(w[2]));
                    break;
                case "take":
                    int n = int.Parse(w[1]), number;
                    Objects o;
                    UplinkError e = decoder.Decode(sent[n], sent[n].Length, out number, out o);
                    Check(ResultOf(e) == w[3], name + ", snapshot " + n + ": " + e);
                    if (e != UplinkError.Ok) break;
                    Check(number == n && Text(o, "") == string.Join("\n", sets[n]), name + ": objects of snapshot " + n);
                    decoded++;
                    break;
                case "ack":
                case "lose":
                    Check(Hex(ack, decoder.Ack(ack)) == w[2], name + ": ack");
                    break;
            }
        }
        Console.WriteLine(Path.GetFileName(name) + ": " + decoded + " snapshots");
        decoder.Dispose();
        type.Dispose();
    }

    static void Areas(string file)
    {
        var fields = new List<List<RowField>>();
        var shown = new List<string>();
        var ack = new byte[RpcDecoder.MaxAck];
        ObjectType[] types = null;
        AreaDecoder decoder = null;
        int decoded = 0, number = 0;
        string got = null;
        foreach (string[] w in Lines(file))
        {
            switch (w[0])
            {
                case "type":
                    fields.Add(new List<RowField>());
                    break;
                case "field":
                    fields.Last().Add(FieldOf(w, 1));
                    break;
                case "show":
                    shown.Add(string.Join(" ", w.Skip(1)));
                    break;
                case "age":
                    shown[shown.Count - 1] += " age " + w[1];
                    break;
                case "reset": // eight messages without a directory let the decoder ask for it
                    int next = (number + 1) & 0xffff;
                    var bits = new[] { (byte)(next << 6), (byte)(next >> 2), (byte)(next >> 10) };
                    for (int i = 0; i < 8; i++) Check(decoder.Decode(bits, 3, out next) == UplinkError.Malformed, file + ": reset");
                    break;
                case "take":
                    if (decoder == null)
                    {
                        types = fields.Select(f => new ObjectType(f.ToArray())).ToArray();
                        decoder = new AreaDecoder(types);
                    }
                    if (got != null) Check(got == string.Join("\n", shown), file + ": objects");
                    byte[] message = Unhex(w[1]);
                    int n;
                    UplinkError e = decoder.Decode(message, message.Length, out n);
                    Check(ResultOf(e) == w[3] && Hex(ack, decoder.Ack(ack)) == w[4], file + ": " + e);
                    got = null;
                    shown.Clear();
                    if (e != UplinkError.Ok) break;
                    number = n;
                    got = string.Join("\n", types.Select((t, k) => Text(decoder.Shown(k), k + " ")).Where(s => s != ""));
                    decoded++;
                    break;
            }
        }
        Console.WriteLine(Path.GetFileName(file) + ": " + decoded + " messages with areas");
        decoder.Dispose();
    }

    /// <summary>Collects the objects of a snapshot.</summary>
    sealed class Builder
    {
        readonly int components;
        readonly List<int> objects = new List<int>(), rows = new List<int>();

        internal Builder(int components) { this.components = components; }

        internal void Put(string[] w)
        {
            objects.Add(int.Parse(w[1]) | int.Parse(w[2]) << 16); // a little-endian uplink_object
            rows.AddRange(w.Skip(3).Select(int.Parse));
        }

        internal UplinkError AddTo(Interpolator i, ulong now, ulong time)
        {
            GCHandle o = GCHandle.Alloc(objects.ToArray(), GCHandleType.Pinned), r = GCHandle.Alloc(rows.ToArray(), GCHandleType.Pinned);
            NativeObjects.View view = NativeObjects.View.Empty;
            view.n = new UIntPtr((uint)objects.Count);
            view.components = new UIntPtr((uint)components);
            view.objects = o.AddrOfPinnedObject();
            view.rows = r.AddrOfPinnedObject();
            UplinkError e = i.Add(now, time, new Objects(null, view));
            o.Free();
            r.Free();
            objects.Clear();
            rows.Clear();
            return e;
        }
    }

    /// <summary>Poses agree to 1e-6: both ends restore and interpolate them in floating point.</summary>
    static void Interpolation(string file)
    {
        var schema = new Schema("crate", 0,
            new Field { Name = "Position", Kind = Kind.Vec3, Resolution = 0.001, Min = -1000, Max = 1000 },
            new Field { Name = "Velocity", Kind = Kind.Vec3, Resolution = 0.01, Min = -100, Max = 100 },
            new Field { Name = "Rotation", Kind = Kind.Quat, Bits = 12 },
            new Field { Name = "Jumps", Kind = Kind.UInt, Width = 2 });
        var type = new ObjectType(schema);
        Interpolator interpolator = null;
        var snapshot = new Builder(type.Components);
        var sample = default(Sample);
        int pose = 0, poses = 0;
        foreach (string[] w in Lines(file))
        {
            switch (w[0])
            {
                case "config":
                    interpolator = new Interpolator(type, new InterpolatorConfig
                    {
                        Position = "Position", Velocity = "Velocity", Orientation = "Rotation", Teleports = "Jumps", Interval = ulong.Parse(w[1]),
                        Method = (Interpolation)int.Parse(w[2]), Adaptive = w[3] == "1", Delay = ulong.Parse(w[4]), Jitter = ulong.Parse(w[5]),
                        Loss = double.Parse(w[6]), Extrapolate = ulong.Parse(w[7]), Gap = ulong.Parse(w[8])
                    });
                    break;
                case "object":
                    snapshot.Put(w);
                    break;
                case "add":
                    UplinkError e = snapshot.AddTo(interpolator, ulong.Parse(w[1]), ulong.Parse(w[2]));
                    Check((e == UplinkError.Duplicate ? "duplicate" : ResultOf(e)) == w[4], file + ": " + e + " at " + w[1]);
                    break;
                case "sample":
                    bool any = interpolator.Sample(ulong.Parse(w[1]), out sample);
                    Check(any == (w[3] != "nothing") && (!any || (sample.Time == ulong.Parse(w[3]) && sample.Starved == (w[4] == "1"))), file + ": time at " + w[1]);
                    pose = 0;
                    break;
                case "pose":
                    ObjectPose p = sample.Pose(pose);
                    double[] got =
                    {
                        sample.Objects.Id(pose), sample.Objects.Generation(pose), p.Position.X, p.Position.Y, p.Position.Z, p.Velocity.X, p.Velocity.Y,
                        p.Velocity.Z, p.Orientation.X, p.Orientation.Y, p.Orientation.Z, p.Orientation.W, p.Teleports
                    };
                    for (int i = 0; i < got.Length; i++) Check(Math.Abs(got[i] - double.Parse(w[1 + i])) < 1e-6, file + ": pose at " + sample.Time);
                    pose++;
                    poses++;
                    break;
                case "stats":
                    InterpolatorStats s = interpolator.Stats;
                    Check(string.Join(" ", w.Skip(1)) == string.Join(" ", s.Added, s.Late, s.Duplicate, s.Restarts, s.Hitches, s.Starved, s.Delay), file + ": stats");
                    interpolator.Dispose();
                    break;
            }
        }
        Console.WriteLine("interpolation: " + poses + " poses");
    }

    static void Clock(string file)
    {
        ServerClock clock = null;
        int times = 0;
        foreach (string[] w in Lines(file))
        {
            ulong time = 0;
            if (w[0] == "clock") clock = new ServerClock();
            if (w[0] == "observe") clock.Observe(ulong.Parse(w[1]), ulong.Parse(w[2]));
            if (w[0] != "server") continue;
            bool any = clock.Server(ulong.Parse(w[1]), ulong.Parse(w[2]), out time);
            Check(any ? time.ToString() == w[4] : w[4] == "-1", file + ": " + time + " at " + w[1]);
            times++;
        }
        Console.WriteLine("clock: " + times + " times");
    }

    struct Body
    {
        public double At, Speed;
    }

    static void Step(ref Body b, int push)
    {
        b.Speed = b.Speed / 2 + push;
        b.At += b.Speed;
    }

    /// <summary>Tests a prediction against a server that processes each input 5 ticks later, and every tenth
    /// input twice. The predicted state must be the server's state advanced by the inputs that it
    /// lacks.</summary>
    static void Predict()
    {
        var predictor = new Predictor<Body, int>(new Body(), Step, (ref Body a, ref Body b) => Math.Abs(a.At - b.At), 0, 16);
        int corrections = 0;
        predictor.Corrected += (before, after) => corrections++;
        var server = new Body();
        for (int tick = 0; tick < 100; tick++)
        {
            Check(predictor.Apply((ulong)tick, tick % 7 - 3) == UplinkError.Ok, "input");
            if (tick < 5) continue;
            int done = tick - 5;
            for (int copies = done % 10 == 9 ? 2 : 1; copies > 0; copies--) Step(ref server, done % 7 - 3);
            predictor.Correct((ulong)done + 1, server);
            Body want = server;
            for (int i = done + 1; i <= tick; i++) Step(ref want, i % 7 - 3);
            Check(predictor.State.At == want.At && predictor.State.Speed == want.Speed && predictor.Waiting == 5, "state at tick " + tick);
        }
        PredictionStats s = predictor.Stats;
        Check(predictor.Apply(99, 0) == UplinkError.Invalid && predictor.Correct(3, server) == 0 && predictor.Stats.Late == 1, "numbers");
        Check(corrections == 9 && s.Corrections == 9 && s.Inputs == 100 && s.States == 95 && s.Dropped == 0, "corrections: " + corrections);
        predictor.Place(100, new Body { At = 1000 });
        Check(predictor.State.At == 1000 && predictor.Waiting == 0 && corrections == 9, "a state that does not continue the one before");
        Console.WriteLine("prediction: " + corrections + " corrections of " + s.States + " states");
    }
}
