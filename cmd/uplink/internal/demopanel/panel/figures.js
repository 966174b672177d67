// The bandwidth of the calls, compared with that of full frames.

import { element } from './element.js';

export class Figures {
  constructor() {
    this.bars = [
      this.bar('full', 'Full frames', 'each once, in an encrypted datagram of its own'),
      this.bar('batched', 'Batched without a codec', 'full frames in the same datagrams'),
      this.bar('sent', 'uplink, both ways', 'sent by clients, and acks sent to them, with all headers'),
    ];
    this.saved = element('strong', {}, '–');
    this.than = element('span', {}, 'less on the wire');
    this.facts = ['Wire ratio', 'Up, sent by clients', 'Down, acks', 'Delivery', 'Older payloads repeated', 'Differ from recording'].map((name) => {
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

  tell(from, texts) {
    texts.forEach((text, i) => {
      this.facts[from + i].value.textContent = text;
    });
  }

  // show shows the figures of the page's tiles, in the page's formats.
  show(all, format) {
    if (!(all.full > 0)) {
      return; // nothing is measured yet
    }
    const flow = (bits) => format.joined(format.flow(bits, all.seconds));
    const both = all.up + all.down;
    const most = Math.max(all.full, all.batched, both);
    [all.full, all.batched, both].forEach((bits, i) => {
      this.bars[i].value.textContent = flow(bits);
      this.bars[i].fill.style.width = `${(100 * bits) / most}%`;
    });
    const saved = 100 - Math.round(100 * all.ratio);
    this.saved.textContent = `${Math.abs(saved)} %`;
    this.than.textContent = saved < 0 ? more(all) : 'less on the wire';
    this.tell(0, [format.ratio(all.ratio), flow(all.up), flow(all.down), format.percent(all.delivered)]);
    this.facts[3].value.classList.toggle('lab-bad', all.delivered < 0.98);
  }

  // count shows what the demo counts.
  count({ redundancy, mismatches }) {
    this.tell(4, [`up to ${redundancy}`, `${mismatches}`]);
    this.facts[5].value.classList.toggle('lab-bad', mismatches > 0);
  }
}

// more explains a ratio above 1.
function more(all) {
  return all.redundant > 0 ? 'more on the wire: calls are repeated, full frames would be lost' : 'more on the wire: full frames have no acks';
}
