// One scan: list, picture, decisions, distribution.
import * as api from "./api.js";
import { chart, interval, tally } from "./chart.js";
import { Clock } from "./clock.js";
import { controls } from "./controls.js";
import { askHowMany, askRest, showHelp } from "./dialogs.js";
import { listenToKeys } from "./keys.js";
import { CandidateList } from "./list.js";
import { alarm, el, say } from "./markup.js";
import { Picture } from "./picture.js";
import * as settings from "./settings.js";
import { percent, plural, probability, size, VERDICTS, verdictWords } from "./words.js";

const painted = () => new Promise((resolve) => {
  requestAnimationFrame(() => {
    const channel = new MessageChannel();
    channel.port1.onmessage = resolve;
    channel.port2.postMessage(null);
  });
});

export class ScanView {
  constructor(scan, session, go) {
    this.scan = scan;
    this.session = session;
    this.go = go;
    this.settings = settings.load();
    this.clock = new Clock();
    this.work = Promise.resolve();
    this.isAdding = false;
    this.list = new CandidateList(scan, this.settings, session.blinded, (label) => this.choose(label));
    this.list.onSetting = () => this.keep();
    this.picture = new Picture(scan, this.settings, session.blinded, (voxel, label, isAdding) => this.picked(voxel, label, isAdding));
    this.count = el("section", { class: "distribution", "aria-label": "Number of lesions" });
    this.left = el("p", { class: "left", id: "left", role: "status" });
    this.about = el("div", { class: "about", id: "about" });
    this.stopKeys = listenToKeys(this.keys());
    this.redraw(scan);
  }

  /** The page of this scan, in the order in which the tab key goes through it. */
  node() {
    const verdict = (name) => el("button", { type: "button", class: `decide ${name}`, id: `decide-${name}`, onclick: (event) => this.press(name, event) }, VERDICTS[name].words, el("kbd", {}, VERDICTS[name].key));
    window.lesioncountReview.picture = this.picture;
    const seen = controls(this.picture, this.settings, { hasModel: !this.session.blinded, onSetting: () => this.keep(), onAdding: () => this.setAdding(!this.isAdding) });
    return el("div", { class: "scan" },
      el("section", { class: "picture", "aria-label": "Picture" }, this.picture.node, seen),
      el("div", { class: "side" },
        el("div", { class: "top" }, this.count, this.left),
        el("section", { class: "decisions", "aria-label": "Decision" }, this.about,
          el("div", { class: "verdicts" }, ["lesion", "none", "unsure", "several"].map(verdict)),
          el("div", { class: "steps" },
            el("button", { type: "button", id: "undo", onclick: () => this.undo() }, "Undo ", el("kbd", {}, "Z")),
            el("button", { type: "button", id: "next", onclick: () => this.step(1, true) }, "Next open ", el("kbd", {}, "Space")),
            el("label", { class: "check" }, el("input", { type: "checkbox", id: "goes-on", checked: this.settings.goesOn, onchange: (event) => { this.settings.goesOn = event.target.checked; this.keep(); } }), "go on by itself"))),
        this.list.node));
  }

  keys() {
    const toggle = (id) => () => document.getElementById(id)?.click();
    const actions = {
      l: (event) => this.press("lesion", event), n: (event) => this.press("none", event), u: (event) => this.press("unsure", event), m: (event) => this.press("several", event),
      z: () => this.undo(), Backspace: () => this.undo(), " ": () => this.step(1, true), j: () => this.step(1), k: () => this.step(-1), ArrowDown: () => this.step(1), ArrowUp: () => this.step(-1),
      c: () => this.choose(this.list.current), "]": () => this.slice(1), "[": () => this.slice(-1), PageUp: () => this.slice(1), PageDown: () => this.slice(-1), "+": () => this.zoom(1.25), "=": () => this.zoom(1.25), "-": () => this.zoom(0.8),
      o: toggle("outlines"), x: toggle("cross"), p: () => this.toggleMap(), a: () => this.setAdding(!this.isAdding), Escape: () => this.setAdding(false), d: () => this.finish(), b: () => this.go("#/"), "?": () => showHelp(),
      repeats: new Set(["j", "k", "ArrowDown", "ArrowUp", "[", "]", "PageUp", "PageDown", "+", "=", "-"]),
    };
    for (let n = 2; n <= 9; n += 1) actions[n] = (event) => this.decide("several", n, event);
    return actions;
  }

