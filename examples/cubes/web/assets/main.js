// The page: two views of one world, measurements, and settings.
import { Chart } from "./chart.js";
import { Controls } from "./controls.js";
import { showFigures } from "./figures.js";
import { Keys } from "./keys.js";
import { readPicture } from "./picture.js";
import { Stream } from "./stream.js";
import { View } from "./view.js";

const $ = id => document.getElementById(id);
const views = [new View($("server")), new View($("client"))];
const bandwidth = new Chart($("bandwidth"), { minimum: 300, limit: 256, unit: "kbit/s" });
const error = new Chart($("error"), { minimum: 1, unit: "cm" });

const stream = new Stream({
  picture(buffer) {
    readPicture(buffer, (side, cube) => views[side].place(cube));
  },
  figures(f) {
    showFigures($("figures"), f);
    bandwidth.add(f.kbits);
    error.add(f.error);
    controls.show(f.settings);
    $("delay").textContent = `draws the state of ${f.delay.toFixed(0)} ms ago`;
    summarize(f);
  },
  trouble(text) {
    $("trouble").textContent = text;
    $("trouble").hidden = !text;
  },
  state(state) {
    $("status").dataset.state = state;
    $("status").textContent = { live: "live", wait: "connecting", lost: "the server does not answer; trying again" }[state];
  },
});
const controls = new Controls($("controls"), $("auto"), settings => stream.send({ settings }));
new Keys(document.querySelectorAll("[data-key]"), keys => stream.send({ keys }));
$("restart").addEventListener("click", () => stream.send({ restart: true }));

// summarize updates the text for screen readers, at most every 10 seconds.
let summarized = 0;
function summarize(f) {
  if (performance.now() - summarized < 10000) return;
  summarized = performance.now();
  $("summary").textContent = `${f.settings.mode}: ${f.kbits.toFixed(0)} kilobits a second, mean error ${f.error.toFixed(1)} ` +
    `centimeters, ${f.delay.toFixed(0)} milliseconds behind, ${f.moving} cubes move.`;
}

function draw() {
  for (const v of views) v.draw();
  requestAnimationFrame(draw);
}
draw();
