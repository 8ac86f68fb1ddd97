import { useLayoutEffect, useRef } from 'react';
import { plainText } from '../text/ansi';
import { LongText } from '../text/LongText';

interface Data {
  output: string;
  offset?: number;
  details?: { cwd?: string; exit_code?: number | null; signal?: string | null };
}

export function Terminal({ data: { output, offset, details } }: { data: Data }) {
  const screen = useRef<HTMLPreElement>(null);
  useLayoutEffect(() => {
    screen.current!.scrollTop = screen.current!.scrollHeight;
  }, [output]);
  const code = details?.exit_code;
  const signal = details?.signal;
  const hasEnded = typeof code === 'number' || typeof signal === 'string';
  return (
    <div className="terminal">
      <p className="label">
        Terminal
        {hasEnded && <span className={code === 0 ? 'ok' : 'bad'}> · {signal ? `ended by ${signal}` : `exit code ${code}`}</span>}
        {!hasEnded && ' · running'}
      </p>
      <pre ref={screen} tabIndex={0}>
        {offset !== undefined && offset > 0 && <span className="cut">… {offset} bytes before{'\n'}</span>}
        <LongText text={plainText(output)} isEnd />
      </pre>
    </div>
  );
}
