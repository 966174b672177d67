// The page: what your client shows, your keys and your mouse, measurements, and the link.
import { Scene, cross } from "./scene.js";

const $ = id => document.getElementById(id);
const scene = new Scene($("view"));
const keys = { KeyW: 1, ArrowUp: 1, KeyS: 2, ArrowDown: 2, KeyA: 4, ArrowLeft: 4, KeyD: 8, ArrowRight: 8, Space: 16 };
const colors = { out: [0.5, 0.5, 0.55], eye: [0.1, 0.1, 0.15], floor: [0.78, 0.8, 0.76], block: [0.45, 0.55, 0.68] };
const me = { keys: 0, yaw: 0, pitch: 0, auto: true };
const held = new Set();
let picture, blocks = [], beams = [], flash = 0;

// turned returns the axes of a look in degrees.
function turned(yaw, pitch) {
  const a = yaw * Math.PI / 180, b = pitch * Math.PI / 180;
  const ahead = [Math.cos(a) * Math.cos(b), Math.sin(a) * Math.cos(b), Math.sin(b)], left = [-Math.sin(a), Math.cos(a), 0];
  return { ahead, left };
}

// color returns the color of a player.
function color(name) {
  const hue = parseInt(name.replace(/\D/g, "")) * 2.4;
  return [0, 2.1, 4.2].map(shift => 0.62 + 0.38 * Math.cos(hue + shift));
}

const along = (p, d, v) => p.map((x, i) => x + d * v[i]);
const cube = (at, size, color) => [...at, size[0], 0, 0, 0, size[1], 0, 0, 0, size[2], ...color];

// Orders to the server: one request at a time, with what changed meanwhile.
const waiting = [];
let sending = false;
async function send(order) {
  waiting.push(order);
  if (sending) return;
  sending = true;
  while (waiting.length) {
    const next = waiting.shift();
    while (waiting.length && !next.held?.fire && next.held && waiting[0].held) Object.assign(next, waiting.shift());
    const r = await fetch("input", { method: "POST", headers: { "X-Uplink": "1" }, body: JSON.stringify(next) }).catch(() => null);
    if (r && !r.ok) $("status").textContent = await r.text();
  }
  sending = false;
}
const act = (fire = 0) => send({ held: { keys: me.keys, yaw: me.yaw, pitch: me.pitch, fire } });

function setAuto(auto) {
  me.auto = $("auto").checked = auto;
  send({ auto });
}

function key(code, down) {
  if (!(code in keys)) return false;
  down ? held.add(code) : held.delete(code);
  me.keys = [...held].reduce((all, k) => all | keys[k], 0);
  act();
  return true;
}

const view = $("view");
view.addEventListener("mousedown", () => {
  if (document.pointerLockElement !== view) {
    view.requestPointerLock()?.catch?.(() => {});
    [me.yaw, me.pitch] = picture?.look ?? [0, 0];
    view.focus();
    setAuto(false);
  }
  act(picture?.n);
});
addEventListener("mousemove", e => {
  if (document.pointerLockElement !== view) return;
  me.yaw = ((me.yaw - e.movementX * 0.1) % 360 + 540) % 360 - 180;
  me.pitch = Math.max(-85, Math.min(85, me.pitch - e.movementY * 0.1));
  act();
});
view.addEventListener("keydown", e => { if (key(e.code, true)) e.preventDefault(); });
view.addEventListener("keyup", e => key(e.code, false));
view.addEventListener("blur", () => [...held].forEach(k => key(k, false)));
$("auto").addEventListener("change", () => {
  [me.yaw, me.pitch] = picture?.look ?? [0, 0];
  act();
  setAuto($("auto").checked);
});

// The link.
const sliders = [
  { name: "rtt", label: "RTT", max: 400, step: 10, text: v => `${v} ms` },
  { name: "loss", max: 0.3, step: 0.01, text: v => `${(100 * v).toFixed(0)} %` },
  { name: "jitter", max: 60, step: 1, text: v => `${v} ms` },
].map(s => {
  const label = document.createElement("label"), input = document.createElement("input"), output = document.createElement("output");
  Object.assign(input, { type: "range", name: s.name, min: 0, max: s.max, step: s.step });
  input.addEventListener("input", () => {
    changed = performance.now();
    output.textContent = s.text(+input.value);
    send({ link: Object.fromEntries(sliders.map(({ s, input }) => [s.name, +input.value])) });
  });
  label.append(s.label ?? s.name, input, output);
  $("link").append(label);
  return { s, input, output };
});
let changed = -1e9;

