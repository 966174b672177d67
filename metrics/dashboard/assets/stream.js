// The events of the server. The stream reports when they stop, and reconnects.

const longest = 10000; // milliseconds between two attempts
const silence = 6000; // milliseconds after which a connection counts as lost

export function stream(url, on) {
  let source = null;
  let attempts = 0;
  let timer = 0;
  let watch = 0;

  function heard() {
    clearTimeout(watch);
    watch = setTimeout(lost, silence);
  }

  function open() {
    clearTimeout(timer);
    source?.close();
    source = new EventSource(url);
    heard();
    for (const name of ["hello", "history", "sample", "state"]) {
      source.addEventListener(name, (e) => {
        heard();
        attempts = 0;
        on[name](JSON.parse(e.data));
      });
    }
    source.onerror = lost;
  }

  function lost() {
    clearTimeout(watch);
    clearTimeout(timer);
    source?.close();
    source = null;
    const wait = Math.min(longest, 500 * 2 ** attempts) * (0.75 + Math.random() / 2);
    attempts++;
    on.lost(Date.now() + wait);
    timer = setTimeout(open, wait);
    why().then((text) => text && !source && on.refused(text));
  }

  // why requests the reason of a refusal, which EventSource does not report.
  async function why() {
    try {
      const r = await fetch("./", { cache: "no-store" });
      return r.ok ? "" : (await r.text()).trim();
    } catch {
      return "";
    }
  }

  addEventListener("online", () => source || open());
  document.addEventListener("visibilitychange", () => document.hidden || source || open());
  addEventListener("pagehide", () => source?.close());
  open();
  return { retry: open };
}
