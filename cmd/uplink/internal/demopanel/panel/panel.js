// The demo's panel: controls of the link, and one player as sent and as rebuilt.

import { Controls } from './controls.js';
import { Figures } from './figures.js';
import { Stage } from './stage.js';
import { element } from './element.js';

const base = new URL('./', import.meta.url);

// mount builds the panel in an empty section, and returns the function that shows the figures of the page. With
// readOnly nothing can be set.
export function mount(section, { readOnly = false } = {}) {
  addStyle();
  section.classList.add('lab');
  const status = element('p', { className: 'lab-status', role: 'status' });
  const controls = new Controls(change);
  const figures = new Figures();
  const stage = new Stage(look);
  section.append(
    element('h2', {}, 'Change the link while they play'),
    element('div', { className: 'lab-set' }, controls.element, status),
    element('div', { className: 'lab-shown' }, figures.element, stage.element),
  );

  let source = null;
  let actor = 0;

  // change posts settings, and shows the error if they are refused.
  async function change(settings) {
    const response = await fetch(new URL('state', base), {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', 'X-Uplink': '1' },
      body: JSON.stringify(settings),
    }).catch(() => null);
    if (!response) {
      say('The demo does not answer.', true);
    } else if (!response.ok) {
      say((await response.text()).trim(), true);
    } else {
      show(await response.json());
    }
  }

  function say(text, bad = false) {
    if (status.textContent !== text) {
      status.textContent = text;
    }
    status.classList.toggle('lab-bad', bad);
  }

  function show(state) {
    controls.show(state, readOnly);
    figures.count(state.traffic);
    stage.list(state.actors);
    const { switched, clients, seconds, calls_per_s: calls } = state.traffic;
    if (readOnly) {
      say('Read-only: settings can be changed on a loopback address alone.');
    } else if (seconds > 0 && calls === 0) {
      say('All clients have lost the server, and try to connect again.', true);
    } else if (switched < clients) {
      say(`${switched} of ${clients} clients have the codec ${state.settings.codec} with preset ${state.settings.preset}; the others are connecting.`);
    } else {
      say(`${clients} ${clients === 1 ? 'client plays' : 'clients play'} over this link; what you change acts at once. Figures are means of some seconds.`);
    }
  }

  function look(index) {
    actor = index;
    close();
    open();
  }

  function open() {
    if (source || document.hidden) {
      return;
    }
    source = new EventSource(new URL(`view?actor=${actor}`, base));
    source.addEventListener('hello', (e) => stage.begin(JSON.parse(e.data)));
    source.addEventListener('poses', (e) => stage.add(JSON.parse(e.data)));
    source.addEventListener('state', (e) => show(JSON.parse(e.data)));
    source.addEventListener('error', () => {
      say('The demo does not answer; trying again.', true);
      if (source?.readyState === EventSource.CLOSED) {
        close();
        setTimeout(open, 2000);
      }
    });
  }

  function close() {
    source?.close();
    source = null;
  }

  function visible() {
    if (document.hidden) {
      close();
    } else {
      open();
    }
  }

  document.addEventListener('visibilitychange', visible);
  open();
  return (all, format) => figures.show(all, format);
}

// addStyle links the panel's style, unless the page has done so.
function addStyle() {
  const href = new URL('panel.css', base).href;
  if (![...document.querySelectorAll('link')].some((l) => l.href === href)) {
    document.head.append(element('link', { rel: 'stylesheet', href }));
  }
}
