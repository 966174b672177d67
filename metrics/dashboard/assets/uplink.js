// The tiles and the charts of all RPCs together.

import { $, make, setText } from "./dom.js";
import * as f from "./format.js";
import { burst, lostShare, of, store, together } from "./store.js";
import { chart } from "./chart.js";

const tiles = [
  ["ratio", "Wire ratio", "best"], ["up", "Up"], ["down", "Down, acks"], ["full", "Full frames"],
  ["calls", "Calls"], ["delivered", "Delivery"], ["rtt", "RTT"], ["loss", "Uplink loss"],
];
const shown = {};

function put(name, [value, unit], sub, state) {
  const t = shown[name];
  setText(t.value, value);
  setText(t.unit, unit ?? "");
  setText(t.sub, sub);
  t.tile.classList.toggle("bad", state === "bad");
}

// vantage returns where the bits were counted.
const vantage = () => (store.hello?.sent ? "sent by clients" : "received by the server");

// showTiles shows the figures of all RPCs, and returns them.
export function showTiles(observed) {
  const all = together(observed);
  const per = all.seconds;
  const flow = (bits) => f.flow(bits, per);
  const players = store.state?.players ?? store.samples.at(-1)?.players ?? 0;
  put("ratio", [f.ratio(all.ratio), ""], "both ways, to full frames");
  put("up", flow(all.up), vantage());
  put("down", flow(all.down), "sent by the server");
  put("full", flow(all.full), "each in a datagram");
  put("calls", per ? [f.count(all.frames / per), "/s"] : [f.count(all.frames), ""], `${f.number(players)} ${players === 1 ? "player" : "players"}`);
  put("delivered", [f.percent(all.delivered).replace(" %", ""), "%"], `${f.count(all.missed)} missed`, all.delivered < 0.98 ? "bad" : "");
  const mean = observed.rtts ? observed.rttTime / observed.rtts / 1000 : NaN;
  const link = observed.link;
  if (link?.rtt50) put("rtt", [f.ms(link.rtt50 / 10).replace(" ms", ""), "ms"], `p95 ${f.ms(link.rtt95 / 10)}`);
  else put("rtt", [f.ms(mean).replace(" ms", ""), "ms"], "mean");
  if (link && link.received) put("loss", [f.percent(lostShare(link), 1).replace(" %", ""), "%"], link.bursts ? `in bursts of ${f.number(burst(link), 1)}` : "no bursts");
  else put("loss", [f.dash, ""], per ? "no data yet" : "only for 10 s");
  return all;
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
    title: "Bits of all RPCs", stacked: 5, format: flow, axis: f.short, least: 1000,
    series: [
      { label: "Encoded frames", color: "--s0" }, { label: "Payload headers", color: "--s6" },
      { label: "AEAD tags", color: "--s4" }, { label: "Datagram, UDP and IP headers", color: "--s9" },
      { label: "Acks to clients", color: "--s2" }, { label: "Full frames", color: "--fg", dash: [5, 4] },
      { label: "Batched without a codec", color: "--muted", dash: [2, 3] },
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
  const all = store.samples.map((s) => together(of(s)));
  const per = (get) => all.map((s) => get(s) / s.seconds);
  bits.set([t, per((s) => s.encoded), per((s) => s.header), per((s) => s.aead), per((s) => s.headers), per((s) => s.down), per((s) => s.full), per((s) => s.batched)],
    `both ways in bit/s, on the wire, ${vantage()}; the dashed line is full frames, each in a datagram, the dotted one full frames in the datagrams of the batching`);
  link.set([t, store.samples.map((s) => (s.link?.received ? lostShare(s.link) : null)), all.map((s) => (s.calls + s.missed ? 1 - s.delivered : null))], "share of datagrams, of frames");
  const mean = (s) => (s.rtts ? s.rtt_time / s.rtts / 1000 : null);
  trip.set([t, store.samples.map((s) => (s.link?.rtt95 ? s.link.rtt95 / 10 : null)), store.samples.map((s) => (s.link?.rtt50 ? s.link.rtt50 / 10 : mean(s)))], "ms, of all players");
}
