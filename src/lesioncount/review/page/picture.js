// The picture: NiiVue draws slices of image and map; everything on top, and every gesture, is ours.
import { listen } from "./gestures.js";
import { labelNear } from "./labels.js";
import { el } from "./markup.js";
import { drawOverlay } from "./overlay.js";
import { flatPlane, placeOf, planesOf } from "./planes.js";
import { bytesOf, voxelsOf } from "./volumes.js";

const SETTINGS = {
  backColor: [0, 0, 0, 1],
  crosshairWidth: 0,
  dragAndDropEnabled: false,
  interactive: false,
  isResizeCanvas: false, // its size goes with that of the overlay
  isNearestInterpolation: true, // a reader sees the voxels that were measured
  isOrientationTextVisible: false,
  isRadiologicalConvention: true,
  loadingText: "",
  logLevel: "error",
  multiplanarShowRender: 0,
  sagittalNoseLeft: true,
  show3Dcrosshair: false,
  viewModeHotKey: "",
  clipPlaneHotKey: "",
  cycleClipPlaneHotKey: "",
};
const WIDE = [[0, [0, 0, 0.62, 1]], [1, [0.62, 0, 0.38, 0.5]], [2, [0.62, 0.5, 0.38, 0.5]]];
const TALL = [[0, [0, 0, 1, 0.6]], [1, [0, 0.6, 0.5, 0.4]], [2, [0.5, 0.6, 0.5, 0.4]]];
const WHOLE = [0, 0, 1, 1];

// One viewer for all scans: its shaders are compiled once, and a browser has few contexts to give.
let attached = null;

/** NiiVue works out gradients for renderings, which takes seconds without a graphics card and is never shown here. It
 * asks for the last of its shaders right before: from then on, the volume looks like a single voxel to it. */
function skipGradients(viewer) {
  const shader = viewer.sobelSecondOrderShader;
  const refresh = viewer.refreshLayers.bind(viewer);
  let header = null;
  Object.defineProperty(viewer, "sobelSecondOrderShader", {
    get: () => {
      if (header) header.dims = [3, 1, 1, 1];
      return shader;
    },
  });
  viewer.refreshLayers = (volume, layer) => {
    const { dims } = volume.hdr;
    header = volume.hdr;
    try {
      refresh(volume, layer);
    } finally {
      volume.hdr.dims = dims;
      header = null;
    }
  };
}

/** The viewer, made when it is first asked for. */
export function warm() {
  attached ??= (async () => {
    const { Niivue, NVImage } = await import("./niivue.js");
    const canvas = el("canvas", { class: "volume", "aria-hidden": "true" });
    const home = el("div", { class: "unseen" }, canvas);
    document.body.append(home);
    const viewer = new Niivue(SETTINGS);
    await viewer.attachToCanvas(canvas, false);
    skipGradients(viewer);
    return { viewer, canvas, NVImage, home };
  })();
  return attached;
}

export class Picture {
  constructor(scan, settings, isBlinded, onPick) {
    this.scan = scan;
    this.isBlinded = isBlinded;
    this.settings = settings;
    this.onPick = onPick;
    this.is3d = scan.shape.length === 3 && scan.shape[2] > 1;
    this.labels = null;
    this.map = null;
    this.shown = { at: [0, 0, 0], current: null, decisions: {}, added: [] };
    this.top = el("canvas", { class: "overlay", role: "img", tabindex: "0", "aria-label": "Slices of the image through the candidate. Keys: square brackets scroll, plus and minus zoom." });
    this.node = el("div", { class: "planes" }, this.top);
  }

  /** Load the image, or the map where there is none; resolves when it is drawn, `whole` when map and labels are. */
  async open() {
    const { id, has_image: hasImage } = this.scan;
    const first = bytesOf(id, hasImage ? "image" : "map");
    const { viewer, canvas, NVImage, home } = await warm();
    const buffer = await first;
    if (!buffer || this.closed) return;
    while (viewer.volumes.length) viewer.removeVolumeByIndex(0);
    this.home = home;
    this.canvas = canvas;
    this.viewer = viewer;
    this.node.prepend(canvas);
    // Left and right of a picture without a place are as they were drawn; of a body, as radiologists are used to.
    viewer.opts.isRadiologicalConvention = this.scan.is_placed;
    viewer.opts.sagittalNoseLeft = this.scan.is_placed;
    const window = hasImage ? {} : { cal_min: 0, cal_max: 1 }; // of a map that is nearly empty, none can be guessed
    const volume = await NVImage.loadFromUrl({ url: buffer, name: "volume.nii", ...window });
    const draw = viewer.drawScene;
    viewer.drawScene = () => undefined; // what is loaded is drawn once, when its place is known
    viewer.addVolume(volume);
    viewer.drawScene = draw;
    this.range = [volume.global_min, volume.global_max];
    listen(this);
    this.watch = new ResizeObserver(() => this.resize());
    this.watch.observe(this.node); // tells the first size, too
  }

