// Client-side prediction for C#: a client applies its own inputs at once, and corrects the result when the server's
// state arrives. include/uplink/predict.hpp and clock.hpp describe it.
using System;
using System.Runtime.InteropServices;

namespace Uplink
{
    [StructLayout(LayoutKind.Sequential)]
    public struct PredictionStats
    {
        internal uint structSize;
        public ulong Inputs, Replayed, States, Late, Corrections;
        public double Sum, Largest;
        public ulong Dropped;
    }

    static class NativePredict
    {
        [DllImport(Native.Library)] internal static extern int uplink_input_history_create(IntPtr a, int maxInputs, double tolerance, out IntPtr history);
        [DllImport(Native.Library)] internal static extern void uplink_input_history_destroy(IntPtr h);
        [DllImport(Native.Library)] internal static extern int uplink_input_history_apply(Handle h, ulong sequence, out UIntPtr slot);
        [DllImport(Native.Library)] internal static extern int uplink_input_history_correct(Handle h, ulong processed);
        [DllImport(Native.Library)] internal static extern UIntPtr uplink_input_history_waiting(Handle h);
        [DllImport(Native.Library)] internal static extern UIntPtr uplink_input_history_slot(Handle h, UIntPtr i);
        [DllImport(Native.Library)] internal static extern int uplink_input_history_corrected(Handle h, double distance);
        [DllImport(Native.Library)] internal static extern void uplink_input_history_reset(Handle h);
        [DllImport(Native.Library)] internal static extern void uplink_input_history_stats(Handle h, ref PredictionStats s);
        [DllImport(Native.Library)] internal static extern int uplink_server_clock_create(IntPtr a, out IntPtr clock);
        [DllImport(Native.Library)] internal static extern void uplink_server_clock_destroy(IntPtr c);
        [DllImport(Native.Library)] internal static extern void uplink_server_clock_observe(ServerClock c, ulong now, ulong server);
        [DllImport(Native.Library)] internal static extern int uplink_server_clock_server(ServerClock c, ulong now, ulong oneWay, out ulong time);
    }

    /// <summary>Predicts the state of one player. It does not allocate after its creation.</summary>
    public sealed class Predictor<TState, TInput> : Handle where TState : struct
    {
        /// <summary>Advances a state by one input, as the server does. The result must depend on the
        /// arguments only.</summary>
        public delegate void StepFunction(ref TState state, TInput input);

        /// <summary>Returns the distance between two states, in the unit of the tolerance.</summary>
        public delegate double DistanceFunction(ref TState a, ref TState b);

        readonly StepFunction step;
        readonly DistanceFunction distance;
        readonly TInput[] inputs;
        TState state;

        /// <summary>Called after each correction of more than the tolerance, with the predicted states before and after it.</summary>
        public event Action<TState, TState> Corrected;

        public Predictor(TState start, StepFunction step, DistanceFunction distance, double tolerance = 0, int maxInputs = 128)
        {
            IntPtr pointer;
            UplinkException.Check(NativePredict.uplink_input_history_create(IntPtr.Zero, maxInputs, tolerance, out pointer), "predictor");
            Created(pointer);
            this.step = step;
            this.distance = distance;
            inputs = new TInput[maxInputs];
            state = start;
        }

        /// <summary>The predicted state: the newest state of the server, advanced by all inputs that it
        /// lacks.</summary>
        public TState State { get { return state; } }

        /// <summary>The number of inputs that the server's newest state does not include.</summary>
        public int Waiting { get { return (int)NativePredict.uplink_input_history_waiting(this); } }

        public PredictionStats Stats
        {
            get
            {
                var s = new PredictionStats { structSize = Layout<PredictionStats>.Size };
                NativePredict.uplink_input_history_stats(this, ref s);
                return s;
            }
        }

        /// <summary>Applies an input that was sent with a sequence number. Invalid: the number is not higher
        /// than that of the previous input.</summary>
        public UplinkError Apply(ulong sequence, TInput input)
        {
            UIntPtr slot;
            int e = NativePredict.uplink_input_history_apply(this, sequence, out slot);
            if (e != 0) return (UplinkError)e;
            inputs[(int)slot] = input;
            step(ref state, input);
            return UplinkError.Ok;
        }

        /// <summary>Replaces the state by a state of the server, which includes the inputs with numbers below
        /// processed, and applies the later inputs again. Returns the distance between the new and the
        /// previous predicted state.</summary>
        public double Correct(ulong processed, TState server)
        {
            TState before = state;
            if (!Replay(processed, server)) return 0;
            double far = distance(ref before, ref state);
            if (NativePredict.uplink_input_history_corrected(this, far) != 0 && Corrected != null) Corrected(before, state);
            return far;
        }

        /// <summary>Like Correct, for a state that does not continue the previous one: the player's first
        /// state, or the first one after a respawn. It is neither counted as a correction nor
        /// reported.</summary>
        public void Place(ulong processed, TState server) { Replay(processed, server); }

        /// Replaces the state by a state of the server and applies the later inputs again. Returns false if
        /// an earlier state included more inputs; then nothing changes.
        bool Replay(ulong processed, TState server)
        {
            if (NativePredict.uplink_input_history_correct(this, processed) == 0) return false;
            state = server;
            int n = Waiting;
            for (int i = 0; i < n; i++) step(ref state, inputs[(int)NativePredict.uplink_input_history_slot(this, Native.Size(i))]);
            return true;
        }

        /// <summary>Restarts the prediction from a state and removes all inputs, for a new session. The
        /// counts continue.</summary>
        public void Reset(TState start)
        {
            state = start;
            NativePredict.uplink_input_history_reset(this);
        }

        internal override void Destroy(IntPtr pointer) { NativePredict.uplink_input_history_destroy(pointer); }
    }

    /// <summary>A client's estimate of the server's time, for programs with a connection of their own. Times
    /// are in ns. A World contains such a clock.</summary>
    public sealed class ServerClock : Handle
    {
        public ServerClock()
        {
            IntPtr pointer;
            UplinkException.Check(NativePredict.uplink_server_clock_create(IntPtr.Zero, out pointer), "clock");
            Created(pointer);
        }

        /// <summary>Adds a packet with a server time that arrived at now.</summary>
        public void Observe(ulong now, ulong server) { NativePredict.uplink_server_clock_observe(this, now, server); }

        /// <summary>Sets time to the server's time at now. oneWay is the shortest one-way delay from the
        /// server. It returns false before the first packet.</summary>
        public bool Server(ulong now, ulong oneWay, out ulong time) { return NativePredict.uplink_server_clock_server(this, now, oneWay, out time) != 0; }

        internal override void Destroy(IntPtr pointer) { NativePredict.uplink_server_clock_destroy(pointer); }
    }
}
