// A client that prints the updates of the world "movers", like test/session/state/state.cpp.
using System;
using System.Collections.Generic;
using System.Globalization;
using System.Net;
using Uplink;

static class Program
{
    static int Main(string[] args)
    {
        int colon = args[0].LastIndexOf(':');
        var server = new IPEndPoint(IPAddress.Parse(args[0].Substring(0, colon)), int.Parse(args[0].Substring(colon + 1)));
        CultureInfo.CurrentCulture = CultureInfo.InvariantCulture;
        using (var schema = new Schema("movers", 0,
            new Field { Name = "Position", Kind = Kind.Vec3, Resolution = 0.25, Min = -1000, Max = 1000, Velocity = "Speed" },
            new Field { Name = "Speed", Kind = Kind.Vec3, Resolution = 0.25, Min = -1000, Max = 1000 },
            new Field { Name = "Asleep", Kind = Kind.Bool }))
        using (var frame = new Frame(schema))
        using (var world = new StateWorld(schema, new StateConfig { Rest = "Asleep" }))
        using (var client = new UplinkClient(server, new ClientConfig { Worlds = 1 }))
        {
            world.Updated += (w, u) => Print(w, u, frame);
            world.Subscribe(client, "movers");
            client.Connect(UplinkClient.IssueToken(null, 9, server));
            while (true)
            {
                client.Run();
                UplinkEvent e;
                while (client.Poll(out e))
                {
                    if (e.Type == UplinkEventType.World && e.Status != 0) Console.WriteLine("world " + e.Status);
                    if (e.Type == UplinkEventType.Disconnected || e.Type == UplinkEventType.Reconnecting) return 0;
                }
                client.Wait(1);
            }
        }
    }

    static void Print(StateWorld w, StateUpdate u, Frame frame)
    {
        var inputs = new List<PlayerInput>();
        for (int i = 0; i < u.Inputs; i++)
        {
            bool missing;
            inputs.Clear();
            long tick = w.Inputs(i, inputs, out missing);
            foreach (var p in inputs) Console.WriteLine("input " + tick + " " + p.Player + " " + p.Data[0]);
        }
        var at = new double[3];
        var speed = new double[3];
        var asleep = new ulong[1];
        for (int i = 0; i < u.Objects; i++)
        {
            StateObject o = w.Object(i, frame);
            if (o.Removed)
            {
                Console.WriteLine("removed " + u.Tick + " " + o.Id);
                continue;
            }
            frame.Get(0, at);
            frame.Get(1, speed);
            frame.GetIntegers(2, asleep);
            Console.WriteLine(string.Format("object {0} {1} {2} {3:F2} {4:F2} {5:F2} {6:F2} {7:F2} {8:F2} {9}", u.Tick, o.Id, o.Generation,
                at[0], at[1], at[2], speed[0], speed[1], speed[2], asleep[0]));
        }
    }
}
