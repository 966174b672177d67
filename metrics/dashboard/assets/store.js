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

const counted = ["calls", "missed", "late", "delta", "keyframe", "reset", "frames", "payloads", "datagrams", "redundant", "age", "full", "encoded", "header", "aead", "headers"];

export function empty() {
  return { ...Object.fromEntries(counted.map((k) => [k, 0])), drops: {} };
}

export function add(sum, f) {
  for (const k of counted) sum[k] += f[k];
  for (const [reason, n] of Object.entries(f.drops ?? {})) sum.drops[reason] = (sum.drops[reason] ?? 0) + n;
  return sum;
}

// sums returns the sums of some counts of each world or jitter buffer in samples, the newest first. The other values
// are those of the newest sample.
function sums(samples, list, name, counts) {
  const out = new Map();
  for (const s of samples) {
    for (const w of s[list] ?? []) {
      const sum = out.get(w[name]);
      if (sum) for (const k of counts) sum[k] += w[k];
      else out.set(w[name], { ...w });
    }
  }
  return out;
}

const worlds = (samples) => sums(samples, "worlds", "name", ["ticks", "encodings", "messages", "updates", "acked", "unsent", "resets", "keyframes", "sharing", "bits", "ack_bits"]);
const buffers = (samples) => sums(samples, "buffers", "rpc", ["released", "missing", "dry", "repeated", "late", "discarded", "resyncs"]);

export const key = (f) => `${f.reliable ? "r" : "u"} ${f.rpc}`;

// recently returns the sums over the last seconds.
export function recently(seconds) {
  const out = { seconds: 0, rpcs: new Map(), acks: 0, ackBits: 0, received: 0, lost: 0, rtts: 0, rttTime: 0, drops: {}, link: null };
  const taken = [];
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
    out.received += s.received;
    out.lost += s.lost;
    out.rtts += s.rtts;
    out.rttTime += s.rtt_time;
    for (const [reason, n] of Object.entries(s.drops ?? {})) out.drops[reason] = (out.drops[reason] ?? 0) + n;
    taken.push(s);
    if (s.link) {
      for (const k of ["lost", "bursts", "received"]) link[k] += s.link[k];
      out.link ??= { ...link, rtt50: s.link.rtt50, rtt95: s.link.rtt95 };
      Object.assign(out.link, link);
    }
  }
  out.worlds = worlds(taken);
  out.buffers = buffers(taken);
  return out;
}

// total returns the sums since the server started, in the shape of recently.
export function total() {
  const s = store.state;
  if (!s) return recently(1);
  return {
    seconds: 0, // totals are not rates
    rpcs: new Map(s.rpcs.map((f) => [key(f), add({ ...empty(), rpc: f.rpc, reliable: f.reliable }, f)])),
    acks: s.acks, ackBits: s.ack_bits, received: s.received, lost: s.lost, rtts: s.rtts, rttTime: s.rtt_time, drops: s.drops ?? {}, link: null, worlds: worlds([s]), buffers: buffers([s]),
  };
}

// of returns the sums of one sample.
export function of(sample) {
  return { seconds: sample.dt, rpcs: new Map(sample.rpcs.map((f) => [key(f), f])), ackBits: sample.ack_bits, received: sample.received, lost: sample.lost };
}

function summed(observed) {
  const sum = empty();
  for (const f of observed.rpcs.values()) add(sum, f);
  return sum;
}

// fullAround is the size of what surrounds a full frame in an encrypted datagram of its own, in bytes.
const fullAround = 47;

// figures returns the bits of an RPC, or of all, and the acks that belong to it. Every ratio and bit rate on
// the page is computed here. Counts of what the server received are without what was lost, so the ratio adds
// that: datagrams with the mean size of the others, and frames likewise.
function figures(f, acks, observed) {
  const payload = f.encoded + f.header;
  const up = payload + f.aead + f.headers;
  const full = f.full + 8 * fullAround * f.frames;
  const sent = observed.received ? 1 + observed.lost / observed.received : 1;
  const all = full * Math.max(1, (f.calls + f.missed) / (f.frames || 1));
  const batched = f.full + f.aead + f.headers; // the same datagrams with full frames, none of which is repeated
  return { ...f, seconds: observed.seconds, payload, up, down: acks, full, batched, batchedRatio: batched / full, ratio: (up * sent + acks) / all, delivered: f.calls / (f.calls + f.missed) };
}

// together returns the figures of all RPCs.
export function together(observed) {
  return figures(summed(observed), observed.ackBits, observed);
}

// each returns the figures of each RPC by its key. Acks are divided by the number of datagrams.
export function each(observed) {
  const acked = [...observed.rpcs.values()].reduce((sum, f) => sum + (f.reliable ? 0 : f.datagrams), 0);
  const part = (f) => (f.reliable || !acked ? 0 : (observed.ackBits * f.datagrams) / acked);
  return new Map([...observed.rpcs].map(([k, f]) => [k, figures(f, part(f), observed)]));
}

export const lostShare = (l) => l.lost / (l.lost + l.received);
export const burst = (l) => l.lost / l.bursts;
