// The page of `lesioncount review`: who reads, then all scans or one.
import * as api from "./api.js";
import { cohortNode, nextScan } from "./cohort.js";
import { askReader, showHelp } from "./dialogs.js";
import { alarm, el } from "./markup.js";
import { warm } from "./picture.js";
import { ScanView } from "./scan.js";
import { bytesOf, keepOnly } from "./volumes.js";
import { plural } from "./words.js";

// For tests and the curious: the picture, when it was first seen, and how long each decision took until it was drawn (ms).
window.lesioncountReview = { redraws: [], firstPicture: null, wholePicture: null, picture: null };

const SCAN = /^#\/scan\/(\d+)$/;
const main = document.getElementById("main");
const bar = document.getElementById("bar");
const begun = api.session();
let session;
let view = null;
let visit = 0;

async function reader() {
  session = await begun;
  while (!session.reader) {
    const name = await askReader();
    if (name) session = await api.setReader(name).catch(() => session);
  }
}

function header(...middle) {
  bar.replaceChildren(
    el("a", { class: "home", href: "#/" }, "lesioncount ", el("b", {}, "review")), ...middle,
    el("span", { class: "who" }, session.blinded ? el("span", { class: "tag" }, "blinded") : "", el("span", { id: "reader" }, session.reader)),
    el("button", { type: "button", id: "help-button", onclick: showHelp }, "Keys ", el("kbd", {}, "?")));
}

/** The image of the scan that is most likely the next. */
function fetchAhead(cohort, id) {
  const next = cohort.scans.find((scan) => scan.id === id);
  if (next?.has_image) bytesOf(id, "image").catch(() => null);
}

async function showCohort() {
  const cohort = await api.cohort();
  return () => {
    header();
    document.title = "lesioncount review";
    fetchAhead(cohort, nextScan(cohort));
    main.replaceChildren(cohortNode(cohort, session));
  };
}

function scanHeader(scan, cohort) {
  const place = cohort.order.indexOf(scan.id);
  const other = (by, words, sign) => {
    const id = cohort.order[place + by];
    return id === undefined ? null : el("a", { class: "button small", href: `#/scan/${id}`, "aria-label": words, title: words }, sign);
  };
  const bars = el("progress", { "aria-label": "Candidates decided" });
  const words = el("span", { class: "soft", id: "progress" });
  const done = el("button", { type: "button", id: "done", onclick: () => view.finish() });
  header(el("nav", { class: "scan-nav", "aria-label": "Scans" }, other(-1, "Scan before", "‹"), el("h1", { title: scan.name }, scan.name), other(1, "Scan after", "›")),
    el("span", { class: "progress" }, bars, words), done);
  view.onProgress = (decided, n, isDone) => {
    bars.max = Math.max(n, 1);
    bars.value = decided;
    words.textContent = `${decided} of ${plural(n, "candidate")}`;
    done.replaceChildren(isDone ? "Done: open again " : "Scan is done ", el("kbd", {}, "D"));
  };
}

async function showScan(id) {
  const [scan, cohort] = await Promise.all([api.scan(id), api.cohort()]);
  const go = (where) => {
    const next = where === "next" ? nextScan(cohort, id) : undefined;
    location.hash = where === "next" ? (next === undefined ? "#/" : `#/scan/${next}`) : where;
  };
  return async () => {
    view = new ScanView(scan, session, go);
    scanHeader(scan, cohort);
    document.title = `${scan.name} – lesioncount review`;
    main.replaceChildren(view.node());
    view.redraw(scan);
    const next = nextScan(cohort, id);
    keepOnly([id, next]);
    await view.open();
    fetchAhead(cohort, next);
  };
}

async function route() {
  visit += 1;
  const mine = visit;
  const found = SCAN.exec(location.hash);
  try {
    const show = await (found ? showScan(Number(found[1])) : showCohort());
    if (mine !== visit) return;
    view?.close();
    view = null;
    await show();
  } catch (error) {
    alarm(error.message);
    if (!main.querySelector(".scan, .cohort")) main.replaceChildren(el("p", { class: "wait" }, "Nothing to show."));
  }
}

window.addEventListener("hashchange", route);
document.getElementById("skip").addEventListener("click", () => (document.getElementById("list") ?? main).focus());
document.addEventListener("keydown", (event) => {
  if (event.key === "?" && !view && !document.querySelector("dialog[open]") && !event.target.matches("input")) showHelp();
});
// Everything the first picture needs sets out at the same time: nothing waits for anything else.
const wanted = SCAN.exec(location.hash);
if (wanted) bytesOf(Number(wanted[1]), "image").catch(() => null);
begun.then(() => warm()).catch(() => null); // what fails is told when a picture is asked for
await reader().catch(() => undefined);
if (session) await route();
