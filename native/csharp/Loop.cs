// The ticks of a client that predicts its player, for C#. include/uplink/loop.hpp describes it.
using System;
using System.Runtime.InteropServices;

namespace Uplink
{
    static class NativeLoop
    {
        [DllImport(Native.Library)] internal static extern int uplink_client_next_call(UplinkClient c, int rpc, out ulong session, out ulong sequence);
    }

    /// <summary>Runs the ticks of a client that predicts its player: it gets inputs from the game, calls an
    /// RPC with them, predicts, follows the pace of the server's jitter buffer, and continues in new sessions
    /// and after handovers. It does not allocate after its creation.</summary>
    public sealed class Loop<TState, TInput> : IDisposable where TState : struct
    {
        /// <summary>Returns the player's input for the tick that is due at a time in ns. sequence is the
        /// number of the call with the input. It is 0 in the first tick of each session: earlier numbers are
        /// then obsolete.</summary>
        public delegate TInput InputFunction(ulong at, ulong sequence);

        /// <summary>Sets a frame of the RPC to an input.</summary>
        public delegate void PackFunction(ref TInput input, Frame frame);

        /// <summary>Restores the quantized input from a frame, as the server decodes it. The prediction uses
        /// this input.</summary>
        public delegate void UnpackFunction(Frame frame, ref TInput input);

        /// <summary>The delay of Advance in ns above which it skips ticks, because their inputs would arrive
        /// too late.</summary>
        public const ulong MaxCatchUp = 150000000;

        readonly UplinkClient client;
        readonly int rpc;
        readonly Frame frame;
        readonly double interval;
        readonly InputFunction input;
        readonly PackFunction pack;
        readonly UnpackFunction unpack;
        readonly Predictor<TState, TInput> predictor;
        bool started;
        ulong next, session, dropped, tick;
        uint key;

        /// <summary>rpc is the number that UplinkClient.Bind returned for the schema of the frame. Only the
        /// loop may call this RPC. hz is the number of ticks per second. The loop owns the predictor.
        ///</summary>
        public Loop(UplinkClient client, int rpc, Frame frame, double hz, Predictor<TState, TInput> predictor, InputFunction input, PackFunction pack, UnpackFunction unpack)
        {
            this.client = client;
            this.rpc = rpc;
            this.frame = frame;
            this.predictor = predictor;
            this.input = input;
            this.pack = pack;
            this.unpack = unpack;
            interval = 1e9 / hz;
        }

        /// <summary>Identifies an object by its id and its generation, for Correct.</summary>
        public static uint Key(int id, int generation) { return (uint)id << 8 | (uint)generation; }

        /// <summary>The predicted state.</summary>
        public TState State { get { return predictor.State; } }

        /// <summary>True if a state of the server was received in this session.</summary>
        public bool Known { get; private set; }

        /// <summary>The number of inputs that the server's newest state does not include.</summary>
        public int Waiting { get { return predictor.Waiting; } }

        public PredictionStats Stats { get { return predictor.Stats; } }

        /// <summary>The number of ticks that were skipped because Advance was called too late.</summary>
        public ulong Skipped { get; private set; }

        /// <summary>The number of ticks without an input, because the RPC was not bound or because of an
        /// error.</summary>
        public ulong Unsent { get; private set; }

        /// <summary>Runs the ticks that are due at now, and sets due to the time at which the next one is
        /// due. Call it once per drawn frame, with UplinkClient.Now. It runs missed ticks at once; if it is
        /// more than MaxCatchUp late, it skips them. It ends at the first error of UplinkClient.Call or
        /// exception of a function of the game; the loop remains usable.</summary>
        public UplinkError Advance(ulong now, out ulong due)
        {
            if (!started || now > next + MaxCatchUp)
            {
                if (started) Skipped += (ulong)((now - next) / interval);
                next = now;
                started = true;
            }
            UplinkError e = UplinkError.Ok;
            while (next <= now && e == UplinkError.Ok)
            {
                ulong at = next;
                next += (ulong)(interval / client.Pace(rpc).Rate);
                e = Run(at);
                if (e == UplinkError.Closed) e = UplinkError.Ok;
            }
            due = next;
            return e;
        }

        /// <summary>Corrects the prediction with a state of the player's object in the newest message of a
        /// world, and that message's tick. A state whose tick is not later than that of the last state has no
        /// effect. If the key differs from that of the last state, for example after a respawn, or if the
        /// session is new, the change is neither counted as a correction nor reported. Invalid: the messages
        /// do not contain the number of processed calls of the RPC, because the server does not register it
        /// with ds.ForPrediction.</summary>
        public UplinkError Correct(ClientWorld world, ulong stateTick, uint objectKey, TState state)
        {
            ulong current, sequence, processed;
            if (NativeLoop.uplink_client_next_call(client, rpc, out current, out sequence) == 0) return UplinkError.Ok;
            if (current != session) Begin(current);
            if (Known && stateTick <= tick) return UplinkError.Ok;
            if (!world.Processed(rpc, out processed)) return !Known && Stats.Dropped > dropped ? UplinkError.Invalid : UplinkError.Ok;
            if (Known && objectKey == key) predictor.Correct(processed, state);
            else predictor.Place(processed, state);
            tick = stateTick;
            key = objectKey;
            Known = true;
            return UplinkError.Ok;
        }

        void Begin(ulong current)
        {
            session = current;
            Known = false;
            dropped = Stats.Dropped;
            predictor.Reset(predictor.State);
        }

        UplinkError Run(ulong at)
        {
            ulong current, sequence;
            Unsent++; // reverted when the input was sent
            if (NativeLoop.uplink_client_next_call(client, rpc, out current, out sequence) == 0) return UplinkError.Closed;
            if (current != session) Begin(current);
            TInput value = input(at, sequence);
            pack(ref value, frame);
            UplinkError e = client.Call(rpc, frame);
            if (e != UplinkError.Ok) return e;
            unpack(frame, ref value);
            Unsent--;
            return predictor.Apply(sequence, value);
        }

        public void Dispose() { predictor.Dispose(); }
    }
}
