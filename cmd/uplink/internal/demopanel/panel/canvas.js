// A canvas in the page's colours, sharp on every screen.

import { element } from './element.js';

const arrow = 9; // length of the player in pixels
const ahead = 0.35; // seconds of velocity that its line shows

export class Canvas {
  constructor(label, className = 'lab-view') {
    this.canvas = element('canvas', { role: 'img', 'aria-label': `${label}; the text below says the same.` });
    this.context = this.canvas.getContext('2d');
    this.element = element('figure', { className }, element('figcaption', {}, label), this.canvas);
  }

  get size() {
    return { width: this.canvas.clientWidth, height: this.canvas.clientHeight };
  }

  colour(name) {
    return this.style.getPropertyValue(name).trim() || 'gray';
  }

  clear() {
    const { width, height } = this.size;
    const ratio = window.devicePixelRatio || 1;
    this.style = getComputedStyle(this.canvas);
    if (this.canvas.width !== Math.round(width * ratio) || this.canvas.height !== Math.round(height * ratio)) {
      this.canvas.width = Math.round(width * ratio);
      this.canvas.height = Math.round(height * ratio);
    }
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.context.clearRect(0, 0, width, height);
    this.context.lineCap = 'round';
    this.context.lineJoin = 'round';
  }

  // path draws where the recording leads.
  path(camera, points) {
    this.line(camera, points, '--line', 1.5);
  }

  trail(camera, points, colour) {
    this.line(camera, points, colour, 3);
  }

  line(camera, points, colour, width) {
    if (points.length === 0) {
      return;
    }
    const c = this.context;
    c.strokeStyle = this.colour(colour);
    c.lineWidth = width;
    c.beginPath();
    for (const p of points) {
      c.lineTo(...camera.project(p, this.size));
    }
    c.stroke();
  }

  dot(camera, point, colour) {
    const c = this.context;
    c.fillStyle = this.colour(colour);
    c.beginPath();
    c.arc(...camera.project(point, this.size), 3.5, 0, 2 * Math.PI);
    c.fill();
  }

  cross(camera, point, colour) {
    const c = this.context;
    const [x, y] = camera.project(point, this.size);
    c.strokeStyle = this.colour(colour);
    c.lineWidth = 2;
    c.beginPath();
    for (const s of [-1, 1]) {
      c.moveTo(x - 4, y - 4 * s);
      c.lineTo(x + 4, y + 4 * s);
    }
    c.stroke();
  }

  // actor draws the player: where it looks, and where it goes.
  actor(camera, pose, colour) {
    const c = this.context;
    const [x, y] = camera.project(pose, this.size);
    const [toX, toY] = camera.project({ x: pose.x + pose.vx * ahead, y: pose.y + pose.vy * ahead }, this.size);
    c.strokeStyle = this.colour('--muted');
    c.lineWidth = 1.5;
    c.setLineDash([3, 4]);
    c.beginPath();
    c.moveTo(x, y);
    c.lineTo(toX, toY);
    c.stroke();
    c.setLineDash([]);
    c.save();
    c.translate(x, y);
    c.rotate(-pose.heading);
    c.beginPath();
    c.moveTo(1.5 * arrow, 0);
    c.lineTo(-arrow, 0.9 * arrow);
    c.lineTo(-0.4 * arrow, 0);
    c.lineTo(-arrow, -0.9 * arrow);
    c.closePath();
    c.fillStyle = this.colour(colour);
    c.strokeStyle = this.colour('--card');
    c.lineWidth = 2;
    c.fill();
    c.stroke();
    c.restore();
  }

  // column draws one of so many, of a height of 0 to 1.
  column(i, count, height, colour) {
    const { width, height: full } = this.size;
    const step = width / count;
    this.context.fillStyle = this.colour(colour);
    this.context.fillRect(i * step, full * (1 - height), Math.max(step - (step > 3 ? 1 : 0.4), 0.6), full * height);
  }
}
