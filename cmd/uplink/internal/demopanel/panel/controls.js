// The settings: sliders and choices that act at once.

import { element } from './element.js';

// settled is for how long a control that was moved does not follow what the server says, in milliseconds.
const settled = 1500;

const percent = (v) => `${Number((100 * v).toFixed(1))} %`;
const milliseconds = (v) => `${Math.round(v)} ms`;

const sliders = [
  { name: 'loss', label: 'Loss', text: percent, hint: 'share of packets lost, each way' },
  { name: 'burst', label: 'Burst', text: (v) => (v > 1 ? `${Number(v.toFixed(1))} packets` : 'by chance'), hint: 'mean number of packets lost in a row' },
  { name: 'rtt_ms', label: 'Round trip', text: milliseconds, hint: 'time that a packet and its answer take' },
  { name: 'jitter_ms', label: 'Jitter', text: milliseconds, hint: 'mean of a further delay of each packet; it reorders' },
];

const names = {
  adaptive: 'adaptive', rle: 'rle, the plain one',
  none: 'none: no call waits', 'low-latency': 'low-latency: no call waits', balanced: 'balanced: up to 33 ms',
  'low-bandwidth': 'low-bandwidth: up to 50 ms',
  auto: 'auto: follows the loss', off: 'off: each call once',
};

const choices = [
  { name: 'codec', label: 'Codec', text: (v) => names[v] ?? v },
  { name: 'preset', label: 'Preset', text: (v) => names[v] ?? v, hint: 'how long calls may wait for later ones; for the codec adaptive' },
  { name: 'redundancy', label: 'Redundancy', text: (v) => names[v] ?? `${v} older ${v === '1' ? 'payload' : 'payloads'} repeated` },
];

const links = [
  { label: 'Home', settings: { loss: 0, burst: 1, rtt_ms: 30, jitter_ms: 1 } },
  { label: 'Mobile', settings: { loss: 0.05, burst: 3, rtt_ms: 120, jitter_ms: 15 } },
  { label: 'Terrible', settings: { loss: 0.3, burst: 4, rtt_ms: 250, jitter_ms: 40 } },
];

export class Controls {
  constructor(change) {
    this.change = change;
    this.waiting = null; // settings that are still to be sent
    this.sending = false;
    this.moved = new Map(); // control's name to when it was moved
    this.inputs = new Map();
    this.element = element('form', { className: 'lab-controls' });
    this.element.addEventListener('submit', (e) => e.preventDefault());
    this.fields = element('fieldset', {}, element('legend', {}, 'Link, codec and preset'));
    for (const s of sliders) {
      this.fields.append(this.slider(s));
    }
    for (const c of choices) {
      this.fields.append(this.choice(c));
    }
    this.fields.append(this.presets());
    this.element.append(this.fields);
  }

  slider({ name, label, text, hint }) {
    const output = element('output', { className: 'lab-value', for: `lab-${name}` });
    const input = element('input', { type: 'range', id: `lab-${name}`, name, disabled: true, title: hint });
    const show = () => {
      const words = text(Number(input.value));
      output.textContent = words;
      input.setAttribute('aria-valuetext', words);
    };
    input.addEventListener('input', () => {
      show();
      this.set({ [name]: Number(input.value) });
    });
    this.inputs.set(name, {
      input,
      limit: ({ min, max, step }, value) => {
        // A value that the demo began with may lie outside, and between two steps.
        Object.assign(input, { min, max: Math.max(max, value), step: value > max ? 'any' : step });
      },
      show: (value) => {
        input.value = value;
        show();
      },
    });
    return element('div', { className: 'lab-control' }, element('label', { htmlFor: input.id }, label), output, input);
  }

  choice({ name, label, text, hint = '' }) {
    const input = element('select', { id: `lab-${name}`, name, disabled: true, title: hint });
    input.addEventListener('change', () => this.set({ [name]: input.value }));
    this.inputs.set(name, {
      input,
      limit: (values) => {
        if (input.options.length === 0) {
          input.append(...values.map((v) => element('option', { value: v }, text(v))));
        }
      },
      show: (value) => {
        input.value = value;
      },
    });
    return element('div', { className: 'lab-control' }, element('label', { htmlFor: input.id }, label), input);
  }

  presets() {
    const buttons = links.map(({ label, settings }) => {
      const b = element('button', { type: 'button' }, label);
      b.addEventListener('click', () => {
        for (const [name, value] of Object.entries(settings)) {
          this.inputs.get(name).show(value);
        }
        this.set(settings);
      });
      return b;
    });
    return element('div', { className: 'lab-control lab-presets', role: 'group', 'aria-label': 'Links to choose from' }, ...buttons);
  }

  // set sends settings, one request at a time: what is moved meanwhile goes in the next.
  async set(settings) {
    for (const name of Object.keys(settings)) {
      this.moved.set(name, performance.now());
    }
    this.waiting = { ...this.waiting, ...settings };
    if (this.sending) {
      return;
    }
    this.sending = true;
    while (this.waiting) {
      const next = this.waiting;
      this.waiting = null;
      await this.change(next);
    }
    this.sending = false;
  }

  // show follows the server, but for controls that were moved a moment ago.
  show({ settings, limits }, readOnly) {
    for (const [name, control] of this.inputs) {
      if (performance.now() - (this.moved.get(name) ?? -Infinity) < settled) {
        continue;
      }
      control.limit(limits[name], settings[name]);
      control.show(settings[name]);
      control.input.disabled = false;
    }
    this.fields.disabled = readOnly;
  }
}