  /** Load the picture; the list can be used before it is there. */
  async open() {
    this.choose(this.list.next(1, true) ?? this.list.order[0]?.label);
    if (this.scan.is_list) return this.withoutPicture("These detections were counted without images. Look at the places of candidates in your own viewer; `lesioncount count --images` shows them here.");
    if (!this.session.has_viewer) return this.withoutPicture("The viewer is not part of this installation: in a clone, `make page` builds it. The list works without.");
    try {
      await this.picture.open();
    } catch (error) {
      return this.withoutPicture(`The picture cannot be shown (${error.message}). It needs a browser with WebGL 2.`);
    }
    if (!this.picture.viewer) return this.withoutPicture("There is no image to show for this scan: `lesioncount count --images` says where the images are.");
    this.choose(this.list.current);
    this.picture.onWindow();
    await painted();
    window.lesioncountReview.firstPicture = performance.now();
    await this.picture.loadRest();
    window.lesioncountReview.wholePicture = performance.now();
    return undefined;
  }

  withoutPicture(sentence) {
    this.picture.node.append(el("p", { class: "wait" }, sentence));
  }

  keep() {
    settings.keep(this.settings);
  }

  candidate(label) {
    return this.scan.candidates.find((one) => one.label === label);
  }

  choose(label) {
    if (label === undefined) return;
    this.list.choose(label);
    const one = label < 0 ? this.scan.added[-1 - label] : this.candidate(label);
    if (!one) return;
    this.picture.shown.current = label;
    this.picture.goTo(one.peak ?? one.at);
    this.describe(label < 0 ? null : one);
  }

  describe(one) {
    if (!one) return this.about.replaceChildren(el("h2", {}, "Lesion added by you"));
    const decision = this.scan.decisions[one.label];
    const facts = one.diameter_mm ? [size(one), `${one.volume_mm3.toFixed(0)} mm³`] : one.n_voxels === null ? [] : [plural(one.n_voxels, "voxel")];
    if (this.scan.is_list && one.centroid[0] !== null) facts.push(`at ${one.centroid.map((mm) => mm.toFixed(1)).join(", ")} RAS mm`);
    if (!this.session.blinded) facts.push(`existence ${probability(one.existence)}`, `${percent(one.variance_share)} of the variance`);
    for (const button of document.querySelectorAll(".decide")) button.setAttribute("aria-pressed", String(button.id === `decide-${decision?.verdict}`));
    return this.about.replaceChildren(el("h2", {}, `Candidate ${one.label}`, el("span", { class: "state", "data-verdict": decision?.verdict ?? "open" }, verdictWords(decision))), el("p", { class: "soft" }, facts.join(" · ")), this.others(one.label));
  }

  /** What other readers say, where this was asked for when the server was started. */
  others(label) {
    const said = Object.entries(this.scan.others ?? {}).map(([name, { decisions }]) => `${name}: ${verdictWords(decisions[label])}`);
    return said.length ? el("p", { class: "soft", id: "others" }, said.join(" · ")) : "";
  }

  step(by, onlyOpen = false) {
    const label = this.list.next(by, onlyOpen);
    if (label === undefined) say("No candidate is left without a decision.");
    this.choose(label);
  }

  slice(by) {
    this.picture.scroll(this.picture.planes?.[0]?.fixed ?? 2, by);
  }

  zoom(factor) {
    this.picture.setZoom(this.settings.zoom * factor);
    this.picture.onZoom?.();
    this.keep();
  }

  toggleMap() {
    this.before = this.settings.opacity || this.before || 0.35;
    const opacity = this.settings.opacity ? 0 : this.before;
    this.picture.setOpacity(opacity);
    const input = document.getElementById("opacity");
    if (input) input.value = opacity;
    this.keep();
  }

  setAdding(isAdding) {
    if (this.scan.is_list) return isAdding ? this.add([0, 0, 0]) : undefined; // there is nowhere to click
    this.isAdding = isAdding;
    document.getElementById("add")?.setAttribute("aria-pressed", String(isAdding));
    this.picture.node.classList.toggle("adding", isAdding);
    if (isAdding) say("Click in the picture where the lesion is. Escape ends this.");
    return undefined;
  }

