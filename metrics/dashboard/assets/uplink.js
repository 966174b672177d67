// The tiles and the charts of all RPCs together.

import { $, make, setText } from "./dom.js";
import * as f from "./format.js";
import { burst, delivered, lostShare, payload, recently, store, summed, wire } from "./store.js";
import { chart } from "./chart.js";

const tiles = [
  ["ratio", "Wire ratio", "best"], ["wire", "Up, received"], ["down", "Down, acks"], ["full", "Full frames"],
  ["calls", "Calls"], ["delivered", "Delivery"], ["rtt", "RTT"], ["loss", "Uplink loss"],
];
const shown = {};

// fullAround is the size of what surrounds a full frame in an encrypted datagram of its own, in bytes.
const fullAround = 47;

function put(name, [value, unit], sub, state) {
  const t = shown[name];
  setText(t.value, value);
  setText(t.unit, unit ?? "");
  setText(t.sub, sub);
  t.tile.classList.toggle("bad", state === "bad");
}

export function showTiles(observed) {
  const sum = summed(observed);
  const per = observed.seconds;
  const flow = (bits) => (per ? f.rate(bits / per) : f.amount(bits));
  const players = store.state?.players ?? store.samples.at(-1)?.players ?? 0;
  const full = sum.full + 8 * fullAround * sum.calls;
  put("ratio", [f.ratio((wire(sum) + observed.ackBits) / full), ""], "both ways, to full frames");
  put("wire", flow(wire(sum)), `payload ${f.joined(flow(payload(sum)))}`);
  put("down", flow(observed.ackBits), "sent by the server");
  put("full", flow(full), "each in a datagram");
  put("calls", per ? [f.count(sum.calls / per), "/s"] : [f.count(sum.calls), ""], `${f.number(players)} ${players === 1 ? "player" : "players"}`);
  put("delivered", [f.percent(delivered(sum)).replace(" %", ""), "%"], `${f.count(sum.missed)} missed`, delivered(sum) < 0.98 ? "bad" : "");
  const mean = observed.rtts ? observed.rttTime / observed.rtts / 1000 : NaN;
  const link = observed.link;
  if (link?.rtt50) put("rtt", [f.ms(link.rtt50 / 10).replace(" ms", ""), "ms"], `p95 ${f.ms(link.rtt95 / 10)}`);
  else put("rtt", [f.ms(mean).replace(" ms", ""), "ms"], "mean");
  if (link && link.received) put("loss", [f.percent(lostShare(link), 1).replace(" %", ""), "%"], link.bursts ? `in bursts of ${f.number(burst(link), 1)}` : "no bursts");
  else put("loss", [f.dash, ""], per ? "no data yet" : "only for 10 s");
}

let bits, link, trip;

export function mountUplink() {
  for (const [name, title, kind] of tiles) {
    const value = make("span");
    const unit = make("span", { class: "unit" });
    const sub = make("div", { class: "sub" });
    const tile = make("div", { class: `tile ${kind ?? ""}`, id: `tile-${name}` }, make("dt", {}, title), make("dd", {}, make("div", { class: "value" }, value, unit), sub));
    shown[name] = { tile, value, unit, sub };
    $("tiles").append(tile);
  }
  const flow = (v) => f.joined(f.rate(v));
  bits = chart($("chart-bits"), {
    title: "Bits of all RPCs", stacked: 4, format: flow, axis: f.short, least: 1000,
    series: [
      { label: "Encoded frames", color: "--s0" }, { label: "Payload headers", color: "--s6" },
      { label: "AEAD tags", color: "--s4" }, { label: "Datagram, UDP and IP headers", color: "--s9" },
      { label: "Full frames", color: "--fg", dash: [5, 4] },
    ],
  });
  link = chart($("chart-link"), {
    title: "Loss", format: (v) => f.percent(v), axis: (v) => f.percent(v, v < 0.1 ? 1 : 0), least: 0.02,
    series: [{ label: "Lost datagrams", color: "--s1", fill: true }, { label: "Missed frames", color: "--bad" }],
  });
  trip = chart($("chart-rtt"), {
    title: "RTT", format: f.ms, axis: f.short, least: 10,
    series: [{ label: "95th percentile", color: "--s3" }, { label: "Median", color: "--s0", fill: true }],
  });
}

export function showCharts() {
  const t = store.samples.map((s) => s.t / 1000);
  const sums = store.samples.map((s) => ({ dt: s.dt, ...summed({ rpcs: new Map(s.rpcs.map((r, i) => [i, r])) }) }));
  const per = (get) => sums.map((s) => get(s) / s.dt);
  const now = summed(recently(10));
  bits.set([t, per((s) => s.encoded), per((s) => s.header), per((s) => s.aead), per((s) => s.headers), per((s) => s.full)],
    now.full ? `uplink in bit/s, received by the server: payloads take ${f.ratio(payload(now) / now.full)} of full frames` : "uplink in bit/s, received by the server");
  link.set([t, store.samples.map((s) => (s.link?.received ? lostShare(s.link) : null)), sums.map((s) => (s.calls + s.missed ? 1 - delivered(s) : null))], "share of datagrams, of frames");
  const mean = (s) => (s.rtts ? s.rtt_time / s.rtts / 1000 : null);
  trip.set([t, store.samples.map((s) => (s.link?.rtt95 ? s.link.rtt95 / 10 : null)), store.samples.map((s) => (s.link?.rtt50 ? s.link.rtt50 / 10 : mean(s)))], "ms, of all players");
}
