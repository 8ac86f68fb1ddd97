import type { UIMessage } from 'ai';
import { useMemo } from 'react';
import { Boundary } from '../layout/Boundary';
import { LongList } from '../text/LongList';
import { MessageContext, viewOf } from './context';
import { Part } from './Part';

interface Props {
  parts: UIMessage['parts'];
  /** Whether the message still grows. */
  isRunning: boolean;
}

const MOST_PARTS = 2_000;

/** All parts of a message. One that has a fault does not hide the others. */
export function Parts({ parts, isRunning }: Props) {
  const view = useMemo(() => viewOf(parts, isRunning), [parts, isRunning]);
  return (
    <MessageContext value={view}>
      <LongList items={parts} most={MOST_PARTS} name="parts">
        {(part, index) => (
          <Boundary key={index} name="next part of the message" value={part}>
            <Part part={part} isLast={index === parts.length - 1} />
          </Boundary>
        )}
      </LongList>
    </MessageContext>
  );
}
