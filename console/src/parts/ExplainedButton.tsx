import { Button, Tooltip, type ButtonProps } from "@mantine/core";

/** A button that stays reachable when it cannot be used, and says why: on hover, on focus, and to screen readers. */
export function ExplainedButton({
  why,
  onClick,
  children,
  ...props
}: ButtonProps & { why: string | undefined; onClick: () => void }) {
  return (
    <Tooltip label={why ?? ""} disabled={why === undefined} events={{ hover: true, focus: true, touch: true }}>
      <Button
        {...props}
        aria-disabled={why !== undefined}
        data-disabled={why === undefined ? undefined : true}
        onClick={why === undefined ? onClick : undefined}
      >
        {children}
        {why !== undefined && <span className="visually-hidden">{why}</span>}
      </Button>
    </Tooltip>
  );
}
