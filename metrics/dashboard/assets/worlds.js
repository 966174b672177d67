// The table of worlds: what the server sends, and what of it is shared or waits.

import { $, make, rows, setText } from "./dom.js";
import * as f from "./format.js";
import { store } from "./store.js";
import { chart } from "./chart.js";

const columns = ["World", "Players", "Down", "Down per player", "Acks", "Ticks", "Encodings per tick", "Players per encoding", "Keyframes", "Objects per player",
  "Waiting objects", "Acked", "Unsent", "Resets", "Oldest baseline", "Oldest ack"];
const most = 5; // worlds in the charts
let body, bits, ages;
let charted = "";

export function mountWorlds() {
  body = make("tbody");
  $("worlds").append(make("caption", { class: "hidden" }, "What is sent of each world"),
    make("thead", {}, make("tr", {}, ...columns.map((c) => make("th", { scope: "col" }, c)))), body);
}

function cells(w, seconds) {
  const flow = (bits) => f.joined(f.flow(bits, seconds));
  const count = (n) => (seconds ? `${f.significant(n / seconds)}/s` : f.number(n));
  const age = (ticks) => (w.players ? f.time((ticks / w.tick_hz) * 1000) : f.dash);
  return [
    f.number(w.players), flow(w.bits), seconds && w.players ? flow(w.bits / w.players) : f.dash, flow(w.ack_bits), count(w.ticks),
    w.encodings ? f.number(w.encodings / w.ticks, 2) : f.dash, w.messages ? f.number(w.sharing / w.messages, 1) : f.dash,
    w.messages ? f.percent(w.keyframes / w.messages) : f.dash, w.players ? f.number(w.objects / w.players) : f.dash, f.number(w.waiting),
    w.messages ? f.percent(Math.min(1, w.acked / w.messages)) : f.dash, f.number(w.unsent), f.number(w.resets), w.age ? age(w.age) : f.dash, age(w.ack_age),
  ];
}

export function showWorlds(observed) {
  const items = [...observed.worlds.values()];
  const opened = $("downlink").hidden && items.length > 0;
  $("downlink").hidden = items.length === 0;
  rows(body, items, (w) => w.name, (w) => make("tr", {}, make("th", { scope: "row", title: w.name }, w.name), ...columns.slice(1).map(() => make("td"))),
    (tr, w) => {
      cells(w, observed.seconds).forEach((text, n) => setText(tr.children[n + 1], text));
      tr.children[14].title = `${f.number(w.age)} ticks`;
      tr.children[15].title = `${f.number(w.ack_age)} ticks`;
      tr.children[10].classList.toggle("bad", w.waiting > 0);
      tr.children[12].classList.toggle("bad", w.unsent > 0);
    });
  if (opened) showWorldCharts();
}

// showWorldCharts draws the worlds with the most bits; the others are in the table.
export function showWorldCharts() {
  const last = store.samples.at(-1)?.worlds ?? [];
  if ($("downlink").hidden || !last.length) return;
  const names = last.toSorted((a, b) => b.bits - a.bits).slice(0, most).map((w) => w.name).sort();
  if (charted !== names.join("\n")) {
    charted = names.join("\n");
    bits?.destroy();
    ages?.destroy();
    const series = names.map((n, i) => ({ label: f.brief(n), color: `--s${[2, 0, 1, 3, 5][i]}`, fill: names.length === 1 }));
    bits = chart($("chart-worlds"), { title: "Down", height: 150, format: (v) => f.joined(f.rate(v)), axis: f.short, least: 1000, series });
    ages = chart($("chart-acks"), { title: "Oldest ack", height: 150, format: (v) => `${f.number(v)} ms`, axis: f.short, least: 50, series });
  }
  const t = store.samples.map((s) => s.t / 1000);
  const each = (get) => names.map((n) => store.samples.map((s) => {
    const w = s.worlds?.find((x) => x.name === n);
    return w ? get(w, s) : null;
  }));
  bits.set([t, ...each((w, s) => w.bits / s.dt)], "bit/s on the wire, to all players");
  ages.set([t, ...each((w) => (w.players ? (w.ack_age / w.tick_hz) * 1000 : null))], "ms since a client acked a message, the maximum");
}
