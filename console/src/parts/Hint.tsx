import { lazy, Suspense, useState, type ReactNode } from "react";

const HintBox = lazy(() => import("@/parts/HintBox"));

/** Shows words beside its child while that is pointed at or focused. What draws them is loaded for the first one. */
export function Hint({ label, children }: { label: string; children: ReactNode }) {
  const [target, setTarget] = useState<HTMLElement>();
  function show(frame: HTMLElement, at: EventTarget) {
    // A menu that the child opens is no part of the child.
    const child = at instanceof Node && frame.contains(at) ? frame.firstElementChild : null;
    setTarget(child instanceof HTMLElement ? child : undefined);
  }
  return (
    <span
      style={{ display: "contents" }}
      onPointerOver={(event) => event.pointerType === "mouse" && show(event.currentTarget, event.target)}
      onPointerLeave={() => setTarget(undefined)}
      onFocus={(event) => event.target.matches(":focus-visible") && show(event.currentTarget, event.target)}
      onBlur={() => setTarget(undefined)}
    >
      {children}
      {target !== undefined && (
        <Suspense fallback={null}>
          <HintBox target={target} label={label} />
        </Suspense>
      )}
    </span>
  );
}
