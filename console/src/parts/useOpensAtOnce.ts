import { useEffect, useRef, useState } from "react";

/** For what `OpensLater` draws: opens it, and gives the focus to its button, which is a new one in the page. */
export function useOpensAtOnce() {
  const ref = useRef<HTMLButtonElement>(null);
  const [isOpen, setOpen] = useState(false);
  useEffect(() => {
    ref.current?.focus();
    setOpen(true);
  }, []);
  return { ref, isOpen, setOpen };
}
