// One player's last ten minutes.

import { $, make, setText } from "./dom.js";
import * as f from "./format.js";
import { store } from "./store.js";
import { chart } from "./chart.js";

let id = "";
let charts = null;
let polling = false;
let back = null; // the element that had the focus

export function closePlayer() {
  id = "";
  charts?.forEach((c) => c.destroy());
  charts = null;
  $("player").hidden = true;
  $("player").replaceChildren();
  back?.focus();
}

export function openPlayer(p, close) {
  const from = document.activeElement;
  back = null;
  closePlayer();
  id = p.id;
  back = from;
  const button = make("button", { type: "button" }, "Close");
  button.addEventListener("click", close);
  const figures = [make("figure"), make("figure"), make("figure")];
  const box = $("player");
  box.replaceChildren(make("div", { class: "head" }, make("h3", {}, p.label), make("span", { class: "note" }, `session ${p.id}`), button),
    make("p", { class: "note" }), make("div", { class: "columns" }, ...figures));
  box.hidden = false;
  charts = [
    chart(figures[0], { title: "Calls per second", height: 140, stacked: 2, format: (v) => f.number(v), axis: f.short, least: 5, series: [{ label: "Delivered", color: "--s0" }, { label: "Missed", color: "--bad" }] }),
    chart(figures[1], { title: "Losses and drops", height: 140, format: (v) => f.number(v), axis: f.short, least: 5, series: [{ label: "Lost datagrams", color: "--s1", fill: true }, { label: "Drops", color: "--bad" }] }),
    chart(figures[2], { title: "RTT", height: 140, format: f.ms, axis: f.short, least: 10, series: [{ label: "RTT", color: "--s3", fill: true }] }),
  ];
  pollPlayer(id);
}

// pollPlayer requests the timeline; "" means that the player has left.
export async function pollPlayer(of) {
  if (!charts || polling) return;
  if (of === "") {
    setText($("player").children[1], "The player has left.");
    return;
  }
  polling = true;
  try {
    const r = await fetch(`player?id=${of}`);
    if (r.ok && of === id) show(await r.json());
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
  setText($("player").children[1], `In the last ${f.number(at.length)} s: ${f.number(sum(t.calls))} calls delivered, ${f.number(sum(t.missed))} missed, `
    + `${f.number(sum(t.lost))} of ${f.number(sum(t.lost) + sum(t.received))} datagrams lost.`);
  charts[0].set([at, t.calls ?? [], t.missed ?? []], "");
  charts[1].set([at, t.lost ?? [], t.drops ?? []], "per second");
  charts[2].set([at, (t.rtt ?? []).map((v) => v / 10 || null)], "");
}
