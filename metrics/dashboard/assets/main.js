// The page: it shows the events that the server sends.

import { $, make, setText } from "./dom.js";
import * as f from "./format.js";
import { stream } from "./stream.js";
import { addSample, recently, setHistory, store, total } from "./store.js";
import { setRange } from "./chart.js";
import { mountUplink, showCharts, showTiles } from "./uplink.js";
import { mountRPCs, showRPCs } from "./rpcs.js";
import { mountWorlds, showWorldCharts, showWorlds } from "./worlds.js";
import { mountJitter, showJitter, showJitterCharts } from "./jitter.js";
import { mountEvents, showEvents } from "./events.js";
import { mountBits, showBits } from "./bits.js";
import { mountPlayers, poll } from "./players.js";

let basis = "now";

mountUplink();
mountRPCs();
mountWorlds();
mountJitter();
mountEvents();
mountBits();
mountPlayers();

function show() {
  if (document.hidden) return;
  const observed = basis === "now" ? recently(store.hello?.recent ?? 10) : total();
  const all = showTiles(observed);
  showRPCs(observed);
  showWorlds(observed);
  showJitter(observed);
  showPanel?.(all, f);
  const alone = store.state?.players === 0 && !store.state.rpcs.some((r) => r.calls > 0) && !store.samples.some((s) => s.players > 0);
  $("welcome").hidden = !alone;
  document.body.classList.toggle("alone", alone);
}

function drawCharts() {
  showCharts();
  showWorldCharts();
  showJitterCharts();
}

// showLists requests what the server sends by the row.
function showLists() {
  if (document.hidden) return;
  poll();
  showEvents();
}

function status(state, text) {
  $("status").dataset.state = state;
  setText($("status-text"), text);
}

let extended = false;
let showPanel = null;

// extend loads the panel that a command adds above the charts.
async function extend(path) {
  if (extended || !path) return;
  extended = true;
  document.head.append(make("link", { rel: "stylesheet", href: `${path}/panel.css` }));
  const panel = await import(new URL(`${path}/panel.js`, document.baseURI).href);
  $("demo").hidden = false;
  showPanel = panel.mount($("demo"), { readOnly: store.hello.read_only });
  show();
}

let trouble = 0; // time of the next attempt

const events = stream("events", {
  hello(h) {
    store.hello = h;
    store.span = h.span;
    trouble = 0;
    $("trouble").hidden = true;
    document.body.classList.remove("stale");
    setText($("title"), h.title);
    document.title = `uplink · ${h.title}`;
    $("hint").hidden = !h.hint;
    setText($("hint"), h.hint ?? "");
    status("live", h.read_only ? "Live, read-only" : "Live");
    $("metrics").hidden = !h.metrics;
    if (h.metrics) $("metrics").querySelector("a").href = h.metrics;
    extend(h.extension);
  },
  history(samples) {
    setHistory(samples);
    drawCharts();
  },
  sample(s) {
    addSample(s);
    drawCharts();
  },
  state(s) {
    store.state = s;
    show();
    showBits();
    showLists();
  },
  lost(next) {
    if (!trouble) {
      const last = store.samples.at(-1);
      setText($("trouble-text"), `The server does not answer. ${last ? `The figures are from ${f.clock(last.t / 1000, true)}. ` : ""}This page reconnects by itself.`);
      status("lost", "No answer, retrying");
    }
    trouble = next;
    $("trouble").hidden = false;
    document.body.classList.add("stale");
  },
  refused(text) {
    setText($("trouble-text"), `The server refuses: ${text}`);
  },
});

$("retry").addEventListener("click", () => events.retry());
$("choices").addEventListener("change", (e) => {
  if (e.target.name === "basis") basis = e.target.value;
  else setRange(Number(e.target.value));
  show();
});
$("choices").addEventListener("submit", (e) => e.preventDefault());
document.addEventListener("visibilitychange", () => document.hidden || (show(), showBits(), showLists()));
