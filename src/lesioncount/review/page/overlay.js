// What is drawn over the picture: outlines, the crosshair, added lesions, sides, and a scale.
import { heat } from "./heat.js";
import { outlines } from "./labels.js";

const COLOURS = {
  open: { stroke: "#56b4e9", dash: [] },
  lesion: { stroke: "#2fbf71", dash: [] },
  several: { stroke: "#2fbf71", dash: [] },
  none: { stroke: "#9aa3ab", dash: [2, 3] },
  unsure: { stroke: "#f0c419", dash: [5, 3] },
};
const CURRENT = "#ff7f1f";

function trace(context, edges, { x, y }) {
  context.beginPath();
  for (let i = 0; i < edges.length; i += 4) {
    context.moveTo(x.start + edges[i] * x.step, y.start + edges[i + 1] * y.step);
    context.lineTo(x.start + edges[i + 2] * x.step, y.start + edges[i + 3] * y.step);
  }
  context.stroke();
}

function drawMap(context, plane, { map, at, opacity }) {
  const slice = heat(map, plane.fixed, at[plane.fixed], plane.across, plane.along);
  if (!slice) return;
  const { x, y } = plane;
  context.save();
  context.globalAlpha = opacity;
  context.imageSmoothingEnabled = false;
  context.transform(x.step, 0, 0, y.step, x.start, y.start); // turns the slice as the display does
  context.drawImage(slice, 0, 0);
  context.restore();
}

function drawOutlines(context, plane, { labels, at, current, decisions }, scale) {
  const found = outlines(labels, plane.fixed, at[plane.fixed], plane.across, plane.along);
  for (const [label, edges] of found) {
    if (label === current) continue;
    const look = COLOURS[decisions[label]?.verdict ?? "open"];
    context.strokeStyle = look.stroke;
    context.setLineDash(look.dash.map((length) => length * scale));
    context.lineWidth = 1.2 * scale;
    trace(context, edges, plane);
  }
  context.setLineDash([]);
  if (!found.has(current)) return;
  context.lineWidth = 4 * scale;
  context.strokeStyle = "rgba(0, 0, 0, .55)";
  trace(context, found.get(current), plane);
  context.lineWidth = 2 * scale;
  context.strokeStyle = CURRENT;
  trace(context, found.get(current), plane);
}

function drawCross(context, plane, at, scale, hasOutlines) {
  const [left, top, width, height] = plane.box;
  const [x, y] = plane.pixel(at);
  const gap = 16 * scale;
  context.strokeStyle = "rgba(255, 255, 255, .5)";
  context.lineWidth = scale;
  context.beginPath();
  for (const [x0, y0, x1, y1] of [[left, y, x - gap, y], [x + gap, y, left + width, y], [x, top, x, y - gap], [x, y + gap, x, top + height]]) {
    if (x1 <= x0 && y1 <= y0) continue;
    context.moveTo(x0, y0);
    context.lineTo(x1, y1);
  }
  context.stroke();
  if (hasOutlines) return;
  context.strokeStyle = CURRENT; // without outlines, a ring says which one is meant
  context.beginPath();
  context.arc(x, y, gap, 0, 2 * Math.PI);
  context.stroke();
}

function drawAdded(context, plane, { added, at }, scale) {
  for (const lesion of added) {
    const spot = [...lesion.at, 0].slice(0, 3);
    const away = Math.abs(spot[plane.fixed] - at[plane.fixed]);
    if (away > 2) continue;
    const [x, y] = plane.pixel(spot);
    context.globalAlpha = 1 - 0.3 * away;
    context.strokeStyle = "#2fbf71";
    context.lineWidth = 2 * scale;
    context.beginPath();
    context.arc(x, y, 8 * scale, 0, 2 * Math.PI);
    context.moveTo(x - 4 * scale, y);
    context.lineTo(x + 4 * scale, y);
    context.moveTo(x, y - 4 * scale);
    context.lineTo(x, y + 4 * scale);
    context.stroke();
    context.globalAlpha = 1;
  }
}

function write(context, text, x, y, align = "center") {
  context.textAlign = align;
  context.lineWidth = 3;
  context.strokeStyle = "rgba(0, 0, 0, .8)";
  context.strokeText(text, x, y);
  context.fillText(text, x, y);
}

function drawLetters(context, plane, { at, spacing, isOriented }, scale) {
  const [left, top, width, height] = plane.box;
  const edge = 12 * scale;
  context.font = `${12 * scale}px system-ui, sans-serif`;
  context.textBaseline = "middle";
  context.fillStyle = "#e8ecef";
  if (isOriented) {
    write(context, plane.letters[0], left + edge, top + height / 2);
    write(context, plane.letters[1], left + width - edge, top + height / 2);
    write(context, plane.letters[2], left + width / 2, top + height - edge);
    write(context, plane.letters[3], left + width / 2, top + edge);
  }
  const name = isOriented ? ["axial", "coronal", "sagittal"][plane.kind] : "slice";
  write(context, `${name} ${at[plane.fixed] + 1}`, left + edge / 2, top + edge, "left");
  const pixels = spacing ? (Math.abs(plane.x.step) / spacing[plane.across]) * 10 : 0;
  if (!pixels || pixels > width / 2) return;
  context.fillRect(left + width - edge - pixels, top + height - edge, pixels, 2 * scale);
  write(context, "10 mm", left + width - edge, top + height - 1.9 * edge, "right");
}

/** Draw all of it. `shown` has: labels, map, opacity, at, current, decisions, added, spacing, isOriented, hasOutlines, hasCross. */
export function drawOverlay(canvas, planes, shown, scale) {
  const context = canvas.getContext("2d");
  context.clearRect(0, 0, canvas.width, canvas.height);
  for (const plane of planes) {
    context.save();
    context.beginPath();
    context.rect(...plane.box);
    context.clip();
    if (shown.map && shown.opacity > 0) drawMap(context, plane, shown);
    const hasOutlines = shown.hasOutlines && shown.labels !== null;
    if (hasOutlines) drawOutlines(context, plane, shown, scale);
    if (shown.hasCross) drawCross(context, plane, shown.at, scale, hasOutlines);
    drawAdded(context, plane, shown, scale);
    if (planes.length > 1 || shown.spacing) drawLetters(context, plane, shown, scale);
    context.restore();
  }
}
