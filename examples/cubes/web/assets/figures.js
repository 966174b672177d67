// What was measured in the last half of a second, in words and numbers.
const rows = [
  ["kbits", "kbit/s down", v => v.toFixed(0)],
  ["packets", "packets/s", v => v.toFixed(0)],
  ["error", "cm mean error", v => v.toFixed(1)],
  ["errorP99", "cm, 99 % below", v => v.toFixed(1)],
  ["turn", "° mean error", v => v.toFixed(1)],
  ["pops", "pops", v => v],
  ["delay", "ms behind", v => v.toFixed(0)],
  ["updates", "cubes/s updated", v => v.toFixed(0)],
  ["wait", "ticks longest wait", v => v],
  ["moving", "cubes move", v => v],
  ["rtt", "ms round trip", v => v.toFixed(0)],
  ["upKbits", "kbit/s up", v => v.toFixed(0)],
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
