// How a reader likes to look, kept in this browser. Decisions are never kept here.
const NAME = "lesioncount.review";
const USUAL = { zoom: 1.5, opacity: 0.25, outlines: true, cross: true, sort: "share", show: "all", goesOn: true };

export function load() {
  try {
    return { ...USUAL, ...JSON.parse(localStorage.getItem(NAME) ?? "{}") };
  } catch {
    return { ...USUAL };
  }
}

export function keep(settings) {
  try {
    localStorage.setItem(NAME, JSON.stringify(settings));
  } catch {
    // A browser that keeps nothing still shows everything.
  }
}
