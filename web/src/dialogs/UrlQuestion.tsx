import { safeUrl } from '../markdown/safeUrl';
import type { Question } from '../rpc/types';
import { LongText } from '../text/LongText';

export function UrlQuestion({ question, respond }: { question: Question; respond(result: object): void }) {
  const url = question.url === null ? null : safeUrl(question.url);
  return (
    <>
      <p>
        <LongText text={question.message} />
      </p>
      {/* In full and as text: the user has to see where the link leads. */}
      <p className="address">
        {url === null ? question.url : (
          <a href={url} target="_blank" rel="noreferrer noopener">
            {url}
          </a>
        )}
      </p>
      <div className="options">
        <button type="button" className="allow" onClick={() => respond({ action: 'accept' })}>
          I open it
        </button>
        <button type="button" className="reject" onClick={() => respond({ action: 'decline' })}>
          Decline
        </button>
      </div>
    </>
  );
}
