// The bits per frame of one RPC, by field.

import { $, make, rows, series, setText } from "./dom.js";
import * as f from "./format.js";
import { store } from "./store.js";
import { chart } from "./chart.js";
import { layout } from "./treemap.js";
import { closeField, openField, pollField } from "./field.js";

let rpc = "";
let area = "full";
let chosen = -1;
let time = null; // the chart
let charted = ""; // the fields that it has
let body;
const smooth = 5; // each point of the chart is the mean of so many seconds

export function mountBits() {
  const head = ["Field", "Kind", "Full frame", "Payload", "Of full", "", "Share of payload"];
  body = make("tbody");
  $("fields").append(make("caption", { class: "hidden" }, "Bits per frame of each field; select one to see its components"),
    make("thead", {}, make("tr", {}, ...head.map((c, i) => (c ? make("th", { scope: "col", class: i === 1 ? "text" : undefined }, c) : make("td", { class: "bar" }))))), body);
  $("bits-rpc").addEventListener("change", (e) => choose(e.target.value));
  for (const input of document.querySelectorAll("input[name=area]")) {
    input.addEventListener("change", () => {
      area = input.value;
      showBits();
    });
  }
  new ResizeObserver(() => showBits()).observe($("treemap"));
}

function choose(name) {
  rpc = name;
  chosen = -1;
  closeField();
  $("treemap").replaceChildren();
  body.replaceChildren();
  showBits();
}

// parts returns the fields and the overhead, in bits per frame.
function parts(p) {
  const list = p.fields.map((x, i) => ({ index: i, name: x.name, kind: x.kind, full: x.full / p.frames, bits: x.bits / p.frames, color: series(i) }));
  list.push({ index: -1, name: "Header, rounding", kind: "", full: 0, bits: (p.header + p.count + p.rounding) / p.frames, color: "--s9" });
  return list;
}

export function showBits() {
  const profiles = (store.state?.profiles ?? []).filter((p) => p.frames > 0);
  const names = profiles.map((p) => p.rpc);
  const select = $("bits-rpc");
  if ([...select.options].map((o) => o.value).join("\n") !== names.join("\n")) {
    select.replaceChildren(...names.map((n) => make("option", { value: n }, n)));
    if (!names.includes(rpc)) rpc = names[0] ?? "";
    select.value = rpc;
  }
  const p = profiles.find((x) => x.rpc === rpc);
  $("bits").classList.toggle("empty", !p);
  if (!p) {
    setText($("bits-note"), "No frames were measured yet.");
    return;
  }
  const list = parts(p);
  const all = list.reduce((a, b) => a + b.bits, 0);
  const full = p.full / p.frames;
  setText($("bits-note"), `A frame takes ${f.significant(all)} of ${f.significant(full)} bits of a full frame, redundancy included: the mean of ${f.number(p.frames)} frames measured since the page was opened.`);
  map(list);
  fields(list, all);
  over(p);
  if (chosen >= 0) pollField(rpc, chosen);
}

function toggle(index) {
  chosen = chosen === index ? -1 : index;
  if (chosen < 0) closeField();
  else openField(rpc, chosen, () => toggle(chosen));
  showBits();
}

function map(list) {
  const box = $("treemap");
  const w = box.clientWidth;
  const h = box.clientHeight;
  if (!w || !h) return;
  const sized = list.map((x) => ({ ...x, size: area === "full" ? x.full : Math.max(0, x.bits) })).filter((x) => x.size > 0).sort((a, b) => b.size - a.size);
  if (!sized.length) return;
  const least = sized.reduce((a, b) => a + b.size, 0) / 400; // so that the smallest can be clicked
  const places = layout(sized.map((x) => Math.max(x.size, least)), w, h);
  rows(box, sized.map((x, i) => ({ ...x, place: places[i] })), (x) => x.index,
    (x) => {
      const cell = make("button", { class: "cell", type: "button" }, make("span", { class: "fill" }), make("span", { class: "label" }, make("b"), make("span")));
      cell.style.setProperty("--c", `var(${x.color})`);
      if (x.index >= 0) cell.addEventListener("click", () => toggle(x.index));
      return cell;
    },
    (cell, x) => {
      const { place } = x;
      cell.style.left = `${place.x}px`;
      cell.style.top = `${place.y}px`;
      cell.style.width = `${place.w}px`;
      cell.style.height = `${place.h}px`;
      const [fill, label] = cell.children;
      fill.style.height = `${area === "full" ? Math.min(100, (100 * x.bits) / x.full) : 100}%`;
      label.hidden = place.w < 46 || place.h < 22;
      label.lastChild.hidden = place.h < 38;
      const text = x.full ? `${f.significant(x.bits)} of ${f.significant(x.full)}` : f.significant(x.bits);
      setText(label.firstChild, x.name);
      setText(label.lastChild, text);
      const spoken = `${x.name}: ${text} bits per frame`;
      cell.setAttribute("aria-label", spoken);
      cell.title = spoken;
      if (x.index >= 0) cell.setAttribute("aria-pressed", String(x.index === chosen));
      else cell.disabled = true;
    });
}

