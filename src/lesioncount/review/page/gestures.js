// Mouse, wheel and fingers on the picture.
const STILL = 5; // pixels: a click may tremble

export function listen(picture) {
  picture.stop = new AbortController();
  const { top } = picture;
  const fingers = new Map();
  let drag = null;

  const place = (event) => {
    const box = top.getBoundingClientRect();
    return [(event.clientX - box.left) * picture.scale, (event.clientY - box.top) * picture.scale];
  };
  const spread = () => {
    const [a, b] = [...fingers.values()];
    return Math.hypot(a[0] - b[0], a[1] - b[1]);
  };

  function down(event) {
    top.setPointerCapture(event.pointerId);
    fingers.set(event.pointerId, place(event));
    if (fingers.size === 2) drag = { kind: "pinch", spread: spread(), zoom: picture.settings.zoom };
    else {
      const kind = event.button === 2 ? "window" : "move";
      drag = { kind, from: place(event), last: place(event), moved: false, window: picture.window, plane: picture.planeAt(...place(event)) };
    }
  }

  function move(event) {
    if (!drag || !fingers.has(event.pointerId)) return;
    fingers.set(event.pointerId, place(event));
    if (drag.kind === "pinch") {
      if (fingers.size === 2) picture.setZoom((drag.zoom * spread()) / drag.spread);
      return;
    }
    const [x, y] = place(event);
    const [dx, dy] = [x - drag.from[0], y - drag.from[1]];
    drag.moved ||= Math.hypot(dx, dy) > STILL * picture.scale;
    if (!drag.moved) return;
    if (drag.kind === "window") changeWindow(dx, dy);
    else if (event.pointerType === "touch") scrollBy(y);
    else picture.follow(x, y, drag.plane);
  }

  // A finger that moves up or down scrolls; a mouse has its wheel for that.
  function scrollBy(y) {
    const steps = Math.trunc((drag.last[1] - y) / (6 * picture.scale));
    if (!steps || !drag.plane) return;
    drag.last[1] = y;
    picture.scroll(drag.plane.fixed, steps);
  }

  function changeWindow(dx, dy) {
    const [low, high] = drag.window;
    const unit = (picture.range[1] - picture.range[0]) / (400 * picture.scale);
    const [level, half] = [(low + high) / 2 + dy * unit, Math.max((high - low) / 2 + dx * unit, unit)];
    picture.setWindow(level - half, level + half);
    picture.onWindow?.();
  }

  function up(event) {
    fingers.delete(event.pointerId);
    if (drag && drag.kind === "move" && !drag.moved && event.type === "pointerup") picture.pick(...place(event), event.shiftKey);
    if (!fingers.size) drag = null;
  }

  function wheel(event) {
    event.preventDefault();
    const plane = picture.planeAt(...place(event));
    if (!plane) return;
    if (event.ctrlKey || event.metaKey) {
      picture.setZoom(picture.settings.zoom * (event.deltaY < 0 ? 1.15 : 1 / 1.15));
      picture.onZoom?.();
    } else picture.scroll(plane.fixed, event.deltaY < 0 ? 1 : -1);
  }

  const options = { signal: picture.stop.signal };
  top.addEventListener("pointerdown", down, options);
  top.addEventListener("pointermove", move, options);
  top.addEventListener("pointerup", up, options);
  top.addEventListener("pointercancel", up, options);
  top.addEventListener("wheel", wheel, { ...options, passive: false });
  top.addEventListener("contextmenu", (event) => event.preventDefault(), options);
}
