// How numbers and verdicts read.
export const VERDICTS = {
  lesion: { words: "lesion", key: "L", sign: "✓" },
  none: { words: "not a lesion", key: "N", sign: "✗" },
  unsure: { words: "unsure", key: "U", sign: "?" },
  several: { words: "several lesions", key: "M", sign: "✓" },
};

export function verdictWords(decision) {
  if (!decision) return "open";
  return decision.verdict === "several" ? `${decision.n} lesions` : VERDICTS[decision.verdict].words;
}

export function probability(value) {
  if (value === null || value === undefined) return "–";
  if (value > 0 && value < 0.01) return "<.01";
  if (value < 1 && value > 0.99) return ">.99";
  return value.toFixed(2).replace(/^0/, "");
}

export const percent = (value) => (value === null || value === undefined ? "–" : value > 0 && value < 0.005 ? "<1 %" : `${Math.round(100 * value)} %`);

export function decimal(value, digits = 1) {
  return value === null || value === undefined ? "–" : value.toFixed(digits);
}

export function duration(seconds) {
  if (!seconds) return "–";
  if (seconds < 60) return `${Math.round(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  return minutes < 60 ? `${minutes} min ${Math.round(seconds % 60)} s` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

export const plural = (n, one, many = `${one}s`) => `${n} ${n === 1 ? one : many}`;

/** Of one candidate: its size as far as it is known. */
export function size(candidate) {
  if (candidate.diameter_mm) return `${candidate.diameter_mm.toFixed(1)} mm`;
  return candidate.n_voxels === null ? "" : `${candidate.n_voxels} vox.`;
}
