// A client without a game, like examples/console.cpp, for the RPC ServerMove of
// testdata/traces/portal2_coop_60hz.schema.json, and a world of balls:
//
//   console.exe SCHEMA ADDRESS:PORT SECONDS - [LOG | -] [WORLD WORLD_SCHEMA [WORLD_LOG]]
//
// SCHEMA and WORLD_SCHEMA are ignored: the program contains the schemas. It writes the components of each
// call to LOG, one call per line. It writes a line for each object of each snapshot to WORLD_LOG: the tick,
// the id, the generation, and the components.
using System;
using System.IO;
using System.Net;
using System.Text;
using Uplink;

static class Program
{
    static int Main(string[] args)
    {
        if (args.Length < 4)
        {
            Console.Error.WriteLine("usage: console.exe SCHEMA ADDRESS:PORT SECONDS - [LOG]");
            return 1;
        }
        int colon = args[1].LastIndexOf(':');
        var server = new IPEndPoint(IPAddress.Parse(args[1].Substring(0, colon)), int.Parse(args[1].Substring(colon + 1)));
        ulong calls = ulong.Parse(args[2]) * 60;
        using (var schema = new Schema("ServerMove", 60,
            new Field { Name = "Location", Kind = Kind.Vec3, Resolution = 0.03125 },
            new Field { Name = "View", Kind = Kind.Angle, Count = 3, Bits = 16 },
            new Field { Name = "Move", Kind = Kind.Vec3, Resolution = 0.1 },
            new Field { Name = "Mouse", Kind = Kind.Scalar, Count = 2, Resolution = 1 },
            new Field { Name = "Tick", Kind = Kind.UInt, Width = 32 },
            new Field { Name = "Buttons", Kind = Kind.Bits, Width = 32 },
            new Field { Name = "Impulse", Kind = Kind.UInt, Width = 8 },
            new Field { Name = "Weapon", Kind = Kind.UInt, Width = 8 }))
        using (var frame = new Frame(schema))
        using (Spectator spectator = args.Length > 6 ? new Spectator(args.Length > 7 ? args[7] : null) : null)
        using (var client = new UplinkClient(server, new ClientConfig { Worlds = spectator == null ? 0 : 1 }))
        using (TextWriter log = args.Length > 4 && args[4] != "-" ? new StreamWriter(args[4]) : TextWriter.Null)
        {
            if (spectator != null) spectator.Subscribe(client, args[5]);
            return Play(client, schema, frame, client.Bind(schema), server, calls, log, spectator);
        }
    }

    /// <summary>Receives a world and writes its snapshots.</summary>
    sealed class Spectator : IDisposable
    {
        readonly Schema schema = new Schema("ball", 60,
            new Field { Name = "Position", Kind = Kind.Vec3, Resolution = 0.002, Min = -250, Max = 250, Velocity = "Velocity" },
            new Field { Name = "Velocity", Kind = Kind.Vec3, Resolution = 0.03 },
            new Field { Name = "Rotation", Kind = Kind.Quat, Bits = 10 },
            new Field { Name = "Lit", Kind = Kind.Bool },
            new Field { Name = "Label", Kind = Kind.Bytes, Size = 8 });
        readonly SnapshotWorld world;
        readonly TextWriter log;

        internal Spectator(string file)
        {
            var interpolation = new InterpolatorConfig { Position = "Position", Velocity = "Velocity", Orientation = "Rotation", Method = Interpolation.Hermite };
            world = new SnapshotWorld(new[] { schema }, new[] { interpolation });
            log = file == null ? TextWriter.Null : new StreamWriter(file);
        }

        internal void Subscribe(UplinkClient client, string name) { world.Subscribe(client, name); }

        internal void Write()
        {
            ulong tick, received;
            if (!world.Newest(out tick, out received)) return;
            Objects o = world.Objects(0);
            var row = new int[o.Components];
            for (int i = 0; i < o.Count; i++)
            {
                o.Row(i, row);
                log.WriteLine(tick + " " + o.Id(i) + " " + o.Generation(i) + " " + string.Join(" ", row));
            }
        }

