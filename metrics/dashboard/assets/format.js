// Formats of numbers, with their units. An unknown value is a dash.

export const dash = "–";

const known = (v) => Number.isFinite(v);

export function number(v, digits = 0) {
  return known(v) ? v.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits }) : dash;
}

// significant returns a number with three digits.
export function significant(v) {
  if (!known(v)) return dash;
  const a = Math.abs(v);
  return number(v, a >= 99.95 || a === 0 ? 0 : a >= 9.995 ? 1 : 2);
}

// rate returns a bit rate as value and unit.
export function rate(v) {
  if (!known(v)) return [dash, "kbit/s"];
  if (v >= 9.995e8) return [significant(v / 1e9), "Gbit/s"];
  return v >= 9.995e5 ? [significant(v / 1e6), "Mbit/s"] : [significant(v / 1e3), "kbit/s"];
}

// amount returns a number of bits as value and unit, in bytes.
export function amount(v) {
  if (!known(v)) return [dash, "kB"];
  const b = v / 8;
  if (b >= 9.995e8) return [significant(b / 1e9), "GB"];
  return b >= 9.995e5 ? [significant(b / 1e6), "MB"] : [significant(b / 1e3), "kB"];
}

export const joined = ([value, unit]) => `${value} ${unit}`;

// flow returns bits of so many seconds as a rate, or without seconds as an amount.
export const flow = (bits, seconds) => (seconds ? rate(bits / seconds) : amount(bits));

// short returns a label of an axis.
export function short(v) {
  const [n, unit] = Math.abs(v) >= 1e6 ? [v / 1e6, "M"] : Math.abs(v) >= 1e3 ? [v / 1e3, "k"] : [v, ""];
  return n.toLocaleString("en", { maximumFractionDigits: 2 }) + unit;
}

export function count(v) {
  if (!known(v)) return dash;
  return v >= 1e6 ? `${significant(v / 1e6)} M` : number(v);
}

// percent keeps enough digits to distinguish 99.97 from 100.
export function percent(v, digits) {
  if (!known(v)) return dash;
  const p = 100 * v;
  return `${number(p, digits ?? (p > 0 && p < 1 ? 2 : p > 99 && p < 100 ? 2 : p === 0 || p === 100 ? 0 : 1))} %`;
}

export const ms = (v) => (known(v) && v > 0 ? `${v < 9.95 ? number(v, 1) : number(v)} ms` : dash);

// time returns milliseconds, 0 included.
export const time = (v) => (known(v) ? (v >= 9950 ? `${number(v / 1000, 1)} s` : `${number(v)} ms`) : dash);

export function clock(seconds, full) {
  const t = new Date(seconds * 1000);
  return t.toLocaleTimeString("en-GB", full ? {} : { hour: "2-digit", minute: "2-digit" });
}

export const ratio = (v) => (known(v) ? number(v, 2) : dash);

// brief shortens a name for a legend.
export const brief = (name) => (name.length > 24 ? `${name.slice(0, 23)}…` : name);

// drops returns a list of the reasons, the most frequent first.
export function drops(counts, seconds) {
  const all = Object.entries(counts ?? {}).sort((a, b) => b[1] - a[1]);
  if (!all.length) return "none";
  return all.map(([reason, n]) => `${reason.replaceAll("_", " ")} ${seconds ? `${significant(n / seconds)}/s` : count(n)}`).join(" · ");
}
