// The table of worlds: what the server sends.

import { $, make, rows } from "./dom.js";
import * as f from "./format.js";

const columns = ["World", "Players", "Down", "Down per player", "Acks", "Ticks", "Encodings per tick", "Messages per encoding", "Object updates",
  "Acked", "Unsent", "Resets", "Oldest baseline"];
let body;

export function mountWorlds() {
  body = make("tbody");
  $("worlds").append(make("caption", { class: "hidden" }, "What is sent of each world"),
    make("thead", {}, make("tr", {}, ...columns.map((c) => make("th", { scope: "col" }, c)))), body);
}

function cells(w, seconds) {
  const flow = (bits) => f.joined(f.flow(bits, seconds));
  const per = (n, d) => (d ? f.number(n / d, 2) : f.dash);
  const count = (n) => (seconds ? `${f.significant(n / seconds)}/s` : f.number(n));
  return [
    f.number(w.players), flow(w.bits), seconds && w.players ? flow(w.bits / w.players) : f.dash, flow(w.ack_bits), count(w.ticks),
    w.encodings ? per(w.encodings, w.ticks) : f.dash, per(w.messages, w.encodings), count(w.updates),
    w.messages ? f.percent(Math.min(1, w.acked / w.messages)) : f.dash, f.number(w.unsent), f.number(w.resets),
    w.age ? `${f.number(w.age)} ticks` : f.dash,
  ];
}

export function showWorlds(observed) {
  const items = [...observed.worlds.values()];
  $("downlink").hidden = items.length === 0;
  rows(body, items, (w) => w.name, (w) => make("tr", {}, make("th", { scope: "row", title: w.name }, w.name), ...columns.slice(1).map(() => make("td"))),
    (tr, w) => cells(w, observed.seconds).forEach((text, n) => { tr.children[n + 1].textContent = text; }));
}
