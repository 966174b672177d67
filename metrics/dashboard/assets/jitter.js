// The jitter buffers: a table, and a chart of one RPC's slack.

import { $, make, rows, setText } from "./dom.js";
import * as f from "./format.js";
import { store } from "./store.js";
import { chart } from "./chart.js";

const columns = ["RPC", "Players", "Held per player", "Slack", "Target", "Released", "Late", "Missing", "Dry", "Repeated", "Discarded", "Resyncs"];
let body, slack, ticks;

export function mountJitter() {
  body = make("tbody");
  $("jitter").append(make("caption", { class: "hidden" }, "The jitter buffers of each RPC"), make("thead", {}, make("tr", {}, ...columns.map((c) => make("th", { scope: "col" }, c)))), body);
  const time = (v) => `${f.number(v, 1)} ms`;
  slack = chart($("chart-slack"), { title: "Slack", height: 150, format: time, axis: f.short, least: 20, series: [{ label: "Slack", color: "--s0", fill: true }, { label: "Target", color: "--fg", dash: [5, 4] }] });
  ticks = chart($("chart-missing"), { title: "Ticks without a frame", height: 150, format: (v) => f.percent(v), axis: (v) => f.percent(v, v < 0.1 ? 1 : 0), least: 0.02, series: [{ label: "Missing", color: "--bad", fill: true }, { label: "Dry", color: "--s1" }] });
  $("jitter-rpc").addEventListener("change", showJitterCharts);
}

const ms = (us) => `${f.number(us / 1000, 1)} ms`;

export function showJitter(observed) {
  const items = [...observed.buffers.values()];
  const hidden = items.length === 0;
  const opened = $("buffers").hidden && !hidden;
  $("buffers").hidden = hidden;
  const per = observed.seconds;
  const count = (n) => (per ? (n ? `${f.significant(n / per)}/s` : "0") : f.number(n));
  rows(body, items, (b) => b.rpc, (b) => make("tr", {}, make("th", { scope: "row", title: b.rpc }, b.rpc), ...columns.slice(1).map(() => make("td"))), (tr, b) => {
    const of = b.released + b.missing;
    const share = (n) => `${count(n)}${of && n ? ` (${f.percent(n / of)})` : ""}`;
    const none = (text) => (b.buffers ? text : f.dash);
    [
      f.number(b.buffers), none(f.number(b.held / b.buffers, 1)), none(ms(b.slack)), none(ms(b.target)), count(b.released), count(b.late),
      share(b.missing), share(b.dry), share(b.repeated), count(b.discarded), count(b.resyncs),
    ].forEach((text, i) => setText(tr.children[i + 1], text));
    tr.children[3].classList.toggle("bad", b.buffers > 0 && b.slack < 0);
    tr.children[7].classList.toggle("bad", of > 0 && b.missing / of > 0.05);
  });
  const pick = $("jitter-rpc");
  if ([...pick.options].map((o) => o.value).join("\n") !== items.map((b) => b.rpc).join("\n")) {
    const now = pick.value;
    pick.replaceChildren(...items.map((b) => make("option", { value: b.rpc }, b.rpc)));
    if (items.some((b) => b.rpc === now)) pick.value = now;
  }
  pick.parentElement.hidden = items.length < 2;
  if (opened) showJitterCharts();
}

export function showJitterCharts() {
  if ($("buffers").hidden) return;
  const rpc = $("jitter-rpc").value;
  const of = store.samples.map((s) => s.buffers?.find((b) => b.rpc === rpc));
  const t = store.samples.map((s) => s.t / 1000);
  const each = (get) => of.map((b) => (b ? get(b) : null));
  const share = (b, n) => (b.released + b.missing ? n / (b.released + b.missing) : null);
  slack.set([t, each((b) => (b.buffers ? b.slack / 1000 : null)), each((b) => (b.buffers ? b.target / 1000 : null))], "ms, mean of all players");
  ticks.set([t, each((b) => share(b, b.missing)), each((b) => share(b, b.dry))], "share of all ticks");
}
