// Helpers for the page's elements. They set text, never markup.

export const $ = (id) => document.getElementById(id);

// make creates an element with properties and children.
export function make(tag, props = {}, ...children) {
  const e = document.createElement(tag);
  for (const [k, v] of Object.entries(props)) {
    if (v === undefined || v === false) continue;
    if (k === "class") e.className = v;
    else if (k in e && typeof v !== "string") e[k] = v;
    else e.setAttribute(k, v === true ? "" : v);
  }
  e.append(...children.filter((c) => c !== null && c !== undefined));
  return e;
}

// setText writes only what changed, so that a selection stays.
export function setText(e, text) {
  if (e.textContent !== text) e.textContent = text;
}

// css returns the value of a custom property of the page.
export const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

export const colors = 10;

// series returns the color of field or series i.
export const series = (i) => `--s${i % colors}`;

// rows updates the rows of a table. Rows whose key remains are kept, and keep the focus.
// build(item) creates a row, fill(row, item) writes its content.
export function rows(body, items, key, build, fill, reorder = true) {
  const old = new Map([...body.children].map((tr) => [tr.dataset.key, tr]));
  const next = [];
  for (const item of items) {
    const k = String(key(item));
    let tr = old.get(k);
    old.delete(k);
    if (!tr) {
      tr = build(item);
      tr.dataset.key = k;
    }
    fill(tr, item);
    next.push(tr);
  }
  for (const tr of old.values()) tr.remove();
  if (!reorder) {
    for (const tr of next) if (!tr.isConnected) body.append(tr);
    return;
  }
  const focused = body.contains(document.activeElement) ? document.activeElement : null;
  next.forEach((tr, i) => {
    if (body.children[i] !== tr) body.insertBefore(tr, body.children[i] ?? null);
  });
  if (focused && focused !== document.activeElement) focused.focus({ preventScroll: true });
}
