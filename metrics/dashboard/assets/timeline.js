// One player: its last ten minutes, its worlds and its jitter buffers.

import { $, make, rows, setText } from "./dom.js";
import * as f from "./format.js";
import { store } from "./store.js";
import { chart } from "./chart.js";

let id = "";
let charts = null;
let polling = false;
let back = null; // the element that had the focus
let note, tables;

export function closePlayer() {
  id = "";
  charts?.forEach((c) => c.destroy());
  charts = null;
  $("player").hidden = true;
  $("player").replaceChildren();
  back?.focus();
}

const flow = (v) => f.joined(f.rate(v));

const worldColumns = ["World", "Down", "Messages/s", "Objects", "Waiting", "Baseline", "Last ack", "Acked", "Keyframes", "Sharing", "Unsent", "Resets"];
const bufferColumns = ["Jitter buffer", "Held", "Slack", "Target", "Late", "Missing", "Dry", "Repeated", "Resyncs"];

// table creates a table with a row for each item.
function table(columns, key, cells) {
  const body = make("tbody");
  const box = make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": columns[0] }, make("table", {}, make("thead", {}, make("tr", {}, ...columns.map((c) => make("th", { scope: "col" }, c)))), body));
  return {
    box,
    show(items) {
      box.hidden = !items?.length;
      rows(body, items ?? [], key, (i) => make("tr", {}, make("th", { scope: "row", title: key(i) }, key(i)), ...columns.slice(1).map(() => make("td"))),
        (tr, i) => cells(i).forEach((text, n) => setText(tr.children[n + 1], text)));
    },
  };
}

export function openPlayer(of, label, close) {
  const from = document.activeElement;
  back = null;
  closePlayer();
  id = of;
  back = from;
  const button = make("button", { type: "button" }, "Close");
  button.addEventListener("click", close);
  const figures = Array.from({ length: 6 }, () => make("figure"));
  note = make("p", { class: "note" });
  tables = [
    table(worldColumns, (w) => w.name, (w) => (w.ready ? [
      flow(w.bits ?? NaN), f.significant(w.messages ?? NaN), f.number(w.objects), f.number(w.waiting), w.baseline ? age(w.baseline, w.baseline_ms) : f.dash, age(w.ack, w.ack_ms),
      f.percent(w.acked ?? NaN), f.percent(w.keyframe ?? NaN), w.sharing === null ? f.dash : `${f.number(w.sharing, 1)} players`, f.number(w.unsent), f.number(w.resets),
    ] : ["not subscribed", ...worldColumns.slice(2).map(() => f.dash)])),
    table(bufferColumns, (b) => b.rpc, (b) => [
      `${f.number(b.held)} frames`, ms(b.slack), ms(b.target), f.number(b.late), f.number(b.missing), f.number(b.dry), f.number(b.repeated), f.number(b.resyncs),
    ]),
  ];
  const box = $("player");
  box.replaceChildren(make("div", { class: "head" }, make("h3", {}, label), make("span", { class: "note" }, `session ${id}`), button),
    note, ...tables.map((t) => t.box), make("div", { class: "columns" }, ...figures));
  box.hidden = false;
  const line = (figure, spec) => chart(figure, { height: 140, ...spec });
  charts = [
    line(figures[0], { title: "Bit rate", format: flow, axis: f.short, least: 1000, series: [{ label: "Down", color: "--s2", fill: true }, { label: "Up", color: "--s0" }] }),
    line(figures[1], { title: "Baseline and ack age", format: (v) => `${f.number(v)} ms`, axis: f.short, least: 50, series: [{ label: "Last ack", color: "--s1" }, { label: "Baseline", color: "--s3", fill: true }] }),
    line(figures[2], { title: "Waiting objects", format: (v) => f.number(v), axis: f.short, least: 5, series: [{ label: "Waiting", color: "--bad", fill: true }] }),
    line(figures[3], { title: "Calls per second", stacked: 2, format: (v) => f.number(v), axis: f.short, least: 5, series: [{ label: "Delivered", color: "--s0" }, { label: "Missed", color: "--bad" }] }),
    line(figures[4], { title: "Losses and drops", format: (v) => f.number(v), axis: f.short, least: 5, series: [{ label: "Lost datagrams", color: "--s1", fill: true }, { label: "Drops", color: "--bad" }] }),
    line(figures[5], { title: "RTT", format: f.ms, axis: f.short, least: 10, series: [{ label: "RTT", color: "--s3", fill: true }] }),
  ];
  figures[1].id = "player-ages";
  figures[2].id = "player-waiting";
  pollPlayer(id);
}

const ms = (us) => `${f.number(us / 1000, 1)} ms`;
const age = (ticks, time) => `${f.number(ticks)} ${ticks === 1 ? "tick" : "ticks"}, ${f.time(time)}`;

// pollPlayer requests the timeline.
export async function pollPlayer(of) {
  if (!charts || polling) return;
  polling = true;
  try {
    const r = await fetch(`player?id=${of}`);
    if (of !== id) return;
    if (r.ok) show(await r.json());
    else if (r.status === 404) setText(note, "The player has left.");
  } catch {
    // The event stream reports that the server is gone.
  } finally {
    polling = false;
  }
}

function show(t) {
  const last = (store.state?.t ?? Date.now()) / 1000;
  const at = t.calls?.map((_, i) => last - (t.calls.length - 1 - i)) ?? [];
  const sum = (a) => (a ?? []).reduce((x, y) => x + y, 0);
  const bits = (a) => (a ?? []).map((v) => 8 * v);
  setText(note, `In the last ${f.number(at.length)} s: ${f.number(sum(t.calls))} calls delivered, ${f.number(sum(t.missed))} missed, `
    + `${f.number(sum(t.lost))} of ${f.number(sum(t.lost) + sum(t.received))} datagrams lost.`);
  tables[0].show(t.worlds);
  tables[1].show(t.buffers);
  $("player-ages").hidden = $("player-waiting").hidden = !t.worlds?.length;
  charts[0].set([at, bits(t.sent), bits(t.bytes)], "bit/s on the wire");
  charts[1].set([at, t.ack ?? [], t.baseline ?? []], "of all worlds, the maximum");
  charts[2].set([at, t.waiting ?? []], "of all worlds");
  charts[3].set([at, t.calls ?? [], t.missed ?? []], "");
  charts[4].set([at, t.lost ?? [], t.drops ?? []], "per second");
  charts[5].set([at, (t.rtt ?? []).map((v) => v / 10 || null)], "");
}
