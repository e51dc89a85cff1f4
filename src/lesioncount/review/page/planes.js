// Where voxels are on the screen. NiiVue shows volumes turned to right-anterior-superior; each plane is linear in voxels.
const AXES = { 0: [0, 1, 2], 1: [0, 2, 1], 2: [1, 2, 0] }; // across, up, fixed: axial, coronal, sagittal
const ENDS = [["L", "R"], ["P", "A"], ["I", "S"]];

/** For each axis of the display: the axis of the voxels that runs along it, how many there are, and which way. */
function nativeAxes(volume) {
  return [0, 1, 2].map((axis) => {
    const turned = volume.permRAS[axis];
    const voxels = Math.abs(turned) - 1;
    return { axis: voxels, n: volume.hdr.dims[voxels + 1] || 1, flipped: turned < 0 };
  });
}

/** The plane of a picture: the one across its last axis, which has one voxel. */
export function flatPlane(volume) {
  return 2 - nativeAxes(volume).findIndex(({ axis }) => axis === 2);
}

/** Where the middle of a voxel is, from 0 to 1 along each axis of the display. */
export function placeOf(volume, voxel) {
  return nativeAxes(volume).map(({ axis, n, flipped }) => {
    const there = (voxel[axis] + 0.5) / n;
    return flipped ? 1 - there : there;
  });
}

/** The planes that NiiVue drew last, each with its way from voxels to pixels and back. */
export function planesOf(viewer) {
  const volume = viewer.volumes[0];
  return volume ? viewer.screenSlices.filter((slice) => slice.axCorSag <= 2).map((slice) => new Plane(slice, volume)) : [];
}

class Plane {
  constructor(slice, volume) {
    const [right, up, fixed] = AXES[slice.axCorSag];
    this.kind = slice.axCorSag;
    this.box = slice.leftTopWidthHeight.slice(0, 4);
    this.mirrored = this.box[2] < 0;
    if (this.mirrored) this.box = [this.box[0] + this.box[2], this.box[1], -this.box[2], this.box[3]];
    const native = nativeAxes(volume);
    this.across = native[right].axis;
    this.along = native[up].axis;
    this.fixed = native[fixed].axis;
    this.x = this.line(slice, volume, right, 0, native[right]);
    this.y = this.line(slice, volume, up, 1, native[up]);
    const turned = (ends, { step }, { flipped }) => ((step > 0) === flipped ? [...ends].reverse() : ends);
    const [left, rightmost] = turned(ENDS[right], this.x, native[right]);
    const [top, bottom] = turned(ENDS[up], this.y, native[up]); // pixels grow downwards
    this.letters = [left, rightmost, bottom, top];
  }

  /** pixel = start + step · (corner of voxels), along one side of the plane. */
  line(slice, volume, axis, side, { n, flipped }) {
    const pixel = (frac) => {
      const at = [0.5, 0.5, 0.5];
      at[axis] = frac;
      const there = (volume.convertFrac2MM(at, false)[axis] - slice.leftTopMM[side]) / slice.fovMM[side];
      const [left, top, width, height] = this.box;
      return side === 1 ? top + (1 - there) * height : left + (this.mirrored ? 1 - there : there) * width;
    };
    const [start, end] = flipped ? [pixel(1), pixel(0)] : [pixel(0), pixel(1)];
    return { start, step: (end - start) / n, n };
  }

  contains(x, y) {
    const [left, top, width, height] = this.box;
    return x >= left && x < left + width && y >= top && y < top + height;
  }

  /** The voxel under a pixel; `at` says where along the axis that this plane does not show. */
  voxel(x, y, at) {
    const found = [...at];
    const place = (pixel, { start, step, n }) => Math.min(n - 1, Math.max(0, Math.floor((pixel - start) / step)));
    found[this.across] = place(x, this.x);
    found[this.along] = place(y, this.y);
    return found;
  }

  /** The pixel of a voxel's middle. */
  pixel(voxel) {
    return [this.x.start + (voxel[this.across] + 0.5) * this.x.step, this.y.start + (voxel[this.along] + 0.5) * this.y.step];
  }
}
