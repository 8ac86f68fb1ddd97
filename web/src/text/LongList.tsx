import { useState, type ReactNode } from 'react';

interface Props<T> {
  items: T[];
  /** Number of items that are shown before the user asks for more. */
  most: number;
  /** What the items are, for the button. */
  name: string;
  children(item: T, index: number): ReactNode;
}

/** Items of an agent, of which the user may open more: tens of thousands of elements stall the page. */
export function LongList<T>({ items, most, name, children }: Props<T>) {
  const [shown, setShown] = useState(most);
  return (
    <>
      {items.slice(0, shown).map(children)}
      {items.length > shown && (
        <button type="button" className="link" onClick={() => setShown(shown * 4)}>
          Show more of {items.length.toLocaleString('en')} {name}
        </button>
      )}
    </>
  );
}
