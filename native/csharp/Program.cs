// 600 calls from an encoder to a decoder over a loop that loses every fifth payload.
using System;
using Uplink;

static class Program
{
    static int Main()
    {
        using (var schema = new Schema("ServerMove", 60,
            new Field { Name = "Location", Kind = Kind.Vec3, Resolution = 0.25 },
            new Field { Name = "Buttons", Kind = Kind.Bits, Width = 8 },
            new Field { Name = "Chat", Kind = Kind.Bytes, Size = 20 }))
        using (var frame = new Frame(schema))
        using (var encoder = new RpcEncoder(schema))
        using (var decoder = new RpcDecoder(schema))
        {
            var payload = new byte[RpcEncoder.MaxPayload];
            var ack = new byte[RpcDecoder.MaxAck];
            var calls = new Call[RpcDecoder.MaxCalls];
            var at = new double[3];
            int arrived = 0, bytes = 0;
            for (int tick = 0; tick < 600; tick++)
            {
                frame.Set(0, tick * 0.25, -tick * 0.5, 90);
                frame.SetIntegers(1, (ulong)(tick / 50 % 2));
                frame.SetBytes(2, new byte[] { (byte)tick });
                int size = encoder.Encode(frame, payload);
                bytes += size;
                if (tick % 5 == 4) continue;
                int n;
                if (decoder.Decode(payload, size, calls, out n) != UplinkError.Ok || n != 1) return Fail("tick " + tick);
                calls[0].Frame.Get(0, at);
                if (calls[0].Sequence != (ulong)tick || at[0] != tick * 0.25 || at[1] != -tick * 0.5 || at[2] != 90) return Fail("values of tick " + tick);
                if (calls[0].Frame.GetBytes(2)[0] != (byte)tick) return Fail("bytes of tick " + tick);
                arrived++;
                if (tick % 6 == 0 && !encoder.Ack(ack, decoder.Ack(ack))) return Fail("ack of tick " + tick);
            }
            try
            {
                new Schema("Wrong", 60, new Field { Name = "X", Kind = Kind.UInt, Width = 65 });
                return Fail("a field of 65 bits");
            }
            catch (UplinkException e)
            {
                if (e.Error != UplinkError.Invalid || !e.Message.StartsWith("field X: ")) return Fail(e.Message);
            }
            Console.WriteLine("600 calls, " + bytes / 600 + " bytes each on average, " + arrived + " arrived");
            return arrived == 480 ? 0 : 1;
        }
    }

    static int Fail(string what)
    {
        Console.WriteLine(what);
        return 1;
    }
}
