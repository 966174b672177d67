// One field: its components, the distribution of their residuals, and the predictors used.

import { $, make, setText } from "./dom.js";
import * as f from "./format.js";

let shown = "";
let shut = null;
let polling = false;

export function closeField() {
  shown = "";
  $("field").hidden = true;
  $("field").replaceChildren();
}

export function openField(rpc, index, close) {
  closeField();
  shown = `${index} ${rpc}`;
  shut = close;
  pollField(rpc, index);
}

// pollField requests the statistics of the field.
export async function pollField(rpc, index) {
  if (polling) return;
  polling = true;
  try {
    const r = await fetch(`field?rpc=${encodeURIComponent(rpc)}&field=${index}`);
    if (r.ok && shown === `${index} ${rpc}`) show(await r.json());
  } catch {
    // The event stream reports that the server is gone.
  } finally {
    polling = false;
  }
}

function show(d) {
  const box = $("field");
  if (!box.firstChild || box.dataset.of !== shown) {
    box.dataset.of = shown;
    const close = make("button", { type: "button" }, "Close");
    close.addEventListener("click", () => shut?.());
    box.replaceChildren(make("div", { class: "head" }, make("h3", {}, d.name), make("code", { class: "note" }, d.schema), close),
      make("p", { class: "note" }), make("div", { class: "columns" }));
  }
  box.hidden = false;
  const [, note, columns] = box.children;
  const per = (bits) => f.significant(bits / d.frames);
  setText(note, `${per(d.bits)} of ${per(d.full)} bits per frame, ${per(d.flag)} of them for the flag of a change. `
    + (d.components.length ? "Residuals by magnitude: the first bar is zero, each further bar covers twice the range." : "A byte string: it has no components."));
  columns.replaceChildren(...d.components.map((c, i) => component(d, c, i)));
}

function component(d, c, i) {
  const coded = c.held + c.predictors.reduce((a, b) => a + b, 0);
  const most = Math.max(1, ...c.residuals);
  const bars = c.residuals.map((n, k) => {
    const bar = make("i", { title: `${range(k)}: ${f.number(n)}` });
    bar.style.height = `${n ? Math.max(2, (100 * n) / most) : 0}%`;
    return bar;
  });
  const spoken = c.residuals.map((n, k) => `${range(k)}: ${n}`).join(", ");
  const names = d.predictors.map((name, k) => [name, c.predictors[k] ?? 0]);
  names.push(["unchanged, nothing sent", c.held]);
  const used = names.filter(([, n]) => n > 0).sort((a, b) => b[1] - a[1]);
  return make("div", { class: "component" },
    make("h3", {}, d.components.length > 1 ? `Component ${i}` : "Component", make("span", { class: "note" }, ` ${f.significant(c.bits / d.frames)} bits per frame`)),
    c.residuals.length ? make("div", { class: "histogram", role: "img", "aria-label": `Residuals. ${spoken}` }, ...bars) : make("p", { class: "note" }, "No residuals: it did not change, or its values are coded without prediction."),
    c.residuals.length ? make("div", { class: "ends", "aria-hidden": "true" }, make("span", {}, "0"), make("span", {}, range(c.residuals.length - 1))) : null,
    make("div", { class: "bars" }, ...used.flatMap(([name, n]) => {
      const fill = make("i");
      fill.style.width = `${(100 * n) / coded}%`;
      fill.style.background = "var(--accent)";
      return [make("span", {}, name), make("span", { class: "meter", "aria-hidden": "true" }, fill), make("span", {}, f.percent(n / coded))];
    })));
}

function range(k) {
  if (k < 2) return String(k);
  return `${f.number(2 ** (k - 1))} to ${f.number(2 ** k - 1)}`;
}
