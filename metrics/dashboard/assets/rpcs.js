// The table of RPCs.

import { $, make, rows, setText } from "./dom.js";
import * as f from "./format.js";
import { each, store, together } from "./store.js";

const columns = ["RPC", "Calls/s", "Wire ratio", "Batched", "Up", "Down, acks", "Full frames", "Payload", "Delivery", "Baseline age", "No baseline", "Redundancy", "Drops"];
const totals = ["RPC", "Calls", ...columns.slice(2)];
let body;
let head;

export function mountRPCs() {
  head = make("tr", {}, ...columns.map((c, i) => make("th", { scope: "col", class: i === columns.length - 1 ? "text" : undefined }, c)));
  body = make("tbody");
  $("rpcs").append(make("caption", { class: "hidden" }, "The size and the delivery of each RPC"), make("thead", {}, head), body);
}

function cells(r) {
  const per = r.seconds;
  const flow = (bits) => f.joined(f.flow(bits, per));
  return [
    per ? f.significant(r.frames / per) : f.number(r.frames), f.ratio(r.ratio), f.ratio(r.batchedRatio), flow(r.up), flow(r.down), flow(r.full), flow(r.payload),
    f.percent(r.delivered), r.delta ? `${f.number(r.age / r.delta, 1)} frames` : f.dash,
    r.calls ? `${f.percent((r.keyframe + r.reset) / r.calls)}` : f.dash,
    r.payloads ? `${f.number(r.redundant / r.payloads, 2)} per payload` : f.dash, f.drops(r.drops, per),
  ];
}

// aboveOne explains ratios above 1.
function aboveOne(items) {
  const repeated = items.some((i) => i.r.redundant > 0);
  return ` A ratio above 1: ${repeated ? "frames are repeated because of losses; full frames would be lost" : "full frames have no acks; a preset lets frames share datagrams"}.`;
}

export function showRPCs(observed) {
  const per = observed.seconds;
  (per ? columns : totals).forEach((c, i) => setText(head.children[i], c));
  const items = [...each(observed)].map(([k, r]) => ({ k, r, name: r.rpc, reliable: r.reliable }));
  if (items.length > 1) items.push({ k: "sum", r: together(observed), name: "All", sum: true });
  rows(body, items, (i) => i.k, (i) => make("tr", { class: i.sum ? "sum" : undefined },
    make("th", { scope: "row", title: i.name }, i.name, i.reliable ? make("span", { class: "faint" }, " reliable") : null),
    ...columns.slice(1).map((c) => make("td", { class: c === "Drops" ? "text wrap" : undefined }))),
  (tr, i) => cells(i.r).forEach((text, n) => setText(tr.children[n + 1], text)));
  const other = f.drops(observed.drops, per);
  setText($("dropped"), store.state ? `Drops outside of RPCs: ${other}. Acks are divided among the RPCs by their datagrams.${items.some((i) => i.r.ratio > 1) ? aboveOne(items) : ""}` : "");
}
