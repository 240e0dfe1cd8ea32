import { Suspense, useState, type ReactElement, type ReactNode, type Ref } from "react";

export interface OpenerProps {
  readonly ref?: Ref<HTMLButtonElement>;
  readonly onClick?: () => void;
  readonly "aria-haspopup"?: "menu" | "dialog";
  readonly "aria-expanded"?: boolean;
}

/** Draws the button that opens something. */
export type Opener = (props: OpenerProps) => ReactElement;

/** A button alone, until it is pressed for the first time: then `opened` draws it, with what it opens. */
export function OpensLater({
  popup,
  button,
  opened,
}: {
  popup: "menu" | "dialog";
  button: Opener;
  opened: (button: Opener) => ReactNode;
}) {
  const [isWanted, setWanted] = useState(false);
  const closed = button({ "aria-haspopup": popup, "aria-expanded": false, onClick: () => setWanted(true) });
  return isWanted ? <Suspense fallback={closed}>{opened(button)}</Suspense> : closed;
}
