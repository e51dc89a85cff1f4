// Keys do what the help says, wherever the focus is, unless it is where keys mean something else.
const MOVES = new Set(["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight", "PageUp", "PageDown", "Home", "End"]);

function isTaken(event) {
  const { target, key } = event;
  if (document.querySelector("dialog[open]")) return true;
  if (target.matches("select, textarea, input:not([type=range], [type=checkbox])")) return true;
  if (target.matches("input[type=range]")) return MOVES.has(key);
  return target.matches("button, a, summary, input[type=checkbox]") && (key === " " || key === "Enter");
}

/** Call what `actions` has for a key, by its name or, for letters, in lower case. Returns how to stop. */
export function listenToKeys(actions) {
  const stop = new AbortController();
  const act = (event) => {
    if (event.altKey || event.metaKey || isTaken(event)) return;
    if (event.ctrlKey && event.key !== "z") return;
    const name = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    const action = actions[name];
    if (!action || (event.repeat && !actions.repeats.has(name))) return;
    event.preventDefault();
    action(event);
  };
  document.addEventListener("keydown", act, { signal: stop.signal });
  return () => stop.abort();
}
