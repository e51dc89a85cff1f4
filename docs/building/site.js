// What the theme leaves out for those who do not use a mouse: the search has no name, and wide tables cannot be scrolled by keys.
document.querySelector(".md-search")?.setAttribute("aria-label", "Search");
addEventListener("load", () => {
  for (const table of document.querySelectorAll(".md-typeset__scrollwrap")) table.tabIndex = 0;
});
