// The measurements of the last half second.
const rows = [
  ["kbits", "downlink", "kbit/s", v => v.toFixed(0)],
  ["packets", "packets", "per s", v => v.toFixed(0)],
  ["error", "position error, mean", "cm", v => v.toFixed(1)],
  ["errorP99", "position error, 99th percentile", "cm", v => v.toFixed(1)],
  ["turn", "rotation error, mean", "°", v => v.toFixed(1)],
  ["pops", "pops (jumps above 5 cm)", "", v => v],
  ["delay", "delay of the client", "ms", v => v.toFixed(0)],
  ["updates", "updates of cubes", "per s", v => v.toFixed(0)],
  ["wait", "longest gap in updates", "ticks", v => v],
  ["moving", "moving cubes", "", v => v],
  ["rtt", "RTT", "ms", v => v.toFixed(0)],
  ["upKbits", "uplink", "kbit/s", v => v.toFixed(0)],
];

export function showFigures(list, figures) {
  if (!list.children.length) {
    for (const [name, label, unit] of rows) {
      const row = document.createElement("div"), dt = document.createElement("dt"), dd = document.createElement("dd");
      dt.textContent = label;
      dd.dataset.name = name;
      dd.dataset.unit = unit;
      row.append(dt, dd);
      list.append(row);
    }
  }
  for (const [name, , , text] of rows) list.querySelector(`[data-name=${name}]`).textContent = text(figures[name]);
}