  picked(voxel, label, isAdding) {
    if (isAdding || this.isAdding) return this.add(voxel);
    const one = this.candidate(label);
    if (!one) return undefined;
    this.list.choose(label);
    this.picture.shown.current = label;
    this.picture.draw();
    return this.describe(one);
  }

  shown() {
    const { outlines, opacity, zoom, sort } = this.settings;
    return { at: this.picture.shown.at.slice(0, this.scan.shape.length), outlines: outlines && !this.session.blinded, map_opacity: this.picture.map ? opacity : 0, window: this.picture.window, zoom, sort, existence: !this.session.blinded };
  }

  async press(verdict, event) {
    const before = this.scan.decisions[this.list.current];
    const n = verdict === "several" ? await askHowMany(before?.n) : undefined;
    if (n !== null) this.decide(verdict, n, n === undefined ? event : null);
  }

  /** One after the other: a key that is pressed while a decision is being saved waits for it. */
  queue(work) {
    this.work = this.work.then(work).catch((error) => {
      alarm(error.message);
      this.describe(this.candidate(this.list.current));
    });
    return this.work;
  }

  decide(verdict, n, event) {
    const pressed = event?.timeStamp ?? performance.now();
    return this.queue(async () => {
      const label = this.list.current;
      if (!this.candidate(label)) return;
      const begun = Math.max(pressed, this.answered ?? 0); // of its own, not of the decision that it waited for
      const decision = { candidate: label, verdict, seconds: this.clock.take(), shown: this.shown() };
      if (n !== undefined) decision.n = n;
      const answer = await api.decide(this.scan.id, decision);
      this.redraw(answer);
      this.list.update(label);
      this.describe(this.candidate(label));
      await painted();
      this.answered = performance.now();
      window.lesioncountReview.redraws.push(this.answered - begun);
      const distribution = answer.distribution ? ` Count ${interval(answer.distribution)}.` : "";
      say(`Candidate ${label}: ${verdictWords(answer.decisions[label])}.${distribution}`);
      if (this.settings.goesOn) this.step(1, true);
      else this.picture.draw();
    });
  }

  add(at) {
    return this.queue(async () => {
      const answer = await api.add(this.scan.id, { at: at.slice(0, this.scan.shape.length), seconds: this.clock.take(), shown: this.shown() });
      this.setAdding(false);
      this.redraw(answer);
      this.list.refresh();
      this.choose(-this.scan.added.length);
      say(`Lesion added; ${plural(this.scan.added.length, "lesion")} added to this scan.`);
    });
  }

  undo() {
    return this.queue(async () => {
      const before = { ...this.scan.decisions };
      const answer = await api.undo(this.scan.id);
      const changed = Object.keys({ ...before, ...answer.decisions }).find((label) => JSON.stringify(before[label]) !== JSON.stringify(answer.decisions[label]));
      this.redraw(answer);
      this.list.refresh();
      this.choose(changed ? Number(changed) : this.list.current < 0 ? this.list.next(1) : this.list.current);
      say(changed ? `The decision on candidate ${changed} is taken back.` : "Taken back.");
    });
  }

  finish() {
    return this.queue(async () => {
      const ending = { done: !this.scan.is_done };
      const open = this.scan.candidates.filter((one) => !this.scan.decisions[one.label]).length;
      if (ending.done && open) {
        const rest = await askRest(open);
        if (!rest) return;
        if (rest === "none") ending.rest = "none";
      }
      const answer = await api.finish(this.scan.id, { ...ending, seconds: this.clock.take() });
      this.redraw(answer);
      this.list.refresh();
      if (this.scan.is_done) this.go("next");
    });
  }

  /** Take over what the server says, and draw the count. */
  redraw({ decisions, added, distribution, left, is_done }) {
    Object.assign(this.scan, { decisions, added, distribution, left, is_done });
    Object.assign(this.picture.shown, { decisions, added });
    this.count.replaceChildren(...(distribution && !this.session.blinded ? chart(distribution) : tally(decisions, added)));
    this.left.textContent = (!this.session.blinded && left?.sentence) || "";
    const decided = Object.keys(decisions).length;
    this.onProgress?.(decided, this.scan.candidates.length, is_done);
  }

  close() {
    this.stopKeys();
    this.clock.close();
    this.picture.close();
  }
}
