interface Props {
  /** Number of requests that wait behind this one. */
  more: number;
  later(): void;
}

export function AskFooter({ more, later }: Props) {
  return (
    <p className="ask-footer">
      <button type="button" className="link" onClick={later}>
        Decide later
      </button>
      {more > 0 && <span>{more === 1 ? '1 more request waits' : `${more} more requests wait`}</span>}
    </p>
  );
}
