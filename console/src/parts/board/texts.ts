import { defineTexts } from "@/texts/texts";

export const texts = defineTexts({
  hint: [
    "Click, or Space: choose. Shift: a range. Drag, or Enter and then ← →: move what is chosen to another column.",
    "单击或按空格选择，按住 Shift 选择一段；拖动，或按 Enter 后用 ← → 移动到另一列。",
  ],
  instructions: [
    "Press Space to choose, Enter to pick up what is chosen, the left and right arrow keys to go to another column, Enter to drop, Escape to give up.",
    "按空格选择，按 Enter 拿起所选项，用左右方向键移到另一列，再按 Enter 放下，按 Esc 取消。",
  ],
  chosen: ["{what} chosen", "已选{what}"],
  moveTo: ["Move to…", "移动到…"],
  clear: ["Clear the choice", "取消选择"],
  chooseRow: ["All of {name}", "选择 {name} 的全部"],
  pickedUp: ["Picked up {what}.", "已拿起{what}。"],
  over: ["Over {column}.", "位于“{column}”上方。"],
  overRefused: ["Over {column}. {reason}", "位于“{column}”上方。{reason}"],
  dropped: ["Dropped on {column}.", "已放到“{column}”。"],
  givenUp: ["Given up: nothing was moved.", "已取消，未移动任何项。"],
  dropHere: ["Drop here", "放到这里"],
});
