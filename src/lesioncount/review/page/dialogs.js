// Dialogs: who reads, how many, which keys. The browser keeps the focus inside and gives it back.
import { el } from "./markup.js";

function open(node, isRefusable = true) {
  document.body.append(node);
  if (!isRefusable) node.addEventListener("cancel", (event) => event.preventDefault());
  node.showModal();
  return new Promise((resolve) => {
    node.addEventListener("close", () => {
      node.remove();
      resolve(node.returnValue);
    });
  });
}

/** The name of the reader, asked until there is one. */
export async function askReader() {
  const input = el("input", { id: "reader-name", required: true, maxlength: "80", autocomplete: "off", autofocus: true });
  const form = el("form", { method: "dialog" },
    el("h2", { id: "reader-title" }, "Who is reading?"),
    el("p", {}, "Decisions are kept under this name, apart from those of other readers."),
    el("label", { class: "field" }, "Name or initials", input),
    el("p", { class: "buttons" }, el("button", { class: "main", value: "ok" }, "Begin")));
  await open(el("dialog", { "aria-labelledby": "reader-title", id: "reader-dialog" }, form), false);
  return input.value.trim();
}

/** How many lesions one candidate is made of; null when the reader thinks better of it. */
export async function askHowMany(before) {
  const input = el("input", { id: "how-many", type: "number", min: "2", max: "99", value: `${before ?? 2}`, required: true, autofocus: true });
  const form = el("form", { method: "dialog" },
    el("h2", { id: "many-title" }, "How many lesions are merged here?"),
    el("label", { class: "field" }, "Number of lesions", input),
    el("p", { class: "buttons" }, el("button", { class: "main", value: "ok" }, "Keep"), el("button", { value: "", formnovalidate: true }, "Cancel")));
  const answer = await open(el("dialog", { "aria-labelledby": "many-title" }, form));
  return answer === "ok" ? Number(input.value) : null;
}

/** What becomes of candidates without a decision: "none", "open", or null to go on looking. */
export async function askRest(n) {
  const form = el("form", { method: "dialog" },
    el("h2", { id: "rest-title" }, n === 1 ? "One candidate is not decided" : `${n} candidates are not decided`),
    el("p", {}, "If you have looked at the whole scan and they are no lesions, the review is complete and can be taken as truth. Otherwise they keep their probabilities."),
    el("p", { class: "buttons" },
      el("button", { class: "main", value: "none", id: "rest-none" }, "They are no lesions"),
      el("button", { value: "open", id: "rest-open" }, "Leave them open"),
      el("button", { value: "", id: "rest-back", autofocus: true }, "Go back")));
  return (await open(el("dialog", { "aria-labelledby": "rest-title", id: "rest" }, form))) || null;
}

const KEYS = [
  ["L", "lesion"], ["N", "not a lesion"], ["U", "unsure"], ["2 … 9", "several lesions: as many as the digit says"], ["M", "several lesions: asks how many"],
  ["Z", "undo the last decision"], ["↓ or J, ↑ or K", "next, previous candidate"], ["Space", "next candidate without a decision"], ["C", "back to the candidate"],
  ["] and [", "next, previous slice"], ["+ and −", "zoom in, out"], ["O", "outlines on or off"], ["P", "map on or off"], ["X", "crosshair on or off"],
  ["A", "add a lesion: then click in the picture (or Shift + click)"], ["D", "the scan is done: go on to the next"], ["B", "back to the scans"], ["?", "this page"],
];
const MOUSE = [
  ["wheel", "slices"], ["Ctrl + wheel, pinch", "zoom"], ["click", "go there; choose the candidate there"], ["right button, drag", "window and level"], ["Shift + click", "add a lesion there"],
];

export function showHelp() {
  const table = (rows, caption) => el("table", {}, el("caption", {}, caption), el("tbody", {}, rows.map(([key, does]) => el("tr", {}, el("th", { scope: "row" }, el("kbd", {}, key)), el("td", {}, does)))));
  const form = el("form", { method: "dialog" },
    el("h2", { id: "help-title" }, "Keys"),
    el("div", { class: "two" }, table(KEYS, "Keyboard"), el("div", {}, table(MOUSE, "Mouse and fingers"),
      el("ul", { class: "legend" }, [["current", "the candidate you are asked about"], ["open", "not decided yet"], ["lesion", "lesion"], ["none", "not a lesion"], ["unsure", "unsure"]].map(([kind, words]) => el("li", {}, el("i", { class: `line ${kind}` }), words))))),
    el("p", { class: "buttons" }, el("button", { class: "main", autofocus: true }, "Close")));
  return open(el("dialog", { "aria-labelledby": "help-title", class: "help", id: "help" }, form));
}
