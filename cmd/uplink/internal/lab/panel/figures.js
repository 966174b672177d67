// The bandwidth of the calls, compared with that of full frames.

import { element } from './element.js';

const kbit = (bits) => `${(bits / 1000).toFixed(1)} kbit/s`;

export class Figures {
  constructor() {
    this.bars = [
      this.bar('full', 'Full frames', 'each once, in an encrypted datagram of its own'),
      this.bar('sent', 'uplink, both ways', 'sent by clients, and acks sent to them, with all headers'),
    ];
    this.saved = element('strong', {}, '–');
    this.than = element('span', {}, 'less on the wire');
    this.facts = ['Delivered', 'Redundant calls per packet', 'Round trip', 'Up, sent by clients', 'Down, acks', 'Differ from recording'].map((name) => {
      const value = element('dd', {}, '–');
      return { value, element: element('div', {}, element('dt', {}, name), value) };
    });
    this.element = element('div', { className: 'lab-figures' },
      element('div', { className: 'lab-bars' }, ...this.bars.map((b) => b.element)),
      element('p', { className: 'lab-saved' }, this.saved, this.than),
      element('dl', {}, ...this.facts.map((f) => f.element)));
  }

  bar(kind, label, hint) {
    const value = element('span', { className: 'lab-value' }, '–');
    const fill = element('div', { className: `lab-fill lab-${kind}` });
    const name = element('span', {}, label, element('small', {}, ` ${hint}`));
    return {
      fill, value,
      element: element('div', { className: 'lab-bar' }, name, value, element('div', { className: 'lab-rail' }, fill)),
    };
  }

  show({ traffic: t }) {
    if (t.seconds === 0) {
      return; // nothing is measured yet
    }
    const both = t.up_bits_per_s + t.down_bits_per_s;
    const most = Math.max(t.full_bits_per_s, both, 1);
    [t.full_bits_per_s, both].forEach((bits, i) => {
      this.bars[i].value.textContent = kbit(bits);
      this.bars[i].fill.style.width = `${(100 * bits) / most}%`;
    });
    const saved = t.full_bits_per_s > 0 ? 1 - both / t.full_bits_per_s : 0;
    this.saved.textContent = `${Math.round(100 * Math.abs(saved))} %`;
    this.than.textContent = saved < 0 ? 'more on the wire: lost calls are repeated' : 'less on the wire';
    const texts = [`${(100 * t.delivered).toFixed(1)} %`, `up to ${t.redundancy}`, `${Math.round(t.rtt_ms)} ms`,
      kbit(t.up_bits_per_s), kbit(t.down_bits_per_s), `${t.mismatches}`];
    texts.forEach((text, i) => {
      this.facts[i].value.textContent = text;
    });
    this.facts[0].value.classList.toggle('lab-bad', t.delivered < 0.99);
    this.facts[5].value.classList.toggle('lab-bad', t.mismatches > 0);
  }
}
