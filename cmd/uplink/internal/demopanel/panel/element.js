// element makes an element with properties, attributes and children, of which strings are text.
export function element(name, properties = {}, ...children) {
  const e = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key in e) {
      e[key] = value;
    } else {
      e.setAttribute(key, value);
    }
  }
  e.append(...children);
  return e;
}
