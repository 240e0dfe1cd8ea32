/** The server's rules for names and addresses, told while one types. */
const HOST = "[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?(?::[0-9]{1,5})?";
export const REGISTRY = new RegExp(`^${HOST}$`);
export const ADDRESS = new RegExp(
  `^(?:${HOST}/)?[a-z0-9]+(?:[._/-]+[a-z0-9]+)*(?::\\w[\\w.-]{0,127})?(?:@sha256:[0-9a-f]{64})?$`,
);
