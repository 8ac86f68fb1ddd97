import { useEffect, useId, useRef, type ReactNode } from 'react';

interface Props {
  title: string;
  /** Called by Escape. */
  close(): void;
  children: ReactNode;
}

/** A modal dialog: the rest of the page is inert, and the focus returns where it was. */
export function Modal({ title, close, children }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  const titleId = useId();
  const heading = useRef<HTMLHeadingElement>(null);

  useEffect(() => {
    const before = document.activeElement as HTMLElement | null;
    dialog.current!.showModal();
    // Not a button: a user who types while the dialog opens must not press it.
    heading.current!.focus();
    return () => {
      // What came in place of the dialog may have taken the focus.
      if (document.activeElement === document.body) before?.focus();
    };
  }, []);

  return (
    <dialog
      ref={dialog}
      aria-labelledby={titleId}
      onCancel={(event) => {
        event.preventDefault();
        close();
      }}
    >
      <h2 id={titleId} ref={heading} tabIndex={-1}>
        {title}
      </h2>
      {children}
    </dialog>
  );
}
