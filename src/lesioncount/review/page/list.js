// The list of candidates: one box with one tab stop; the chosen row is the candidate in the picture.
import { el } from "./markup.js";
import { percent, plural, probability, size, VERDICTS, verdictWords } from "./words.js";

const known = (value) => value ?? -Infinity;
export const SORTS = {
  share: { words: "matters most", by: (a, b) => known(b.variance_share) - known(a.variance_share) || known(b.existence) - known(a.existence) || a.label - b.label },
  size: { words: "largest first", by: (a, b) => known(b.volume_mm3 ?? b.n_voxels) - known(a.volume_mm3 ?? a.n_voxels) || a.label - b.label },
  surest: { words: "surest first", by: (a, b) => known(b.existence) - known(a.existence) || a.label - b.label },
  doubtful: { words: "least sure first", by: (a, b) => known(a.existence) - known(b.existence) || a.label - b.label },
  place: { words: "from below", by: (a, b) => (a.peak.at(-1) - b.peak.at(-1)) || a.label - b.label },
  label: { words: "number", by: (a, b) => a.label - b.label },
};
export const FILTERS = {
  all: { words: "all", has: () => true },
  open: { words: "not decided yet", has: (_, decision) => !decision },
  decided: { words: "decided", has: (_, decision) => Boolean(decision) },
  doubtful: { words: "doubtful, .05 to .95", has: (one) => one.existence > 0.05 && one.existence < 0.95, model: true },
  sure: { words: "sure, from .95", has: (one) => one.existence >= 0.95, model: true },
  lesion: { words: "lesions", has: (_, decision) => ["lesion", "several"].includes(decision?.verdict) },
  none: { words: "not lesions", has: (_, decision) => decision?.verdict === "none" },
  unsure: { words: "unsure", has: (_, decision) => decision?.verdict === "unsure" },
};

function bar(value) {
  const inner = el("i", {});
  inner.style.width = `${100 * (value ?? 0)}%`;
  return el("span", { class: "meter", "aria-hidden": "true" }, inner);
}

export class CandidateList {
  constructor(scan, settings, isBlinded, onChoose) {
    this.scan = scan;
    this.settings = settings;
    this.isBlinded = isBlinded;
    this.rows = new Map();
    this.head = el("p", { class: "columns", "aria-hidden": "true" }, el("span", {}, "no."), isBlinded ? "" : el("span", {}, "existence"), el("span", {}, "size"), isBlinded ? "" : el("span", {}, "matters"), el("span", {}, "decision"));
    this.box = el("ul", { class: "list", role: "listbox", tabindex: "0", id: "list", "aria-label": "Candidates" });
    this.box.addEventListener("click", (event) => {
      const row = event.target.closest("[data-label]");
      if (row) onChoose(Number(row.dataset.label));
    });
    this.tell = el("p", { class: "soft", id: "shown" });
    this.node = el("section", { class: `candidates${isBlinded ? " blinded" : ""}`, "aria-labelledby": "list-title" }, this.bar(), this.head, this.box, this.tell);
    this.refresh();
  }

  bar() {
    const option = (chosen) => ([name, { words }]) => el("option", { value: name, selected: name === chosen }, words);
    const offered = (table) => Object.entries(table).filter(([name, { model }]) => !this.isBlinded || !(model || ["share", "surest", "doubtful"].includes(name)));
    if (this.isBlinded) this.settings = { ...this.settings, sort: "label", show: FILTERS[this.settings.show]?.model ? "all" : this.settings.show };
    const choose = (what) => (event) => {
      this.settings[what] = event.target.value;
      this.refresh();
      this.onSetting?.();
    };
    return el("div", { class: "list-bar" },
      el("h2", { id: "list-title" }, "Candidates"),
      el("label", {}, "Sort ", el("select", { id: "sort", onchange: choose("sort") }, offered(SORTS).map(option(this.settings.sort)))),
      el("label", {}, "Show ", el("select", { id: "filter", onchange: choose("show") }, offered(FILTERS).map(option(this.settings.show)))));
  }

  /** Sort, filter and draw all rows. */
  refresh() {
    const { decisions } = this.scan;
    const keep = (FILTERS[this.settings.show] ?? FILTERS.all).has;
    const sorted = [...this.scan.candidates].sort((SORTS[this.settings.sort] ?? SORTS.share).by);
    this.order = sorted.filter((one) => keep(one, decisions[one.label]));
    this.rows = new Map(this.order.map((one) => [one.label, this.row(one)]));
    this.box.replaceChildren(...this.rows.values(), ...this.scan.added.map((one, index) => this.addedRow(one, index)));
    const { length } = this.scan.candidates;
    this.tell.textContent = this.order.length === length ? plural(length, "candidate") : `${this.order.length} of ${plural(length, "candidate")}`;
    if (this.scan.added.length) this.tell.textContent += `, ${plural(this.scan.added.length, "lesion")} added by you`;
    this.choose(this.current);
  }

  row(one) {
    const row = el("li", { role: "option", id: `row-${one.label}`, "data-label": one.label, "aria-selected": "false" });
    this.write(row, one);
    return row;
  }

  write(row, one) {
    const decision = this.scan.decisions[one.label];
    row.dataset.verdict = decision?.verdict ?? "open";
    row.replaceChildren(
      el("span", { class: "no" }, `${one.label}`),
      this.isBlinded ? "" : el("span", { class: "existence" }, bar(one.existence), probability(one.existence)),
      el("span", {}, size(one)),
      this.isBlinded ? "" : el("span", {}, percent(one.variance_share)),
      el("span", { class: "verdict" }, decision ? `${VERDICTS[decision.verdict].sign} ` : "", verdictWords(decision)));
  }

  addedRow(one, index) {
    return el("li", { role: "option", class: "added", "data-label": -1 - index, id: `row-${-1 - index}`, "aria-selected": "false", "data-verdict": "lesion" },
      el("span", { class: "no" }, `+${index + 1}`), el("span", { class: "wide" }, "added by you"), el("span", { class: "verdict" }, "✓ lesion"));
  }

  /** Write one row anew; it stays where it is, so that the list does not jump under the reader. */
  update(label) {
    const one = this.scan.candidates.find((candidate) => candidate.label === label);
    const row = this.rows.get(label);
    if (one && row) this.write(row, one);
  }

  choose(label) {
    this.current = label;
    for (const row of this.box.querySelectorAll("[aria-selected=true]")) row.setAttribute("aria-selected", "false");
    const row = document.getElementById(`row-${label}`) ?? this.rows.get(label);
    if (!row) return this.box.removeAttribute("aria-activedescendant");
    row.setAttribute("aria-selected", "true");
    this.box.setAttribute("aria-activedescendant", row.id);
    return row.scrollIntoView({ block: "nearest" });
  }

  /** The candidate `step` places on, or the next undecided one. */
  next(step, onlyOpen = false) {
    const n = this.order.length;
    const here = this.order.findIndex((one) => one.label === this.current);
    if (!onlyOpen) return this.order[Math.min(n - 1, Math.max(0, here + step))]?.label;
    for (let away = 1; away <= n; away += 1) {
      const one = this.order[(here + away + n) % n];
      if (!this.scan.decisions[one.label]) return one.label;
    }
    return undefined;
  }
}
