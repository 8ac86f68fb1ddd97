// The dialog of the oldest request that waits for the user.

import { useEffect } from 'react';
import { Boundary } from '../layout/Boundary';
import { answer } from '../state/client';
import { model } from '../state/model';
import { useStore } from '../state/store';
import { hiddenAsks, hideAsks, showAsks } from './hiddenAsks';
import { PermissionDialog } from './PermissionDialog';
import { QuestionDialog } from './QuestionDialog';

export function AskDialogs() {
  const asks = useStore(model, ({ asks }) => asks);
  const isHidden = useStore(hiddenAsks, ({ isHidden }) => isHidden);
  useEffect(showAsks, [asks]);

  const ask = asks[0];
  if (ask === undefined || isHidden) return null;
  const common = { more: asks.length - 1, later: hideAsks, respond: (result: object) => answer(ask, result) };
  return (
    <Boundary name="request of the agent" value={ask}>
      {ask.kind === 'permission' ? (
        <PermissionDialog key={ask.requestId} request={ask.params} {...common} />
      ) : (
        <QuestionDialog key={ask.requestId} question={ask.params} {...common} />
      )}
    </Boundary>
  );
}
