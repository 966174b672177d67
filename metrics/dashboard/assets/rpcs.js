// The table of RPCs.

import { $, make, rows, setText } from "./dom.js";
import * as f from "./format.js";
import { delivered, payload, store, summed, wire } from "./store.js";

const columns = ["RPC", "Calls/s", "Full frames", "Payload", "Ratio", "Headers", "AEAD tags", "Wire", "Delivery", "Baseline age", "Without baseline", "Redundancy", "Drops"];
const totals = ["RPC", "Calls", ...columns.slice(2)];
let body;
let head;

export function mountRPCs() {
  head = make("tr", {}, ...columns.map((c, i) => make("th", { scope: "col", class: i === 12 ? "text" : undefined }, c)));
  body = make("tbody");
  $("rpcs").append(make("caption", { class: "hidden" }, "The size and the delivery of each RPC"), make("thead", {}, head), body);
}

function cells(r, per) {
  const flow = (bits) => f.joined(per ? f.rate(bits / per) : f.amount(bits));
  return [
    per ? f.significant(r.calls / per) : f.number(r.calls), flow(r.full), flow(payload(r)), f.ratio(payload(r) / r.full), flow(r.headers), flow(r.aead), flow(wire(r)),
    f.percent(delivered(r)), r.delta ? `${f.number(r.age / r.delta, 1)} frames` : f.dash,
    r.calls ? `${f.percent((r.keyframe + r.reset) / r.calls)}` : f.dash,
    r.payloads ? `${f.number(r.redundant / r.payloads, 2)} per payload` : f.dash, f.drops(r.drops, per),
  ];
}

export function showRPCs(observed) {
  const per = observed.seconds;
  (per ? columns : totals).forEach((c, i) => setText(head.children[i], c));
  const items = [...observed.rpcs.entries()].map(([k, r]) => ({ k, r, name: r.rpc, reliable: r.reliable }));
  if (items.length > 1) items.push({ k: "sum", r: summed(observed), name: "All", sum: true });
  rows(body, items, (i) => i.k, (i) => make("tr", { class: i.sum ? "sum" : undefined },
    make("th", { scope: "row", title: i.name }, i.name, i.reliable ? make("span", { class: "faint" }, " reliable") : null),
    ...columns.slice(1).map((c) => make("td", { class: c === "Drops" ? "text wrap" : undefined }))),
  (tr, i) => cells(i.r, per).forEach((text, n) => setText(tr.children[n + 1], text)));
  const other = f.drops(observed.drops, per);
  const acks = f.joined(per ? f.rate(observed.ackBits / per) : f.amount(observed.ackBits));
  setText($("dropped"), store.state ? `Drops outside of RPCs: ${other}. Acks to clients, with all headers: ${acks}.` : "");
}
