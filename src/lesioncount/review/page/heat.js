// Slices of the map in colours, see-through where it is low. Made per slice, so that opacity changes at once.
const LEAST = 0.1;

// From dark red over orange to pale yellow: what is likelier is lighter.
const COLOURS = Array.from({ length: 256 }, (_, i) => {
  const t = i / 255;
  return [Math.round(150 + 105 * Math.min(1, 1.6 * t)), Math.round(240 * t ** 1.2), Math.round(130 * Math.max(0, t - 0.55))];
});

/** One slice as a picture of its voxels; null where nothing is above the least probability. */
export function heat({ data, dims, steps, slope }, fixed, index, across, along) {
  const [nu, nv] = [dims[across], dims[along]];
  const image = new ImageData(nu, nv);
  let isEmpty = true;
  for (let v = 0, pixel = 0; v < nv; v += 1) {
    let place = index * steps[fixed] + v * steps[along];
    for (let u = 0; u < nu; u += 1, place += steps[across], pixel += 4) {
      const p = data[place] * slope;
      if (p <= LEAST) continue;
      isEmpty = false;
      image.data.set(COLOURS[Math.min(255, Math.round(255 * p))], pixel);
      image.data[pixel + 3] = 255;
    }
  }
  if (isEmpty) return null;
  const canvas = new OffscreenCanvas(nu, nv);
  canvas.getContext("2d").putImageData(image, 0, 0);
  return canvas;
}