function fields(list, all) {
  rows(body, list, (x) => x.index,
    (x) => {
      const swatch = make("span", { class: "swatch" });
      swatch.style.background = `var(${x.color})`;
      const name = x.index < 0 ? make("span", {}, x.name) : make("button", { type: "button", title: x.name }, x.name);
      if (x.index >= 0) name.addEventListener("click", () => toggle(x.index));
      const bar = make("i");
      bar.style.background = `var(${x.color})`;
      return make("tr", {}, make("th", { scope: "row" }, swatch, name), make("td", { class: "text" }, x.kind), make("td"), make("td"), make("td"),
        make("td", { class: "bar" }, make("span", { class: "meter", "aria-hidden": "true" }, bar)), make("td"));
    },
    (tr, x) => {
      tr.classList.toggle("chosen", x.index >= 0 && x.index === chosen);
      if (x.index >= 0) tr.children[0].lastChild.setAttribute("aria-expanded", String(x.index === chosen));
      setText(tr.children[2], x.full ? f.significant(x.full) : f.dash);
      setText(tr.children[3], f.significant(x.bits));
      setText(tr.children[4], x.full ? f.percent(x.bits / x.full) : f.dash);
      tr.children[5].firstChild.hidden = !x.full;
      tr.children[5].firstChild.firstChild.style.width = `${Math.min(100, (100 * x.bits) / (x.full || 1))}%`;
      setText(tr.children[6], f.percent(x.bits / all));
    });
}

// over draws the bits of the nine largest fields, and of all others, over time.
function over(p) {
  const order = p.fields.map((x, i) => i).sort((a, b) => p.fields[b].bits - p.fields[a].bits);
  const single = charted.startsWith(rpc + "\n") ? charted.split("\n").slice(1).map(Number) : order.slice(0, 9).sort((a, b) => a - b);
  const wanted = [rpc, ...single].join("\n");
  if (wanted !== charted) {
    charted = wanted;
    time?.destroy();
    time = chart($("chart-fields"), {
      title: "Bits per frame", stacked: single.length + 1, height: 190, format: f.significant, axis: f.short, least: 8,
      series: [...single.map((i) => ({ label: f.brief(p.fields[i].name), color: series(i) })), { label: p.fields.length > single.length ? "Others, header" : "Header, rounding", color: "--s9" }],
    });
  }
  const t = [];
  const columns = [...single, -1].map(() => []);
  const recent = [];
  for (const s of store.samples) {
    t.push(s.t / 1000);
    recent.push(s.bits?.find((b) => b.rpc === rpc) ?? null);
    if (recent.length > smooth) recent.shift();
    const known = recent.filter(Boolean);
    const frames = known.reduce((a, b) => a + b.frames, 0);
    if (!recent.at(-1) || !frames) {
      columns.forEach((c) => c.push(null));
      continue;
    }
    let rest = known.reduce((a, b) => a + b.rest + b.fields.reduce((x, y) => x + y, 0), 0);
    single.forEach((i, k) => {
      const bits = known.reduce((a, b) => a + (b.fields[i] ?? 0), 0);
      rest -= bits;
      columns[k].push(bits / frames);
    });
    columns.at(-1).push(Math.max(0, rest / frames));
  }
  time.set([t, ...columns], "by field, over time");
}
