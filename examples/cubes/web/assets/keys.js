// The keys that the player holds, on a keyboard or by the buttons.
const codes = { ArrowLeft: 1, KeyA: 1, ArrowRight: 2, KeyD: 2, ArrowUp: 4, KeyW: 4, ArrowDown: 8, KeyS: 8, Space: 16, KeyZ: 32 };

export class Keys {
  constructor(buttons, changed) {
    this.held = 0;
    this.changed = changed;
    this.buttons = [...buttons];
    addEventListener("keydown", e => this.key(e, true));
    addEventListener("keyup", e => this.key(e, false));
    addEventListener("blur", () => this.set(0));
    for (const b of this.buttons) {
      const bit = +b.dataset.key;
      b.setAttribute("aria-pressed", "false");
      b.addEventListener("pointerdown", e => { b.setPointerCapture(e.pointerId); this.set(this.held | bit); });
      for (const end of ["pointerup", "pointercancel"]) b.addEventListener(end, () => this.set(this.held & ~bit));
    }
  }

  key(e, down) {
    const bit = codes[e.code];
    // Keys of a control that has the focus are its own.
    const own = e.target.closest?.("input, select") || e.code === "Space" && e.target.closest?.("button");
    if (!bit || own && down || e.ctrlKey || e.metaKey || e.altKey) return;
    if (!own) e.preventDefault();
    this.set(down ? this.held | bit : this.held & ~bit);
  }

  set(held) {
    if (held === this.held) return;
    this.held = held;
    for (const b of this.buttons) b.setAttribute("aria-pressed", String((held & +b.dataset.key) !== 0));
    this.changed(held);
  }
}
