// A client without a game, as examples/console.cpp, for the RPC ServerMove of
// testdata/traces/portal2_coop_60hz.schema.json:
//
//   console.exe SCHEMA ADDRESS:PORT SECONDS - [LOG]
//
// SCHEMA is not read: the schema is below. LOG gets the components of each call, a line each.
using System;
using System.IO;
using System.Net;
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
        ulong duration = ulong.Parse(args[2]) * 1000000000;
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
        using (var client = new UplinkClient(server))
        using (TextWriter log = args.Length > 4 ? new StreamWriter(args[4]) : TextWriter.Null)
            return Play(client, schema, frame, client.Bind(schema), server, duration, log);
    }

    static int Play(UplinkClient client, Schema schema, Frame frame, int rpc, IPEndPoint server, ulong duration, TextWriter log)
    {
        const ulong interval = 1000000000 / 60;
        ulong id = BitConverter.ToUInt64(Guid.NewGuid().ToByteArray(), 0), n = 0, tick = 0, end = ulong.MaxValue;
        bool bound = false;
        client.Connect(UplinkClient.IssueToken(null, id, server));
        while (true)
        {
            if (bound && UplinkClient.Now >= end)
            {
                client.Close();
                bound = false;
            }
            for (; bound && UplinkClient.Now >= tick; tick += interval)
            {
                Fill(frame, n++);
                if (client.Call(rpc, frame) == Error.Ok) log.WriteLine(string.Join(" ", frame.Components(schema)));
            }
            client.Run();
            Event e;
            while (client.Poll(out e))
            {
                switch (e.Type)
                {
                    case EventType.Connected:
                        Console.WriteLine("connected, suite " + client.Stats.Suite);
                        break;
                    case EventType.Bound:
                        bound = true;
                        tick = UplinkClient.Now;
                        if (end == ulong.MaxValue) end = tick + duration;
                        break;
                    case EventType.BindFailed:
                        Console.WriteLine("cannot bind: reason " + e.Value);
                        return 1;
                    case EventType.Reconnecting:
                        Console.WriteLine("reconnecting: " + UplinkClient.ReasonText(e.Reason));
                        bound = false;
                        client.Connect(UplinkClient.IssueToken(null, id, server));
                        break;
                    case EventType.Disconnected:
                        Console.WriteLine("disconnected: " + UplinkClient.ReasonText(e.Reason) + "; " + client.Stats.Calls + " calls, " + client.Stats.Acks + " acks");
                        return 0;
                    case EventType.NewSocket:
                        client.Rebind();
                        break;
                    case EventType.Shutdown:
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
