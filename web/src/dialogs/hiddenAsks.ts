import { createStore } from '../state/store';

/** Whether the user closed the dialog of the open requests without an answer. */
export const hiddenAsks = createStore({ isHidden: false });

export function hideAsks(): void {
  hiddenAsks.set({ isHidden: true });
}

export function showAsks(): void {
  hiddenAsks.set({ isHidden: false });
}
