import { useState } from 'react';

interface Props {
  text: string;
  /** Whether the end of the text matters, not its beginning. */
  isEnd?: boolean;
}

/** Characters of a text that are shown before the user asks for more: the browser's layout of some MB takes seconds. */
const MOST_CHARACTERS = 50_000;

const MOST_TITLE = 500;

/** A text of an agent, of which the user may open the rest. */
export function LongText({ text, isEnd = false }: Props) {
  const [isWhole, setIsWhole] = useState(false);
  const hidden = text.length - MOST_CHARACTERS;
  if (isWhole || hidden <= 0) return text;
  const more = (
    <button type="button" className="link" onClick={() => setIsWhole(true)}>
      Show {hidden.toLocaleString('en')} more characters
    </button>
  );
  return isEnd ? (
    <>
      {more}
      {'\n'}
      {text.slice(hidden)}
    </>
  ) : (
    <>
      {text.slice(0, MOST_CHARACTERS)}
      {'\n'}
      {more}
    </>
  );
}

/** The beginning of a text that is shown elsewhere, too. */
export function clip(text: string): string {
  return text.length <= MOST_TITLE ? text : `${text.slice(0, MOST_TITLE)}…`;
}
