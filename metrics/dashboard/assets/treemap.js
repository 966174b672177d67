// layout divides a rectangle into areas of the given sizes, which are positive and in descending
// order, and returns [{x, y, w, h}].
export function layout(sizes, w, h) {
  const out = [];
  const scale = (w * h) / sizes.reduce((a, b) => a + b, 0);
  let x = 0;
  let y = 0;
  let from = 0;
  while (from < sizes.length) {
    const side = Math.min(w, h);
    let to = from;
    let sum = 0;
    let worst = Infinity;
    for (; to < sizes.length; to++) {
      const next = sum + sizes[to] * scale;
      const largest = sizes[from] * scale;
      const least = sizes[to] * scale;
      const now = Math.max((side * side * largest) / (next * next), (next * next) / (side * side * least));
      if (now > worst) break;
      worst = now;
      sum = next;
    }
    const thick = sum / side;
    let at = 0;
    for (; from < to; from++) {
      const long = (sizes[from] * scale) / thick;
      out.push(w >= h ? { x, y: y + at, w: thick, h: long } : { x: x + at, y, w: long, h: thick });
      at += long;
    }
    if (w >= h) {
      x += thick;
      w -= thick;
    } else {
      y += thick;
      h -= thick;
    }
  }
  return out;
}
