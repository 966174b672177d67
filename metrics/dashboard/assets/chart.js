// Charts over time, drawn by uPlot, with a table of their values for screen readers.

import { css, make, setText } from "./dom.js";
import { clock, dash } from "./format.js";

const charts = new Set();
let range = 600;

export function setRange(seconds) {
  range = seconds;
  for (const c of charts) c.draw();
}

// chart creates a chart in a figure. spec has a title, series: [{label, color (a custom property), fill,
// dash}], and optionally stacked, the number of leading series to stack. format(value) and axis(value)
// return the text of values.
export function chart(figure, spec) {
  const plot = make("div", { class: "plot" });
  plot.style.minHeight = `${spec.height ?? 180}px`;
  const note = make("small");
  const table = make("div");
  const details = make("details", { class: "data" }, make("summary", {}, "As a table"), table);
  figure.replaceChildren(make("figcaption", {}, spec.title, note), plot, details);
  let u = null;
  let data = [[]]; // x and a column for each series, not stacked
  let shape = "";

  // piled returns the columns to draw, stacked.
  function piled() {
    const n = spec.stacked ?? 0;
    const out = [data[0]];
    let below = null;
    for (let i = 1; i < data.length; i++) {
      if (i > n) out.push(data[i]);
      else {
        below = data[i].map((v, j) => (v === null ? null : v + (below?.[j] ?? 0)));
        out.push(below);
      }
    }
    return out;
  }

  // span returns the time range to show: that of the data, but at least a minute and at most range.
  function span() {
    const last = data[0].at(-1) ?? Date.now() / 1000;
    return [Math.max(last - range, Math.min(last - 60, data[0][0] ?? last)), last];
  }

  const value = (v) => (v === null || v === undefined ? dash : spec.format(v));

  function options() {
    const line = css("--line");
    const muted = css("--muted");
    const axis = { stroke: muted, grid: { stroke: line, width: 1 }, ticks: { show: false }, font: "11px system-ui, sans-serif" };
    const n = spec.stacked ?? 0;
    return {
      width: plot.clientWidth, height: spec.height ?? 180, padding: [8, 22, 0, 0],
      scales: {
        x: { time: true, range: span },
        y: { range: (_, lo, hi) => [0, Math.max(spec.least ?? 1, (hi ?? 0) * 1.08)] },
      },
      axes: [
        { ...axis, size: 22, gap: 4, space: 64, values: (_, ts) => ts.map((t) => clock(t, span()[1] - span()[0] < 150)) },
        { ...axis, size: 46, gap: 4, space: 34, values: (_, vs) => vs.map((v) => (spec.axis ?? spec.format)(v)) },
      ],
      cursor: { points: { size: 5 }, drag: { x: false, y: false }, y: false, sync: { key: "time" } },
      legend: { live: true },
      series: [
        { label: "Time", value: (_, t) => (t === null || t === undefined ? "now" : clock(t, true)) },
        ...spec.series.map((s, i) => ({
          label: s.label, stroke: css(s.color), width: i < n ? 1 : 1.5, dash: s.dash, points: { show: false }, spanGaps: false,
          fill: i < n ? css(s.color) + "99" : s.fill ? css(s.color) + "22" : undefined,
          value: (_, __, k, idx) => value(data[k]?.[idx ?? data[0].length - 1]),
        })),
      ],
      bands: Array.from({ length: Math.max(0, n - 1) }, (_, i) => ({ series: [i + 2, i + 1] })),
    };
  }

  const self = {
    // set replaces the columns and the note.
    set(columns, text) {
      data = columns;
      if (text !== undefined) {
        setText(note, text);
        plot.setAttribute("role", "img");
        plot.setAttribute("aria-label", `${spec.title}. ${text}`);
      }
      self.draw();
    },
    draw() {
      if (document.hidden || !plot.clientWidth) return;
      const now = `${plot.clientWidth} ${range} ${css("--bg")} ${spec.series.map((s) => s.label + s.color).join()}`;
      if (u && now === shape) u.setData(piled());
      else {
        shape = now;
        u?.destroy();
        u = new uPlot(options(), piled(), plot);
      }
      if (details.open) self.table();
    },
    table() {
      const n = data[0].length;
      const step = Math.max(1, Math.ceil(Math.min(n, range) / 20));
      const body = make("tbody");
      for (let i = n - 1; i >= Math.max(0, n - range); i -= step) {
        body.append(make("tr", {}, make("th", { scope: "row" }, clock(data[0][i], true)), ...data.slice(1).map((c) => make("td", {}, value(c[i])))));
      }
      table.replaceChildren(make("table", {}, make("caption", { class: "hidden" }, spec.title),
        make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "Time"), ...spec.series.map((s) => make("th", { scope: "col" }, s.label)))), body));
    },
    destroy() {
      charts.delete(self);
      watch.disconnect();
      u?.destroy();
    },
  };
  details.addEventListener("toggle", () => details.open && self.table());
  const watch = new ResizeObserver(() => self.draw());
  watch.observe(plot);
  charts.add(self);
  return self;
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => charts.forEach((c) => c.draw()));
document.addEventListener("visibilitychange", () => charts.forEach((c) => c.draw()));
