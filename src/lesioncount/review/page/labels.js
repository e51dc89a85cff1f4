// The label map: which candidate is where, and the outlines of a slice.
export function labelAt(labels, at) {
  const [i, j, k] = at;
  return labels.data[i * labels.steps[0] + j * labels.steps[1] + k * labels.steps[2]] ?? 0;
}

/** The label at a voxel, or the nearest within `reach` voxels of the slice: small lesions are hard to hit. */
export function labelNear(labels, at, across, along, reach) {
  let found = 0;
  let nearest = Infinity;
  for (let a = -reach; a <= reach; a += 1) {
    for (let b = -reach; b <= reach; b += 1) {
      const there = [...at];
      there[across] += a;
      there[along] += b;
      if (a * a + b * b >= nearest || there.some((value, axis) => value < 0 || value >= labels.dims[axis])) continue;
      const label = labelAt(labels, there);
      if (label) [found, nearest] = [label, a * a + b * b];
    }
  }
  return found;
}

/** Edges between voxels of different labels in one slice: label → [u0, v0, u1, v1, …] on the grid of voxel corners. */
export function outlines(labels, fixed, index, across, along) {
  const { data, dims, steps } = labels;
  const [nu, nv, su, sv] = [dims[across], dims[along], steps[across], steps[along]];
  const found = new Map();
  for (let v = 0; v < nv; v += 1) {
    let place = index * steps[fixed] + v * sv;
    for (let u = 0; u < nu; u += 1, place += su) {
      const label = data[place];
      if (!label) continue;
      let edges = found.get(label);
      if (!edges) found.set(label, (edges = []));
      if (u === 0 || data[place - su] !== label) edges.push(u, v, u, v + 1);
      if (u === nu - 1 || data[place + su] !== label) edges.push(u + 1, v, u + 1, v + 1);
      if (v === 0 || data[place - sv] !== label) edges.push(u, v, u + 1, v);
      if (v === nv - 1 || data[place + sv] !== label) edges.push(u, v + 1, u + 1, v + 1);
    }
  }
  return found;
}
