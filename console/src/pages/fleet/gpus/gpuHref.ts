/** Where a GPU's page is. Ids may have slashes, and anything else; the address keeps the slashes. */
export function gpuHref(gpu: string): string {
  return `/gpus/${gpu.split("/").map(encodeURIComponent).join("/")}`;
}
