// One player from above: as its client sent it, and as the server rebuilt it.

import { Camera } from './camera.js';
import { Calls, flying, lost, older, own } from './calls.js';
import { Canvas } from './canvas.js';
import { element } from './element.js';

const trailSeconds = 2;
const stripSeconds = 4;
const lookAhead = 0.4; // seconds
const slow = 500; // milliseconds between two pictures with reduced motion

const reduced = matchMedia('(prefers-reduced-motion: reduce)');

export class Stage {
  // look is called with the number of the player that the visitor chooses.
  constructor(look) {
    this.select = element('select', { id: 'lab-actor' });
    this.select.addEventListener('change', () => look(Number(this.select.value)));
    this.sent = new Canvas('Sent by the client');
    this.rebuilt = new Canvas('Rebuilt by the server');
    this.strip = new Canvas(`Each call of the last ${stripSeconds} seconds, the newest at the right`, 'lab-strip');
    this.summary = element('p', { className: 'lab-summary' });
    this.element = element('div', { className: 'lab-stage' },
      element('div', { className: 'lab-actor' }, element('label', { htmlFor: this.select.id }, 'Player'), this.select),
      element('div', { className: 'lab-views' }, this.sent.element, this.rebuilt.element),
      this.strip.element, legend(), this.summary);
    this.calls = null;
    this.drawn = 0;
    this.request = requestAnimationFrame((now) => this.frame(now));
  }

  // list offers the players.
  list(actors) {
    if (this.select.options.length === actors.length) {
      return;
    }
    this.select.replaceChildren(...actors.map((a, i) => element('option', { value: i }, `${i + 1}: ${a.rpc}, ${a.name}`)));
  }

  // begin shows another player, or the same again.
  begin({ rate_hz: rate, moves, path }) {
    this.path = path.map(([x, y]) => ({ x, y }));
    this.moves = moves;
    this.trail = Math.round(rate * trailSeconds);
    this.calls = new Calls(Math.round(rate * stripSeconds));
    this.camera = new Camera(this.path);
  }

  add(poses) {
    this.calls.add(poses);
  }

  frame(now) {
    this.request = requestAnimationFrame((t) => this.frame(t));
    if (!this.calls || this.calls.all.length === 0 || (reduced.matches && now - this.drawn < slow)) {
      return;
    }
    const elapsed = now - this.drawn;
    this.drawn = now;
    this.draw(elapsed);
  }

  draw(elapsed) {
    const calls = this.calls.last(this.trail);
    if (reduced.matches) {
      this.camera.stay();
    } else {
      // With room for where it will be when the camera is there.
      const { x, y, vx, vy } = this.moving(calls.at(-1), 'sent');
      this.camera.follow([...calls.map((c) => c.sent), { x: x + vx * lookAhead, y: y + vy * lookAhead }], elapsed);
    }
    this.sent.clear();
    this.sent.path(this.camera, this.path);
    this.sent.trail(this.camera, calls.map((c) => c.sent), '--accent');
    this.sent.actor(this.camera, this.moving(calls.at(-1), 'sent'), '--accent');
    this.drawRebuilt(calls);
    this.drawStrip();
    this.tell();
  }

  drawRebuilt(calls) {
    const view = this.rebuilt;
    view.clear();
    view.path(this.camera, this.path);
    // A gap parts the trail.
    let piece = [];
    for (const c of calls) {
      if (c.rebuilt) {
        piece.push(c.rebuilt);
      } else {
        view.trail(this.camera, piece, '--good');
        piece = [];
      }
    }
    view.trail(this.camera, piece, '--good');
    for (const c of calls) {
      if (c.fate === older) {
        view.dot(this.camera, c.rebuilt, '--accent-2');
      } else if (c.fate === lost) {
        view.cross(this.camera, c.sent, '--bad');
      }
    }
    if (this.calls.newest) {
      view.actor(this.camera, this.moving(this.calls.newest, 'rebuilt'), '--good');
    }
  }

  // moving returns the pose with its velocity, computed from earlier poses if frames contain none.
  moving(call, which) {
    const pose = call[which];
    if (this.moves) {
      return pose;
    }
    const before = this.calls.at(call.n - Math.round(this.trail / 10))?.[which];
    const seconds = trailSeconds / 10;
    return before ? { ...pose, vx: (pose.x - before.x) / seconds, vy: (pose.y - before.y) / seconds } : pose;
  }

  drawStrip() {
    const columns = Math.round((this.trail / trailSeconds) * stripSeconds);
    this.strip.clear();
    this.calls.all.forEach((c, i) => {
      const column = columns - this.calls.all.length + i;
      this.strip.column(column, columns, heights[c.fate], colours[c.fate]);
    });
  }

  // tell describes the pictures in words.
  tell() {
    const [n, o, l] = [own, older, lost].map((fate) => this.calls.count(fate));
    const text = `Of the last ${n + o + l} calls ${n} arrived in the first packet, ${o} were recovered by redundancy, ${l} were lost.`;
    if (this.summary.textContent !== text) {
      this.summary.textContent = text;
    }
  }
}

// Delivery statuses differ in height too, for users who cannot tell the colours apart.
const heights = { [own]: 1, [older]: 0.7, [lost]: 0.35, [flying]: 0.12 };
const colours = { [own]: '--good', [older]: '--accent-2', [lost]: '--bad', [flying]: '--muted' };

function legend() {
  const items = [
    [own, 'arrived in the first packet'],
    [older, 'recovered by redundancy'],
    [lost, 'lost'],
    [flying, 'in flight'],
  ];
  return element('ul', { className: 'lab-legend' },
    ...items.map(([fate, text]) => element('li', { className: `lab-${fate}` }, text)));
}
