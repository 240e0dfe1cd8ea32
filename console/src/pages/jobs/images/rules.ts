/** The server's rules for addresses, checked while the user types. */
const HOST = "[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?(?::[0-9]{1,5})?";
export const REGISTRY = new RegExp(`^${HOST}$`);
export const ADDRESS = new RegExp(
  `^(?:${HOST}/)?[a-z0-9]+(?:[._/-]+[a-z0-9]+)*(?::\\w[\\w.-]{0,127})?(?:@sha256:[0-9a-f]{64})?$`,
);
