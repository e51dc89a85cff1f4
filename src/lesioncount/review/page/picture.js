// The picture: NiiVue draws slices of image and map; everything on top, and every gesture, is ours.
import * as api from "./api.js";
import { el } from "./markup.js";
import { labelNear, readLabels } from "./labels.js";
import { drawOverlay } from "./overlay.js";
import { planesOf } from "./planes.js";
import { listen } from "./gestures.js";

const SETTINGS = {
  backColor: [0, 0, 0, 1],
  crosshairWidth: 0,
  dragAndDropEnabled: false,
  interactive: false,
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
const FLAT = [[0, [0, 0, 1, 1]]];

export class Picture {
  constructor(scan, settings, onPick) {
    this.scan = scan;
    this.settings = settings;
    this.onPick = onPick;
    this.is3d = scan.shape.length === 3 && scan.shape[2] > 1;
    this.labels = null;
    this.shown = { at: [0, 0, 0], current: null, decisions: {}, added: [] };
    this.canvas = el("canvas", { class: "volume", "aria-hidden": "true" });
    this.top = el("canvas", { class: "overlay", role: "img", tabindex: "0", "aria-label": "Slices of the image through the candidate. Keys: square brackets scroll, plus and minus zoom." });
    this.node = el("div", { class: "planes" }, this.canvas, this.top);
  }

  /** Load image, then map, then labels; resolves when the first picture is on the screen, `whole` when all is. */
  async open() {
    const { Niivue, NVImage } = await import("./niivue.js");
    this.NVImage = NVImage;
    this.viewer = new Niivue(SETTINGS);
    await this.viewer.attachToCanvas(this.canvas, false);
    const rest = this.scan.has_image ? ["map"] : [];
    const labels = readLabels(api.volume(this.scan.id, "labels"));
    await this.load(this.scan.has_image ? "image" : "map", {});
    listen(this);
    this.watch = new ResizeObserver(() => this.resize());
    this.watch.observe(this.node);
    this.resize();
    this.whole = (async () => {
      this.labels = await labels;
      this.draw();
      for (const what of rest) await this.load(what, { colormap: "warm", cal_min: 0.1, cal_max: 1, opacity: this.settings.opacity });
      this.draw();
    })();
  }

  async load(what, options) {
    const url = api.volume(this.scan.id, what);
    const answer = await fetch(url, { credentials: "same-origin" });
    if (!answer.ok) return; // blinded: there is nothing to see
    const volume = await this.NVImage.loadFromUrl({ url: await answer.arrayBuffer(), name: `${what}.nii.gz`, ...options });
    if (this.closed) return;
    this.viewer.addVolume(volume);
    if (this.viewer.volumes.length === 1) this.range = [volume.global_min, volume.global_max];
  }

  get hasMap() {
    return this.viewer?.volumes.length > 1;
  }

  resize() {
    const { width, height } = this.node.getBoundingClientRect();
    const ratio = window.devicePixelRatio || 1;
    this.top.width = Math.round(width * ratio);
    this.top.height = Math.round(height * ratio);
    this.scale = ratio;
    const tiles = this.is3d ? (width > 0.9 * height ? WIDE : TALL) : FLAT;
    this.viewer.resizeListener();
    this.viewer.setCustomLayout(tiles.map(([sliceType, position]) => ({ sliceType, position })));
    this.centre();
    this.draw();
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
    const [low, high, here] = [[0, 0, 0], [1, 1, 1], volume.convertVox2Frac(this.shown.at)].map((frac) => volume.convertFrac2MM(frac, false));
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
    if (!this.hasMap) return;
    this.viewer.volumes[1].opacity = opacity;
    this.refresh();
  }

  /** Make the textures anew, once per frame however often it is asked for. */
  refresh() {
    if (this.refreshing) return;
    this.refreshing = requestAnimationFrame(() => {
      this.refreshing = null;
      this.viewer.updateGLVolume();
      this.draw();
    });
  }

  draw() {
    const volume = this.viewer?.volumes[0];
    if (!volume || this.closed) return;
    this.viewer.scene.crosshairPos = volume.convertVox2Frac(this.shown.at);
    this.viewer.drawScene();
    this.planes = planesOf(this.viewer);
    const { outlines, cross } = this.settings;
    const isOriented = this.is3d && this.scan.spacing_mm !== null;
    const rest = { labels: this.labels, spacing: this.scan.spacing_mm, isOriented, hasOutlines: outlines, hasCross: cross };
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
    this.viewer?.gl?.getExtension("WEBGL_lose_context")?.loseContext();
  }
}
