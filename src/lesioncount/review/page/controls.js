// Under the picture: window, level, map, zoom, and what is drawn.
import { el } from "./markup.js";

function slider(words, id, { min, max, step, value }, change) {
  return el("label", { class: "slider" }, el("span", {}, words), el("input", { type: "range", id, min, max, step, value, oninput: (event) => change(Number(event.target.value)) }));
}

function check(words, id, isOn, key, change) {
  return el("label", { class: "check" }, el("input", { type: "checkbox", id, checked: isOn, onchange: (event) => change(event.target.checked) }), `${words} `, el("kbd", {}, key));
}

export function controls(picture, settings, { onSetting, hasModel, onAdding }) {
  const unit = 1000;
  const set = (id, value) => {
    const input = document.getElementById(id);
    if (input) input.value = value;
  };
  const level = () => {
    const [low, high] = picture.window;
    const [least, most] = picture.range;
    return [((low + high) / 2 - least) / (most - least), (high - low) / (most - least)];
  };
  const change = (which) => (value) => {
    if (!picture.window) return;
    const [least, most] = picture.range;
    const now = level();
    now[which] = value / unit;
    const [middle, half] = [least + now[0] * (most - least), (now[1] * (most - least)) / 2];
    picture.setWindow(middle - half, middle + half);
  };
  const show = (what) => (isOn) => {
    settings[what] = isOn;
    picture.draw();
    onSetting();
  };
  picture.onWindow = () => {
    const [middle, width] = level();
    set("level", middle * unit);
    set("window", width * unit);
  };
  picture.onZoom = () => set("zoom", settings.zoom);
  const range = { min: 0, max: unit, step: 1, value: unit / 2 };
  const add = el("button", { type: "button", id: "add", "aria-pressed": "false", onclick: onAdding }, "Add a lesion ", el("kbd", {}, "A"));
  if (picture.scan.is_list) return el("div", { class: "controls" }, add);
  return el("div", { class: "controls", role: "group", "aria-label": "Picture" },
    slider("Level", "level", range, change(0)),
    slider("Window", "window", { ...range, min: 5 }, change(1)),
    slider("Zoom", "zoom", { min: 1, max: 10, step: 0.1, value: settings.zoom }, (value) => { picture.setZoom(value); onSetting(); }),
    hasModel && picture.scan.has_image && slider("Map", "opacity", { min: 0, max: 1, step: 0.05, value: settings.opacity }, (value) => { picture.setOpacity(value); onSetting(); }),
    hasModel && check("Outlines", "outlines", settings.outlines, "O", show("outlines")),
    check("Crosshair", "cross", settings.cross, "X", show("cross")),
    add);
}
