// The volumes of a scan: fetched once, unpacked by the browser.
import * as api from "./api.js";

const TYPES = { 2: Uint8Array, 4: Int16Array, 8: Int32Array, 16: Float32Array, 64: Float64Array, 256: Int8Array, 512: Uint16Array, 768: Uint32Array };
const fetched = new Map();

async function unpacked(url) {
  const answer = await fetch(url, { credentials: "same-origin" });
  if (!answer.ok) return null; // blinded, or there is none
  const packed = await answer.blob();
  return new Response(packed.stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
}

/** The bytes of a plain NIfTI file; null if there is none. Asked for again, they are there already. */
export function bytesOf(id, what) {
  const url = api.volume(id, what);
  if (!fetched.has(url)) fetched.set(url, unpacked(url));
  return fetched.get(url);
}

/** Forget the volumes of other scans. */
export function keepOnly(ids) {
  for (const url of fetched.keys()) if (!ids.some((id) => url.startsWith(`/api/scan/${id}/`))) fetched.delete(url);
}

/** Voxels as the server writes them, first axis fastest, in little-endian NIfTI-1. */
export async function voxelsOf(id, what) {
  const buffer = await bytesOf(id, what);
  if (!buffer) return null;
  const header = new DataView(buffer);
  const dims = [0, 1, 2].map((axis) => (axis < header.getInt16(40, true) ? header.getInt16(42 + 2 * axis, true) : 1));
  const Type = TYPES[header.getInt16(70, true)];
  if (!Type) throw new Error(`The ${what} has a type that the page does not know.`);
  const start = header.getFloat32(108, true);
  const slope = header.getFloat32(112, true) || 1;
  return { dims, steps: [1, dims[0], dims[0] * dims[1]], slope, data: new Type(buffer, start, dims[0] * dims[1] * dims[2]) };
}
