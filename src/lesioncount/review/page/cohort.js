// All scans, in the order in which a review tells most.
import * as api from "./api.js";
import { alarm, el, say } from "./markup.js";
import { decimal, duration, plural } from "./words.js";

function progress(value, most, words) {
  return el("span", { class: "progress" }, el("progress", { value, max: Math.max(most, 1), "aria-label": words }), `${value}/${most}`);
}

function row(scan, place, isBlinded) {
  const who = [scan.participant_id, scan.session_id].filter(Boolean).join(" ");
  const state = scan.is_done ? "done" : scan.n_decided ? "begun" : "new";
  return el("tr", { "data-state": state },
    el("td", { class: "number" }, `${place}`),
    el("th", { scope: "row" }, el("a", { href: `#/scan/${scan.id}` }, scan.name), who && who !== scan.name ? el("span", { class: "soft" }, ` ${who}`) : ""),
    el("td", {}, progress(scan.n_decided, scan.n_candidates, `Decisions of ${scan.name}`)),
    isBlinded ? "" : el("td", { class: "number" }, `${decimal(scan.expected)} ± ${decimal(scan.sd)}`),
    el("td", { class: "number" }, duration(scan.seconds)),
    el("td", {}, el("span", { class: "state", "data-verdict": { done: "lesion", begun: "unsure", new: "open" }[state] }, state)));
}

async function exportAll(box) {
  const { files, notes } = await api.exportAll();
  box.replaceChildren(
    el("p", {}, "Written into the folder of results:"), el("ul", {}, files.map((name) => el("li", {}, el("code", {}, name)))),
    ...(notes ?? []).map((note) => el("p", { class: "soft" }, note)));
  say(`${plural(files.length, "file")} written.`);
}

function tiles(scans) {
  const done = scans.filter((scan) => scan.is_done);
  const seconds = scans.reduce((sum, scan) => sum + (scan.seconds ?? 0), 0);
  const touched = scans.filter((scan) => scan.seconds).length;
  const decisions = scans.reduce((sum, scan) => sum + scan.n_decided, 0);
  const tile = (number, words) => el("li", {}, el("b", {}, number), el("span", {}, words));
  return el("ul", { class: "tiles" },
    tile(`${done.length} of ${scans.length}`, "scans done"), tile(`${decisions}`, decisions === 1 ? "decision" : "decisions"),
    tile(duration(touched ? seconds / touched : 0), "per scan"), tile(duration(seconds), "in all"));
}

/** The order of work: scans that are left in the server's order. */
export function nextScan(cohort, after) {
  const open = cohort.order.filter((id) => id !== after && !cohort.scans.find((scan) => scan.id === id)?.is_done);
  return open[0];
}

export function cohortNode(cohort, session) {
  const byId = new Map(cohort.scans.map((scan) => [scan.id, scan]));
  const ordered = cohort.order.map((id) => byId.get(id)).filter(Boolean);
  const rest = cohort.scans.filter((scan) => !cohort.order.includes(scan.id));
  const scans = [...ordered, ...rest];
  const first = nextScan(cohort);
  const isTelling = cohort.ordered === "telling";
  const empty = ordered.filter((scan) => !scan.n_candidates && !scan.is_done).length;
  const written = el("div", { class: "written", role: "status" });
  const heads = ["", "Scan", "Decided", session.blinded ? null : "Expected count", "Time", "State"].filter((head) => head !== null);
  const search = el("input", { type: "search", id: "search", placeholder: "Find a scan", "aria-label": "Find a scan by name" });
  const rows = scans.map((scan, index) => row(scan, index + 1, session.blinded));
  search.addEventListener("input", () => {
    const wanted = search.value.trim().toLowerCase();
    rows.forEach((line, index) => { line.hidden = !scans[index].name.toLowerCase().includes(wanted); });
  });
  return el("div", { class: "cohort" },
    el("h1", {}, plural(scans.length, "scan"), " to review"),
    tiles(scans),
    cohort.left?.sentence && (!session.blinded || cohort.ordered === "calibration") ? el("p", { class: "stop", id: "stop" }, cohort.left.sentence) : null,
    el("p", { class: "buttons" },
      first === undefined ? el("b", {}, "All scans are done.") : el("a", { class: "main button", id: "begin", href: `#/scan/${first}` }, scans.some((scan) => scan.n_decided) ? "Go on" : "Begin", isTelling ? " with the scan that tells most" : " with the next scan"),
      empty ? el("button", { type: "button", id: "empty", title: "Their count is 0, unless you open one and add a lesion", onclick: () => api.finishEmpty().then(() => location.reload()).catch((error) => alarm(error.message)) }, `Mark ${plural(empty, "scan")} without candidates as done`) : "",
      el("button", { type: "button", id: "export", onclick: () => exportAll(written).catch((error) => alarm(error.message)) }, "Write results")),
    written,
    cohort.others?.length ? el("p", { class: "soft" }, `Other readers: ${cohort.others.join(", ")}`) : null,
    el("div", { class: "table-bar" }, el("h2", {}, !isTelling ? "Scans" : "Scans, in the order in which a review tells most"), search),
    el("div", { class: "scroll" }, el("table", { class: "scans" }, el("thead", {}, el("tr", {}, heads.map((head) => el("th", { scope: "col" }, head || el("span", { class: "unseen" }, "Place"))))), el("tbody", {}, rows))));
}
