// The settings: the replication mode, its rate and budget, and the link.
const modes = [
  ["full", "full snapshots, interpolated", { rate: 10, budget: 0 }],
  ["snapshots", "compressed snapshots, interpolated", { rate: 60, budget: 256 }],
  ["state", "state synchronization, simulated", { rate: 60, budget: 256 }],
];
const parts = [
  ["round", "rounding at both ends"],
  ["smooth", "smoothing"],
];
const rates = [5, 10, 15, 20, 30, 60];
const budgets = [32, 64, 96, 128, 192, 256, 384, 512, 1024, 0];
const sights = [4, 6, 8, 12, 16, 0];
const sliders = [
  { name: "rate", label: "send rate", among: rates, text: v => `${v} Hz` },
  { name: "budget", label: "budget", among: budgets, text: v => v ? `${v} kbit/s` : "no limit" },
  { name: "sight", label: "client sees", among: sights, text: v => v ? `within ${v} m` : "everything", mode: "snapshots" },
  { name: "loss", label: "loss", max: 0.3, step: 0.01, text: v => `${(v * 100).toFixed(0)} %` },
  { name: "rtt", label: "RTT", max: 400, step: 10, text: v => `${v} ms` },
  { name: "jitter", label: "jitter, up to", max: 150, step: 1, text: v => `${v} ms` },
];

export class Controls {
  constructor(form, auto, change) {
    this.change = change;
    this.settings = null;
    this.inputs = {};
    form.append(this.choice(), this.options());
    for (const s of sliders) form.append(this.slider(s));
    form.addEventListener("submit", e => e.preventDefault());
    this.auto = auto;
    auto.addEventListener("change", () => this.set({ auto: auto.checked }));
  }

  choice() {
    const set = document.createElement("fieldset");
    const legend = document.createElement("legend");
    legend.textContent = "mode";
    set.append(legend);
    this.modes = modes.map(([value, text, defaults]) => {
      const label = document.createElement("label"), input = document.createElement("input");
      Object.assign(input, { type: "radio", name: "mode", value });
      input.addEventListener("change", () => this.set({ mode: value, ...defaults }));
      label.append(input, " " + text);
      set.append(label);
      return input;
    });
    return set;
  }

  // options returns the parts of state synchronization that can be disabled.
  options() {
    const set = document.createElement("fieldset");
    const legend = document.createElement("legend");
    legend.textContent = "state synchronization uses";
    set.className = "parts";
    set.append(legend);
    this.parts = parts.map(([name, text]) => {
      const label = document.createElement("label"), input = document.createElement("input");
      Object.assign(input, { type: "checkbox", name });
      input.addEventListener("change", () => this.set({ [name]: input.checked }));
      label.append(input, " " + text);
      set.append(label);
      return input;
    });
    this.partsOf = set;
    return set;
  }

  slider(s) {
    const label = document.createElement("label"), input = document.createElement("input"), output = document.createElement("output");
    label.className = "slider";
    Object.assign(input, { type: "range", name: s.name, min: 0, max: s.among ? s.among.length - 1 : s.max, step: s.among ? 1 : s.step });
    const value = () => s.among ? s.among[+input.value] : +input.value;
    const show = () => {
      output.textContent = s.text(value());
      input.setAttribute("aria-valuetext", output.textContent);
    };
    input.addEventListener("input", () => { show(); this.set({ [s.name]: value() }); });
    this.inputs[s.name] = v => {
      label.hidden = s.mode !== undefined && s.mode !== this.settings.mode;
      if (document.activeElement === input && input.matches(":active")) return; // it is being moved
      input.value = s.among ? nearest(s.among, v) : v;
      show();
    };
    label.append(s.label, input, output);
    return label;
  }

  set(change) {
    if (!this.settings) return;
    Object.assign(this.settings, change);
    this.change(change);
    this.changed = performance.now();
    this.render();
  }

  // show applies the settings of the server, unless the user changed them less than 0.7 s ago.
  show(settings) {
    if (performance.now() - (this.changed ?? -Infinity) < 700) return;
    this.settings = settings;
    this.render();
  }

  render() {
    for (const w of this.modes) w.checked = w.value === this.settings.mode;
    for (const [name, put] of Object.entries(this.inputs)) put(this.settings[name]);
    for (const p of this.parts) p.checked = this.settings[p.name];
    this.partsOf.hidden = this.settings.mode !== "state";
    this.auto.checked = this.settings.auto;
  }
}

function nearest(among, v) {
  const exact = among.indexOf(v);
  if (exact >= 0) return exact;
  let best = 0;
  among.forEach((a, i) => { if (Math.abs(a - v) < Math.abs(among[best] - v)) best = i; });
  return best;
}
