// A line chart of the last 30 seconds.
const span = 60, width = 600, height = 84, top = 12;

export class Chart {
  constructor(svg, { minimum, limit, unit }) {
    this.values = [];
    Object.assign(this, { svg, minimum, limit, unit });
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.setAttribute("preserveAspectRatio", "none");
    this.line = this.append("polyline");
    if (limit) {
      this.rule = this.append("line");
      this.rule.setAttribute("class", "limit");
    }
    this.now = document.getElementById(`${svg.id}-now`);
    this.base = svg.getAttribute("aria-label");
  }

  append(name) {
    const e = document.createElementNS("http://www.w3.org/2000/svg", name);
    this.svg.append(e);
    return e;
  }

  add(value) {
    this.values.push(value);
    if (this.values.length > span) this.values.shift();
    const maximum = Math.max(this.minimum, ...this.values);
    const y = v => height - (height - top) * v / maximum;
    const x = i => width * (i + span - this.values.length) / (span - 1);
    this.line.setAttribute("points", this.values.map((v, i) => `${x(i).toFixed(1)},${y(v).toFixed(1)}`).join(" "));
    if (this.rule) {
      for (const [k, v] of [["x1", 0], ["x2", width], ["y1", y(this.limit)], ["y2", y(this.limit)]]) this.rule.setAttribute(k, v);
    }
    this.now.textContent = `${value.toFixed(1)}, maximum ${Math.max(...this.values).toFixed(1)}`;
    this.svg.setAttribute("aria-label", `${this.base}: now ${value.toFixed(1)} ${this.unit}, at most ${maximum.toFixed(1)}`);
  }
}
