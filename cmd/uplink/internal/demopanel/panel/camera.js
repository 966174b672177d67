// The part of the plane that both views show: the area of the most recent play.

const room = 1.35; // share of the view around what it shows
const closest = 0.05; // of the whole path: the least that is shown
const pace = 300; // milliseconds in which it goes most of the way

export function bounds(points) {
  const b = { left: Infinity, right: -Infinity, bottom: Infinity, top: -Infinity };
  for (const { x, y } of points) {
    b.left = Math.min(b.left, x);
    b.right = Math.max(b.right, x);
    b.bottom = Math.min(b.bottom, y);
    b.top = Math.max(b.top, y);
  }
  return b;
}

export class Camera {
  // path is the whole recording.
  constructor(path) {
    this.whole = fit(bounds(path), 1, 1);
    this.now = null;
  }

  // follow moves toward what shows the points, so many milliseconds after it did so last.
  follow(points, elapsed) {
    const goal = points.length > 0 ? fit(bounds(points), this.whole.width * closest, this.whole.height * closest) : this.whole;
    if (this.now === null) {
      this.now = { ...goal };
    }
    const share = 1 - Math.exp(-elapsed / pace);
    for (const key of ['x', 'y', 'width', 'height']) {
      this.now[key] += (goal[key] - this.now[key]) * share;
    }
  }

  // stay shows the whole path, for those who want nothing to move that need not.
  stay() {
    this.now = { ...this.whole };
  }

  // project returns the position of a point in a view of that size.
  project({ x, y }, { width, height }) {
    const scale = Math.min(width / this.now.width, height / this.now.height);
    return [width / 2 + (x - this.now.x) * scale, height / 2 - (y - this.now.y) * scale];
  }
}

function fit({ left, right, bottom, top }, leastWidth, leastHeight) {
  return {
    x: (left + right) / 2,
    y: (bottom + top) / 2,
    width: room * Math.max(right - left, leastWidth),
    height: room * Math.max(top - bottom, leastHeight),
  };
}
