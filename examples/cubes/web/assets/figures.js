// The measurements of the last half second.
const rows = [
  ["kbits", "kbit/s downlink", v => v.toFixed(0)],
  ["packets", "packets/s", v => v.toFixed(0)],
  ["error", "cm mean position error", v => v.toFixed(1)],
  ["errorP99", "cm error, 99th percentile", v => v.toFixed(1)],
  ["turn", "° mean rotation error", v => v.toFixed(1)],
  ["pops", "pops", v => v],
  ["delay", "ms client delay", v => v.toFixed(0)],
  ["updates", "cube updates/s", v => v.toFixed(0)],
  ["wait", "ticks between updates, at most", v => v],
  ["moving", "moving cubes", v => v],
  ["rtt", "ms RTT", v => v.toFixed(0)],
  ["upKbits", "kbit/s uplink", v => v.toFixed(0)],
];

export function showFigures(list, figures) {
  if (!list.children.length) {
    for (const [name, label] of rows) {
      const row = document.createElement("div"), dt = document.createElement("dt"), dd = document.createElement("dd");
      dt.textContent = label;
      dd.dataset.name = name;
      row.append(dt, dd);
      list.append(row);
    }
  }
  for (const [name, , text] of rows) list.querySelector(`[data-name=${name}]`).textContent = text(figures[name]);
}
