// What the calls take, against what they would take in full.

import { element } from './element.js';

const kbit = (bits) => `${(bits / 1000).toFixed(1)} kbit/s`;

export class Figures {
  constructor() {
    this.bars = [
      this.bar('full', 'Full frames', 'as an engine packs them'),
      this.bar('sent', 'Sent by uplink', 'with its headers'),
    ];
    this.saved = element('strong', {}, '–');
    this.facts = ['Delivered', 'Older calls that ride along', 'Round trip', 'Different from the recording'].map((name) => {
      const value = element('dd', {}, '–');
      return { value, element: element('div', {}, element('dt', {}, name), value) };
    });
    this.element = element('div', { className: 'lab-figures' },
      element('div', { className: 'lab-bars' }, ...this.bars.map((b) => b.element)),
      element('p', { className: 'lab-saved' }, this.saved, element('span', {}, 'less to send')),
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
    const most = Math.max(t.full_bits_per_s, t.sent_bits_per_s, 1);
    [t.full_bits_per_s, t.sent_bits_per_s].forEach((bits, i) => {
      this.bars[i].value.textContent = kbit(bits);
      this.bars[i].fill.style.width = `${(100 * bits) / most}%`;
    });
    const saved = t.full_bits_per_s > 0 ? 1 - t.sent_bits_per_s / t.full_bits_per_s : 0;
    this.saved.textContent = `${Math.round(100 * saved)} %`;
    const texts = [`${(100 * t.delivered).toFixed(1)} %`, `up to ${t.redundancy}`, `${Math.round(t.rtt_ms)} ms`, `${t.mismatches}`];
    texts.forEach((text, i) => {
      this.facts[i].value.textContent = text;
    });
    this.facts[0].value.classList.toggle('lab-bad', t.delivered < 0.99);
    this.facts[3].value.classList.toggle('lab-bad', t.mismatches > 0);
  }
}
