// The only parts of NiiVue that the page uses: whatever else it has is left out of the bundle where possible.
export { NVImage, Niivue, SLICE_TYPE } from "@niivue/niivue";
