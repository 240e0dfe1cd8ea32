"""The command of a packed array: one job runs its items one after another on one allocation.

The items run under a short shell script, so that neither the node nor an image needs corral. Results are in the file
`items.tsv` of the job's output directory: index, exit code and seconds of each item. A later attempt skips the items
that have succeeded. Each item has a checkpoint directory of its own and starts from the beginning: it must not resume
from the checkpoint of another item.
"""

from __future__ import annotations

from collections.abc import Sequence

#: Set if an earlier attempt, since the owner started the job, has run items.
RESUMES = "CORRAL_ITEMS_RESUME"

_SCRIPT = r"""
results="${CORRAL_OUTPUT_DIR:-.}/items.tsv"
if [ "${CORRAL_ITEMS_RESUME:-}" != 1 ]; then : > "$results"; fi
items=$1
shift
base="${CORRAL_CHECKPOINT_DIR:-}"
unset CORRAL_RESUME_FROM
failed=0
stopped=0
child=
trap 'stopped=1; if [ -n "$child" ]; then kill -TERM "$child" 2>/dev/null; fi' TERM INT
tab=$(printf '\t')
for index in $items; do
  if grep -q "^$index${tab}0${tab}" "$results" 2>/dev/null; then continue; fi
  export CORRAL_ARRAY_INDEX="$index"
  if [ -n "$base" ]; then
    export CORRAL_CHECKPOINT_DIR="$base/item-$index"
    mkdir -p "$CORRAL_CHECKPOINT_DIR"
  fi
  echo "corral: item $index begins"
  begin=$(date +%s)
  "$@" &
  child=$!
  wait "$child"
  code=$?
  while [ "$stopped" = 1 ] && kill -0 "$child" 2>/dev/null; do wait "$child"; code=$?; done
  child=
  if [ "$stopped" = 1 ]; then
    echo "corral: item $index was interrupted"
    exit 143
  fi
  printf '%s\t%s\t%s\n' "$index" "$code" "$(($(date +%s) - begin))" >> "$results"
  if [ "$code" -ne 0 ]; then
    failed=$((failed + 1))
    echo "corral: item $index failed with exit code $code"
  fi
done
if [ "$failed" -ne 0 ]; then
  echo "corral: $failed items failed: see items.tsv in the output directory"
  exit 1
fi
"""


def packed_command(command: Sequence[str], items: Sequence[int]) -> tuple[str, ...]:
    return ("/bin/sh", "-c", _SCRIPT, "corral-items", " ".join(map(str, items)), *command)
