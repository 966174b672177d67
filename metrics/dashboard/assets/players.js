// The table of players, the worst connections first.

import { $, make, rows, setText } from "./dom.js";
import * as f from "./format.js";
import { store } from "./store.js";
import { closePlayer, openPlayer, pollPlayer } from "./timeline.js";

const columns = [
  { name: "Player", get: (p) => p.label, text: true },
  { name: "Calls/s", get: (p) => p.calls / p.n, show: (v) => f.significant(v) },
  { name: "Missed", get: (p) => p.missed / (p.calls + p.missed), show: (v) => f.percent(v), bad: 0.02 },
  { name: "Loss", get: (p) => p.lost / (p.lost + p.received), show: (v) => f.percent(v, 1), bad: 0.15 },
  { name: "Loss burst", get: (p) => p.lost / p.bursts, show: (v) => f.number(v, 1) },
  { name: "Drops/s", get: (p) => p.drops / p.n, show: (v) => (v ? f.significant(v) : "0") },
  { name: "Received", get: (p) => (8 * p.bytes) / p.n, show: (v) => f.joined(f.rate(v)) },
  { name: "RTT", get: (p) => p.rtt / 10, show: f.ms },
];
const page = 15;
let by = -1; // the server's order: the worst first
let down = true;
let limit = page;
let chosen = "";
let body;
let headers;

function parse(row) {
  const [id, client, name, n, calls, missed, drops, lost, bursts, received, bytes, rtt] = row;
  return { id, client, n: Math.max(1, n), calls, missed, drops, lost, bursts, received, bytes, rtt, name, label: name || (client === "0" ? `session ${id}` : `client ${client}`) };
}

export function mountPlayers() {
  headers = columns.map((c, i) => {
    const button = make("button", { type: "button" }, c.name);
    button.addEventListener("click", () => sort(i));
    return make("th", { scope: "col" }, button);
  });
  body = make("tbody");
  $("players").append(make("caption", { class: "hidden" }, "Players; select one to see its timeline"), make("thead", {}, make("tr", {}, ...headers)), body);
  $("find").addEventListener("input", () => showPlayers(true));
  $("more").addEventListener("click", () => {
    limit += 50;
    showPlayers(true);
  });
}

// sort cycles through descending, ascending and the worst first.
function sort(i) {
  if (by !== i) {
    by = i;
    down = !columns[i].text;
  } else if (down !== Boolean(columns[i].text)) down = !down;
  else by = -1;
  headers.forEach((h, k) => {
    if (k === by) h.setAttribute("aria-sort", down ? "descending" : "ascending");
    else h.removeAttribute("aria-sort");
  });
  showPlayers(true);
}

function ordered(list) {
  if (by < 0) return list;
  const get = columns[by].get;
  const sign = down ? -1 : 1;
  return list.toSorted((a, b) => {
    const [x, y] = [get(a), get(b)];
    if (columns[by].text) return sign * x.localeCompare(y, "en", { numeric: true });
    return Number.isNaN(x) - Number.isNaN(y) || sign * (x - y); // unknown values last
  });
}

export function showPlayers(resort) {
  if (!store.state) return;
  let list = store.state.list.map(parse);
  const n = list.length;
  const wanted = $("find").value.trim().toLowerCase();
  if (wanted) list = list.filter((p) => p.label.toLowerCase().includes(wanted) || p.id.includes(wanted) || p.client.includes(wanted));
  const found = list.length;
  list = ordered(list).slice(0, limit);
  const inUse = body.contains(document.activeElement) || body.matches(":hover"); // do not move rows under the cursor
  rows(body, list, (p) => p.id,
    (p) => {
      const button = make("button", { type: "button", title: `${p.label}, session ${p.id}` }, p.label);
      button.addEventListener("click", () => toggle(p.id));
      return make("tr", {}, make("th", { scope: "row" }, button), ...columns.slice(1).map(() => make("td")));
    },
    (tr, p) => {
      tr.classList.toggle("chosen", p.id === chosen);
      const button = tr.firstChild.firstChild;
      button.setAttribute("aria-expanded", String(p.id === chosen));
      setText(button, p.label);
      columns.slice(1).forEach((c, i) => {
        const v = c.get(p);
        setText(tr.children[i + 1], c.show(v));
        tr.children[i + 1].classList.toggle("bad", c.bad !== undefined && v > c.bad);
      });
    }, resort || !inUse);
  $("more").hidden = found <= limit;
  const of = by < 0 ? "the worst first: missed frames, drops other than late and duplicate, loss" : `by ${columns[by].name.toLowerCase()}`;
  setText($("players-note"), n === 0 ? "No player is connected."
    : `${f.number(Math.min(found, limit))} of ${f.number(found)} ${wanted ? "found" : "shown"}, ${of}, means of the last ${store.hello?.recent ?? 10} s.`
    + (store.state.unlisted ? ` ${f.number(store.state.unlisted)} more players with better figures are not listed.` : ""));
  const p = chosen && store.state.list.find((r) => r[0] === chosen);
  if (p) pollPlayer(chosen);
  else if (chosen) pollPlayer("");
}

function toggle(id) {
  chosen = chosen === id ? "" : id;
  if (chosen) openPlayer(parse(store.state.list.find((r) => r[0] === id)), () => toggle(chosen));
  else closePlayer();
  showPlayers(false);
}