  /** What is drawn over the image. */
  async loadRest() {
    if (this.isBlinded) return;
    this.labels = await voxelsOf(this.scan.id, "labels");
    this.draw();
    if (this.scan.has_image) this.map = await voxelsOf(this.scan.id, "map");
    this.draw();
  }

  resize() {
    if (this.closed) return;
    const { width, height } = this.node.getBoundingClientRect();
    const ratio = window.devicePixelRatio || 1;
    this.top.width = Math.round(width * ratio);
    this.top.height = Math.round(height * ratio);
    this.scale = ratio;
    const flat = [[flatPlane(this.viewer.volumes[0]), WHOLE]];
    const tiles = this.is3d ? (width > 0.9 * height ? WIDE : TALL) : flat;
    this.canvas.width = this.top.width;
    this.canvas.height = this.top.height;
    this.viewer.customLayout = tiles.map(([sliceType, position]) => ({ sliceType, position }));
    this.centre();
    this.drawNow(); // sizes clear the canvases: not a frame later
  }

  /** Show a voxel, and move the field of view there. */
  goTo(voxel) {
    this.shown.at = [...voxel, 0, 0].slice(0, 3).map(Math.round);
    this.centre();
    this.draw();
  }

  scroll(fixed, step) {
    const n = this.scan.shape[fixed] ?? 1;
    const index = Math.min(n - 1, Math.max(0, this.shown.at[fixed] + step));
    this.shown.at[fixed] = index;
    this.draw();
  }

  /** Keep what is looked at in the middle, but never show more black than needed. */
  centre() {
    const volume = this.viewer?.volumes[0];
    if (!volume) return;
    const zoom = this.settings.zoom;
    const [low, high, here] = [[0, 0, 0], [1, 1, 1], placeOf(volume, this.shown.at)].map((frac) => volume.convertFrac2MM(frac, false));
    const pan = [0, 1, 2].map((axis) => {
      const middle = (low[axis] + high[axis]) / 2;
      const reach = (Math.abs(high[axis] - low[axis]) / 2) * (1 - 1 / zoom);
      return middle - zoom * Math.min(middle + reach, Math.max(middle - reach, here[axis]));
    });
    this.viewer.scene.pan2Dxyzmm = [...pan, zoom];
  }

  setZoom(zoom) {
    this.settings.zoom = Math.min(10, Math.max(1, zoom));
    this.centre();
    this.draw();
  }

  setWindow(low, high) {
    const volume = this.viewer.volumes[0];
    const [least, most] = this.range;
    volume.cal_min = Math.max(least, Math.min(low, high - (most - least) / 255));
    volume.cal_max = Math.max(high, volume.cal_min + (most - least) / 255);
    this.refresh();
  }

  get window() {
    const volume = this.viewer?.volumes[0];
    return volume ? [volume.cal_min, volume.cal_max] : null;
  }

  setOpacity(opacity) {
    this.settings.opacity = opacity;
    this.draw();
  }

  /** Make the textures anew, once per frame however often it is asked for. */
  refresh() {
    if (this.refreshing) return;
    this.refreshing = requestAnimationFrame(() => {
      this.refreshing = null;
      this.viewer.updateGLVolume();
      this.drawNow();
    });
  }

  /** Draw before the next frame, once however often it is asked for. */
  draw() {
    this.drawing ??= requestAnimationFrame(() => this.drawNow());
  }

  drawNow() {
    cancelAnimationFrame(this.drawing);
    this.drawing = null;
    const volume = this.viewer?.volumes[0];
    if (!volume || this.closed) return;
    this.viewer.scene.crosshairPos = placeOf(volume, this.shown.at);
    this.viewer.drawScene();
    this.planes = planesOf(this.viewer);
    const { outlines, cross, opacity } = this.settings;
    const rest = { labels: this.labels, map: this.map, opacity, spacing: this.scan.spacing_mm, isOriented: this.scan.is_placed, hasOutlines: outlines, hasCross: cross };
    drawOverlay(this.top, this.planes, { ...this.shown, ...rest }, this.scale);
  }

  planeAt(x, y) {
    return this.planes?.find((plane) => plane.contains(x, y));
  }

  /** A mouse dragged over a plane: the other planes follow. */
  follow(x, y, plane) {
    if (!plane) return;
    this.shown.at = plane.voxel(x, y, this.shown.at);
    this.draw();
  }

  /** A click: the slices go there; the candidate there, or close by, is told. */
  pick(x, y, isAdding) {
    const plane = this.planeAt(x, y);
    if (!plane) return;
    const voxel = plane.voxel(x, y, this.shown.at);
    this.shown.at = voxel;
    const near = this.labels ? labelNear(this.labels, voxel, plane.across, plane.along, 2) : 0;
    this.draw();
    this.onPick(voxel, near, isAdding);
  }

  close() {
    this.closed = true;
    this.watch?.disconnect();
    this.stop?.abort();
    this.home?.append(this.canvas);
  }
}
