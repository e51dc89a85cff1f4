// Seconds that a reader spent looking: not those with the page hidden, nor those of a coffee.
const IDLE = 60_000;

export class Clock {
  constructor() {
    this.seconds = 0;
    this.last = performance.now();
    this.stop = new AbortController();
    const options = { signal: this.stop.signal, passive: true };
    for (const kind of ["keydown", "pointermove", "pointerdown", "wheel"]) {
      document.addEventListener(kind, () => this.tick(), options);
    }
    document.addEventListener("visibilitychange", () => this.tick(!document.hidden), options);
  }

  /** Something happened: the time since the last such moment counts, unless nobody was there. */
  tick(wasAway = false) {
    const now = performance.now();
    if (!wasAway) this.seconds += Math.min(now - this.last, IDLE) / 1000;
    this.last = now;
  }

  /** The seconds since this was last asked. */
  take() {
    this.tick();
    const seconds = this.seconds;
    this.seconds = 0;
    return Math.round(100 * seconds) / 100;
  }

  close() {
    this.stop.abort();
  }
}
