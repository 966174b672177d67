// The table of players: their uplink, and the downlink of all worlds or of one. The server sorts, and sends only the
// rows that are shown.

import { $, make, rows, setText } from "./dom.js";
import * as f from "./format.js";
import { store } from "./store.js";
import { closePlayer, openPlayer, pollPlayer } from "./timeline.js";

const flow = (v) => (v === null ? f.dash : f.joined(f.rate(v)));
const count = (v) => (v === null ? f.dash : f.number(v));

// The columns: key for the server, name, text of a value, limit above which it is bad, and what the name means.
const columns = [
  ["player", "Player", null],
  ["up", "Up", flow, undefined, "Wire bits that the player sent"],
  ["loss", "Loss", (v) => f.percent(v ?? NaN, 1), 0.15, "Share of the player's datagrams that did not arrive"],
  ["burst", "Loss burst", (v) => f.number(v ?? NaN, 1), undefined, "Mean length of a loss burst, in datagrams"],
  ["rtt", "RTT", (v) => f.ms(v ?? NaN)],
  ["missed", "Missed", (v) => f.percent(v ?? NaN), 0.02, "Share of the frames that were not delivered"],
  ["drops", "Drops/s", (v) => (v ? f.significant(v) : "0"), undefined, "Drops other than late and duplicate"],
  ["down", "Down", flow, undefined, "Wire bits sent to the player"],
  ["objects", "Objects", count, undefined, "Objects that the player has"],
  ["waiting", "Waiting", count, 0, "Objects for which the bandwidth has no room"],
  ["baseline", "Baseline", (v) => f.ms(v ?? NaN), undefined, "Age of the last message's baseline"],
  ["ack", "Last ack", (v) => f.time(v ?? NaN), 1000, "Time since the client last acked a message of a world"],
  ["keyframe", "Keyframes", (v) => f.percent(v ?? NaN), 0.1, "Share of the messages without a baseline"],
  ["sharing", "Sharing", (v) => f.number(v ?? NaN, 1), undefined, "Players who get the same encoding"],
].map(([key, name, show, bad, title]) => ({ key, name, show, bad, title }));
const page = 15;
const most = 200;
let by = "worst";
let down = true;
let limit = page;
let chosen = null; // the player whose details are open
let body, headers, list;
let polling = false;
let again = false;

const label = (p) => p.name || (p.client === "0" ? `session ${p.id}` : `client ${p.client}`);

export function mountPlayers() {
  headers = columns.map((c) => {
    const button = make("button", { type: "button", title: c.title }, c.name);
    button.addEventListener("click", () => sort(c.key));
    return make("th", { scope: "col", class: c.key === "down" ? "edge" : undefined }, button);
  });
  body = make("tbody");
  $("players").append(make("caption", { class: "hidden" }, "Players; select one to see its timeline and its worlds"), make("thead", {}, make("tr", {}, ...headers)), body);
  $("find").addEventListener("input", poll);
  $("players-world").addEventListener("change", poll);
  $("more").addEventListener("click", () => {
    limit = Math.min(most, limit + 50);
    poll();
  });
}

// sort cycles through descending, ascending and the worst first.
function sort(key) {
  const first = key !== "player";
  if (by !== key) [by, down] = [key, first];
  else if (down === first) down = !first;
  else [by, down] = ["worst", true];
  headers.forEach((h, i) => {
    if (columns[i].key === by) h.setAttribute("aria-sort", down ? "descending" : "ascending");
    else h.removeAttribute("aria-sort");
  });
  poll();
}

// poll requests the rows to show.
export async function poll() {
  if (polling) {
    again = true;
    return;
  }
  polling = true;
  try {
    const q = new URLSearchParams({ n: limit, sort: by, order: down ? "descending" : "ascending", find: $("find").value, world: $("players-world").value });
    const r = await fetch(`players?${q}`);
    if (r.ok) {
      list = await r.json();
      show();
    }
  } catch {
    // The event stream reports that the server is gone.
  } finally {
    polling = false;
  }
  if (again) {
    again = false;
    poll();
  }
}

function show() {
  const world = $("players-world");
  const names = ["", ...list.worlds];
  if ([...world.options].map((o) => o.value).join("\n") !== names.join("\n")) {
    const now = world.value;
    world.replaceChildren(...names.map((n) => make("option", { value: n }, n || "all worlds")));
    world.value = names.includes(now) ? now : "";
  }
  world.parentElement.hidden = list.worlds.length === 0;
  $("players").classList.toggle("no-worlds", list.worlds.length === 0);
  rows(body, list.rows, (p) => p.id,
    (p) => {
      const button = make("button", { type: "button", title: `${label(p)}, session ${p.id}` }, label(p));
      button.addEventListener("click", () => toggle(p));
      return make("tr", {}, make("th", { scope: "row" }, button), ...columns.slice(1).map((c) => make("td", { class: c.key === "down" ? "edge" : undefined })));
    },
    (tr, p) => {
      tr.classList.toggle("chosen", p.id === chosen?.id);
      const button = tr.firstChild.firstChild;
      button.setAttribute("aria-expanded", String(p.id === chosen?.id));
      setText(button, label(p));
      columns.slice(1).forEach((c, i) => {
        const td = tr.children[i + 1];
        setText(td, c.show(p[c.key]));
        td.classList.toggle("bad", c.bad !== undefined && p[c.key] > c.bad);
      });
    });
  $("more").hidden = list.found <= limit || limit >= most;
  const of = by === "worst" ? "the worst first: missed frames, drops other than late and duplicate, loss" : `by ${columns.find((c) => c.key === by).name.toLowerCase()}`;
  setText($("players-note"), list.tracked === 0 ? "No player is connected."
    : `${f.number(list.rows.length)} of ${f.number(list.found)} ${$("find").value.trim() ? "found" : "players"}, ${of}; means of the last ${store.hello?.recent ?? 10} s.`
    + (list.found > most && limit >= most ? ` The page shows at most ${most}: sort or find the others.` : "")
    + (list.untracked ? ` ${f.number(list.untracked)} more players are not followed.` : ""));
  if (chosen) pollPlayer(chosen.id);
}

function toggle(p) {
  chosen = chosen?.id === p.id ? null : p;
  if (chosen) openPlayer(p.id, label(p), () => toggle(p));
  else closePlayer();
  show();
}