        internal void Print(UplinkClient client)
        {
            Sample s;
            Ticks t;
            if (!world.Sample(0, out s) || !world.Clock(client, out t)) return;
            ulong delay = world.Interpolation(0).Delay;
            string text = string.Format("tick {0:F1} of the server, {1:F1} shown, a call now is for {2:F1}, {3} objects",
                t.Server, t.Shown(delay), t.Input(client.Pace(0)), s.Objects.Count);
            if (s.Objects.Count > 0)
            {
                Vector3d at = s.Pose(0).Position;
                text += string.Format(", object {0} at {1:F2} {2:F2} {3:F2}", s.Objects.Id(0), at.X, at.Y, at.Z);
            }
            Console.WriteLine(text);
        }

        public void Dispose()
        {
            world.Dispose();
            schema.Dispose();
            log.Dispose();
        }
    }

    static int Play(UplinkClient client, Schema schema, Frame frame, int rpc, IPEndPoint server, ulong calls, TextWriter log, Spectator spectator)
    {
        const ulong interval = 1000000000 / 60;
        ulong id = BitConverter.ToUInt64(Guid.NewGuid().ToByteArray(), 0), n = 0, tick = 0, sent = 0;
        bool bound = false;
        client.Connect(UplinkClient.IssueToken(null, id, server));
        while (true)
        {
            if (bound && sent >= calls)
            {
                client.Close();
                bound = false;
            }
            for (; bound && UplinkClient.Now >= tick && sent < calls; tick += (ulong)(interval / client.Pace(rpc).Rate)) // as the server's jitter buffer needs it
            {
                Fill(frame, n++);
                if (client.Call(rpc, frame) != UplinkError.Ok) continue; // do not count ticks without a call
                sent++;
                log.WriteLine(string.Join(" ", frame.Components(schema)));
            }
            client.Run();
            UplinkEvent e;
            while (client.Poll(out e))
            {
                switch (e.Type)
                {
                    case UplinkEventType.Connected:
                        Console.WriteLine("connected, suite " + client.Stats.Suite);
                        break;
                    case UplinkEventType.Bound:
                        bound = true;
                        tick = UplinkClient.Now;
                        break;
                    case UplinkEventType.BindFailed:
                        Console.WriteLine("cannot bind: reason " + e.Value);
                        return 1;
                    case UplinkEventType.Reconnecting:
                        Console.WriteLine("reconnecting: " + UplinkClient.ReasonText(e.Reason));
                        bound = false;
                        client.Assign(server, UplinkClient.IssueToken(null, id, server));
                        break;
                    case UplinkEventType.Disconnected:
                        Console.WriteLine("disconnected: " + UplinkClient.ReasonText(e.Reason) + "; " + client.Stats.Calls + " calls, " + client.Stats.Acks + " acks");
                        return 0;
                    case UplinkEventType.World:
                        Console.WriteLine("world " + (e.Status == 0 ? "subscribed" : e.Status == 1 ? "refused: " + e.Text : "ended"));
                        break;
                    case UplinkEventType.Mismatch:
                        Console.WriteLine("mismatch: " + e.Text);
                        break;
                    case UplinkEventType.WorldUpdate:
                        spectator.Write();
                        break;
                    case UplinkEventType.Quality:
                        if (spectator != null) spectator.Print(client);
                        break;
                    case UplinkEventType.NewSocket:
                        client.Rebind();
                        break;
                    case UplinkEventType.Handover: // status 0: it begins, 1: completed, 2: the client stays
                        Console.WriteLine("handover to " + Encoding.ASCII.GetString(e.Data) + ": status " + e.Status + ", " + UplinkClient.ReasonText(e.Reason));
                        break;
                    case UplinkEventType.Shutdown:
                        client.Close(1);
                        break;
                }
            }
            client.Wait(2);
        }
    }

    static void Fill(Frame frame, ulong n)
    {
        double t = n / 60.0, a = 100 * Math.Sin(t), b = 100 * Math.Cos(t);
        frame.Set(0, a, b, a / 2);
        frame.Set(1, t * 30 % 360, t * 7 % 360, 0);
        frame.Set(2, b, a, 0);
        frame.Set(3, a, b);
        frame.SetIntegers(4, n & 0xffffffff);
        frame.SetIntegers(5, n & 0xff);
        frame.SetIntegers(6, n & 0xff);
        frame.SetIntegers(7, n & 3);
    }
}