function show(f) {
  const rows = {
    "rtt": ["round-trip time", `${f.rtt.toFixed(0)} ms`],
    "loss": ["loss", `${(100 * f.loss).toFixed(1)} %`],
    "up": ["uplink", `${f.up.toFixed(0)} kbit/s`],
    "down": ["downlink", `${f.down.toFixed(0)} kbit/s`],
    "corrections": ["corrections > 5 cm", `${f.corrections.toFixed(3)}/s`],
    "largest": ["largest correction", `${f.largest.toFixed(0)} cm`],
    "shots": ["shots of all players", f.shots],
    "agreement": ["decided as shown", `${(100 * f.agreed / Math.max(1, f.shots)).toFixed(2)} %`],
    "close": ["otherwise, within 5 cm", f.close],
    "wrong": ["otherwise, beyond that", f.shots - f.agreed - f.close],
  };
  $("figures").replaceChildren(...Object.entries(rows).flatMap(([name, [label, value]]) => {
    const dt = document.createElement("dt"), dd = document.createElement("dd");
    dt.textContent = label;
    dd.textContent = value;
    dd.dataset.name = name;
    return [dt, dd];
  }));
  if (performance.now() - changed < 1000) return;
  for (const { s, input, output } of sliders) {
    input.value = f.link[s.name];
    output.textContent = s.text(f.link[s.name]);
  }
}

function receive(p) {
  picture = p;
  for (const s of p.shots ?? []) {
    beams.push({ from: [s.From.X, s.From.Y, s.From.Z], to: [s.To.X, s.To.Y, s.To.Z], until: performance.now() + 150 });
    if (s.Shooter === 1 && s.Target) flash = performance.now() + 150;
  }
  if (!p.figures) return;
  show(p.figures);
  $("scores").replaceChildren(...(p.players ?? []).toSorted((a, b) => b.score - a.score).map(o => {
    const row = document.createElement("li");
    row.textContent = `${o.name}: ${o.score}`;
    row.className = o.out ? "out" : "";
    return row;
  }));
  const you = p.players?.find(o => o.name === "you");
  $("status").textContent = !you?.armed ? "get ready" : you.out ? "you were hit" : "";
}

function draw() {
  requestAnimationFrame(draw);
  if (!picture) return;
  const now = performance.now(), [yaw, pitch] = me.auto ? picture.look : [me.yaw, me.pitch];
  const { ahead, left } = turned(yaw, pitch);
  scene.boxes.data = [...blocks];
  scene.balls.data = [];
  for (const o of picture.players ?? []) {
    if (o.name === "you") continue;
    scene.balls.data.push(...cube(o.at, [0.5, 0.5, 0.5], o.out ? colors.out : color(o.name)));
    scene.balls.data.push(...cube(along(o.at, 0.38, turned(...o.look).ahead), [0.18, 0.18, 0.18], colors.eye));
  }
  beams = beams.filter(b => b.until > now);
  for (const b of beams) {
    const d = b.to.map((x, i) => x - b.from[i]), n = Math.hypot(...d) || 1, x = d.map(v => v / n);
    const y = Math.abs(x[2]) < 0.9 ? cross(x, [0, 0, 1]) : [1, 0, 0], z = cross(x, y), thin = v => v.map(c => c * 0.015);
    scene.boxes.data.push(...along(along(b.from, n / 2, x), 0.2, [0, 0, -1]), ...d.map(v => v / 2), ...thin(y), ...thin(z), -1, 0, 0);
  }
  $("cross").className = flash > now ? "hit" : "";
  scene.draw(picture.eye, ahead, left);
}

blocks = (await (await fetch("arena")).json()).flatMap(({ Min, Max }) => {
  const low = [Min.X, Min.Y, Min.Z], high = [Max.X, Max.Y, Max.Z];
  return cube(low.map((v, i) => (v + high[i]) / 2), low.map((v, i) => (high[i] - v) / 2), high[2] === 0 ? colors.floor : colors.block);
});
const source = new EventSource("pictures");
source.onmessage = e => receive(JSON.parse(e.data));
source.onerror = () => { $("status").textContent = "the server does not answer; trying again"; };
draw();
