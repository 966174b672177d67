// The table of session events, the newest first. It is requested when there are more of them.

import { $, make, rows, setText } from "./dom.js";
import * as f from "./format.js";
import { store } from "./store.js";

const columns = ["Time", "Event", "Player", "Details"];
const page = 12;
let limit = page;
let seen = -1; // number of events at the last request
let polling = false;
let body;

export function mountEvents() {
  body = make("tbody");
  $("happened").append(make("caption", { class: "hidden" }, "What happened to sessions"),
    make("thead", {}, make("tr", {}, ...columns.map((c) => make("th", { scope: "col", class: "text" }, c)))), body);
  $("more-events").addEventListener("click", () => {
    limit = 256;
    seen = -1;
    showEvents();
  });
}

const bad = ["refused", "bind_refused", "call_refused", "world_refused", "mismatch", "panic", "ahead_of_time"];
const worse = ["panic", "limit", "protocol", "timeout"];

export async function showEvents() {
  const n = store.state?.happened ?? 0;
  if (polling || n === seen) return;
  polling = true;
  try {
    const r = await fetch(`happened?n=${limit}`);
    if (!r.ok) return;
    const list = await r.json();
    seen = n;
    rows(body, list.rows, (e) => `${e.t} ${e.kind} ${e.player} ${e.client} ${e.name} ${e.count} ${e.text}`,
      (e) => make("tr", {}, make("th", { scope: "row" }), make("td", { class: "text" }), make("td", { class: "text who" }), make("td", { class: "text wrap" })),
      (tr, e) => {
        const what = e.kind.replaceAll("_", " ") + (e.cause ? `: ${e.cause.replaceAll("_", " ")}` : "") + (e.count > 1 ? ` × ${f.number(e.count)}` : "");
        [f.clock(e.t / 1000, true), what, e.name ? e.name : e.client ? `client ${e.client}` : e.player ? `session ${e.player}` : f.dash, e.text ?? ""]
          .forEach((text, i) => setText(tr.children[i], text));
        tr.children[2].title = e.player ? `session ${e.player}` : "";
        tr.children[1].classList.toggle("bad", bad.includes(e.kind) || worse.includes(e.cause));
      });
    setText($("events-note"), list.kept === 0 ? "Nothing has happened yet."
      : `${f.number(list.rows.length)} of the last ${f.number(list.kept)}, ${f.number(n)} since the start. Equal events within ten seconds are one row.`);
    $("more-events").hidden = list.rows.length >= list.kept;
  } catch {
    // The event stream reports that the server is gone.
  } finally {
    polling = false;
  }
}
