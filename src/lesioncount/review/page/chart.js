// The distribution of the count, as bars. Drawn anew after each decision.
import { el, svg } from "./markup.js";
import { decimal } from "./words.js";

const WIDTH = 380;
const HEIGHT = 120;
const FLOOR = 100; // where the bars stand
const SEEN = 0.002; // of the largest probability: what is lower cannot be seen

function visible({ first, pmf }) {
  const least = SEEN * Math.max(...pmf);
  let low = pmf.findIndex((p) => p >= least);
  let high = pmf.findLastIndex((p) => p >= least);
  while (high - low < 6) {
    if (first + low > 0) low -= 1;
    high += 1;
  }
  return [first + low, first + high];
}

function ticks(low, high) {
  const steps = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000];
  const step = steps.find((size) => (high - low) / size <= 9) ?? 2000;
  const found = [];
  for (let count = Math.ceil(low / step) * step; count <= high; count += step) found.push(count);
  return found;
}

function bars(distribution, low, high) {
  const { first, pmf, low90, high90, mode } = distribution;
  const most = Math.max(...pmf);
  const step = WIDTH / (high - low + 1);
  const gap = Math.min(2, step / 5);
  const drawn = [];
  for (let count = low; count <= high; count += 1) {
    const height = ((pmf[count - first] ?? 0) / most) * (FLOOR - 8);
    const kind = count === mode ? "mode" : count >= low90 && count <= high90 ? "inside" : "outside";
    const box = { x: (count - low) * step + gap / 2, y: FLOOR - height, width: step - gap, height };
    drawn.push(svg("rect", { ...box, class: kind }, svg("title", {}, `${count}: ${((pmf[count - first] ?? 0) * 100).toFixed(1)} %`)));
  }
  for (const count of ticks(low, high)) {
    const x = (count - low + 0.5) * step;
    drawn.push(svg("text", { x, y: FLOOR + 15, "text-anchor": "middle" }, `${count}`));
  }
  return drawn;
}

export function interval({ low90, high90 }) {
  return low90 === high90 ? `${low90}` : `${low90} to ${high90}`;
}

/** The chart and the numbers above it. */
export function chart(distribution) {
  const [low, high] = visible(distribution);
  const sentence = `Most likely ${distribution.mode} lesions; ${interval(distribution)} with 90 percent probability.`;
  return [
    el("div", { class: "numbers" },
      el("p", { class: "count" }, el("b", { id: "mode" }, `${distribution.mode}`), el("span", {}, "most likely")),
      el("p", {}, el("b", { id: "interval" }, interval(distribution).replace(" to ", "–")), el("span", {}, "90 % interval")),
      el("p", {}, el("b", { id: "mean" }, decimal(distribution.mean)), el("span", {}, `mean, ± ${decimal(distribution.sd)}`))),
    svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "chart", role: "img", "aria-label": sentence },
      svg("line", { x1: 0, x2: WIDTH, y1: FLOOR + 0.5, y2: FLOOR + 0.5 }), bars(distribution, low, high)),
  ];
}

/** While a reader is blinded: only what the reader said. */
export function tally(decisions, added) {
  const lesions = Object.values(decisions).reduce((sum, one) => sum + (one.verdict === "lesion" ? 1 : one.verdict === "several" ? one.n : 0), added.length);
  return [
    el("div", { class: "numbers" },
      el("p", { class: "count" }, el("b", { id: "accepted" }, `${lesions}`), el("span", {}, "lesions you have accepted"))),
    el("p", { class: "soft" }, "Blinded: probabilities, outlines and the distribution are hidden."),
  ];
}
