// The data that the server sent: one sample per second, and the latest state.

export const store = {
  hello: null,
  samples: [], // the oldest first
  state: null,
  span: 600,
};

export function setHistory(samples) {
  store.samples = samples;
}

export function addSample(s) {
  const last = store.samples.at(-1);
  if (last && s.t <= last.t) return;
  store.samples.push(s);
  if (store.samples.length > store.span) store.samples.splice(0, store.samples.length - store.span);
}

const counted = ["calls", "missed", "late", "delta", "keyframe", "reset", "payloads", "redundant", "age", "full", "encoded", "header", "aead", "headers"];

export function empty() {
  return { ...Object.fromEntries(counted.map((k) => [k, 0])), drops: {} };
}

export function add(sum, f) {
  for (const k of counted) sum[k] += f[k];
  for (const [reason, n] of Object.entries(f.drops ?? {})) sum.drops[reason] = (sum.drops[reason] ?? 0) + n;
  return sum;
}

export const key = (f) => `${f.reliable ? "r" : "u"} ${f.rpc}`;

// recently returns the sums over the last seconds.
export function recently(seconds) {
  const out = { seconds: 0, rpcs: new Map(), acks: 0, ackBits: 0, rtts: 0, rttTime: 0, drops: {}, link: null };
  const link = { lost: 0, bursts: 0, received: 0 };
  for (let i = store.samples.length - 1; i >= 0 && out.seconds < seconds - 0.5; i--) {
    const s = store.samples[i];
    out.seconds += s.dt;
    for (const f of s.rpcs) {
      const k = key(f);
      if (!out.rpcs.has(k)) out.rpcs.set(k, { ...empty(), rpc: f.rpc, reliable: f.reliable });
      add(out.rpcs.get(k), f);
    }
    out.acks += s.acks;
    out.ackBits += s.ack_bits;
    out.rtts += s.rtts;
    out.rttTime += s.rtt_time;
    for (const [reason, n] of Object.entries(s.drops ?? {})) out.drops[reason] = (out.drops[reason] ?? 0) + n;
    if (s.link) {
      for (const k of ["lost", "bursts", "received"]) link[k] += s.link[k];
      out.link ??= { ...link, rtt50: s.link.rtt50, rtt95: s.link.rtt95 };
      Object.assign(out.link, link);
    }
  }
  return out;
}

// total returns the sums since the server started, in the shape of recently.
export function total() {
  const s = store.state;
  if (!s) return recently(1);
  return {
    seconds: 0, // totals are not rates
    rpcs: new Map(s.rpcs.map((f) => [key(f), add({ ...empty(), rpc: f.rpc, reliable: f.reliable }, f)])),
    acks: s.acks, ackBits: s.ack_bits, rtts: s.rtts, rttTime: s.rtt_time, drops: s.drops ?? {}, link: null,
  };
}

// summed returns the sum over all RPCs.
export function summed(observed) {
  const sum = empty();
  for (const f of observed.rpcs.values()) add(sum, f);
  return sum;
}

export const payload = (f) => f.encoded + f.header;
export const wire = (f) => payload(f) + f.aead + f.headers;
export const delivered = (f) => f.calls / (f.calls + f.missed);
export const lostShare = (l) => l.lost / (l.lost + l.received);
export const burst = (l) => l.lost / l.bursts;
