// A client that predicts a sled, for the test in native/test/session. In its second session it pushes the
// sled 100 times, waits until the sled stands still at the server, and prints the predicted state.
using System;
using System.Net;
using Uplink;

static class Program
{
    struct Sled
    {
        public int X, Speed;
    }

    static void Step(ref Sled s, double force)
    {
        s.Speed = s.Speed * 7 / 8 + (int)(force * 16);
        s.X += s.Speed;
    }

    static int Main(string[] args)
    {
        int colon = args[0].LastIndexOf(':');
        var server = new IPEndPoint(IPAddress.Parse(args[0].Substring(0, colon)), int.Parse(args[0].Substring(colon + 1)));
        using (var push = new Schema("Push", 60, new Field { Name = "Force", Kind = Kind.Scalar, Resolution = 0.25 }))
        using (var body = new Schema("sleds", 60,
            new Field { Name = "X", Kind = Kind.Int, Width = 32 }, new Field { Name = "Speed", Kind = Kind.Int, Width = 32 }))
        using (var frame = new Frame(push))
        using (var world = new SnapshotWorld(new[] { body }))
        using (var client = new UplinkClient(server, new ClientConfig { Worlds = 1 }))
        {
            ulong sessions = 0, inputs = 0;
            var value = new double[1];
            var predictor = new Predictor<Sled, double>(new Sled(), Step, (ref Sled a, ref Sled b) => Math.Abs(a.X - b.X));
            // The inputs are not multiples of the resolution: the server decodes them rounded.
            Loop<Sled, double>.InputFunction input = (at, sequence) =>
            {
                if (sequence == 0) sessions++;
                inputs = sequence + 1;
                return inputs > 100 ? 0 : 0.3 * (at / 500000000 * 7 % 21) - 3;
            };
            using (var loop = new Loop<Sled, double>(client, client.Bind(push, copies: 2), frame, 60, predictor, input,
                (ref double force, Frame f) => f.Set(0, force),
                (Frame f, ref double force) => { f.Get(0, value); force = value[0]; }))
            {
                world.Subscribe(client, "sleds");
                client.Connect(UplinkClient.IssueToken(null, 9, server));
                while (sessions < 2 || inputs < 200 || loop.Waiting > 50 || loop.State.Speed != 0)
                {
                    client.Run();
                    UplinkEvent e;
                    while (client.Poll(out e))
                    {
                        // Connect below ends the first session.
                        if (e.Type == UplinkEventType.BindFailed || e.Type == UplinkEventType.Disconnected && sessions != 1) return 1;
                    }
                    if (sessions == 1 && inputs >= 100)
                    {
                        inputs = 0;
                        client.Connect(UplinkClient.IssueToken(null, 9, server)); // ends the session
                    }
                    Correct(loop, world);
                    ulong next;
                    UplinkException.Check(loop.Advance(UplinkClient.Now, out next), "tick");
                    client.Wait(1);
                }
                Console.WriteLine(string.Join(" ", sessions, loop.State.X, loop.State.Speed, loop.Stats.Inputs, loop.Unsent > 0));
                return 0;
            }
        }
    }

    static void Correct(Loop<Sled, double> loop, SnapshotWorld world)
    {
        ulong tick, received;
        if (!world.Newest(out tick, out received)) return;
        Objects o = world.Objects(0);
        if (o.Count == 0) return;
        var row = new int[o.Components];
        o.Row(0, row);
        var sled = new Sled { X = row[0], Speed = row[1] };
        UplinkException.Check(loop.Correct(world, tick, Loop<Sled, double>.Key(o.Id(0), o.Generation(0)), sled), "correct");
    }
}
