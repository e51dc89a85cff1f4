// Elements from a tag, attributes and children. Text is always text: nothing from a server becomes markup.
const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export const el = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
export const svg = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

/** Tell a screen reader, without moving the focus. */
export function say(sentence) {
  document.getElementById("says").textContent = sentence;
}

/** A sentence above the page until it is taken away with null. */
export function alarm(sentence) {
  const box = document.getElementById("alarm");
  box.hidden = !sentence;
  box.textContent = sentence ?? "";
}
